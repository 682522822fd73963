/* The module cordwood.wire._native: the codecs, the makers of messages, and what its functions share. */

#include "native.h"

/* May the fallback be called? Yes if there is no exception, or one about a value, which is then cleared. All other
 * exceptions are for the caller: an interruption that came while a value ran code of its own, for example. */
int may_give_up(void)
{
    PyObject *const kinds[] = {PyExc_AttributeError, PyExc_BufferError, PyExc_MemoryError,
                               PyExc_OverflowError,  PyExc_TypeError,   PyExc_ValueError};
    PyObject *raised = PyErr_Occurred();
    for (size_t i = 0; raised != NULL && i < sizeof kinds / sizeof *kinds; i++)
        if (PyErr_GivenExceptionMatches(raised, kinds[i])) {
            PyErr_Clear();
            return 1;
        }
    return raised == NULL;
}

/* Leave an unusual case to the generated function. */
PyObject *fall_back(codec *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    return may_give_up() ? PyObject_Vectorcall(self->fallback, args, nargs, names) : NULL;
}

/* make(field=value, ...) -> message: like calling the class, but without a dict and without running Python code. */
static PyObject *make(PyObject *callable, PyObject *const *args, size_t nargs, PyObject *names)
{
    codec *self = (codec *)callable;
    const layout *of = self->root;
    const field *end = of->fields + of->absent_count;
    PyObject *message = PyVectorcall_NARGS(nargs) ? NULL : of->cls->tp_alloc(of->cls, 0);
    if (message == NULL)
        goto surprise;
    for (Py_ssize_t i = 0, count = names ? PyTuple_GET_SIZE(names) : 0; i < count; i++) {
        const field *named = of->fields;
        while (named < end && named->name != PyTuple_GET_ITEM(names, i))
            named++;
        if (named == end)
            goto surprise;
        Py_XSETREF(*slot_of(message, named), Py_NewRef(args[i]));
    }
    for (const field *next = of->fields; next < end; next++)
        if (*slot_of(message, next) == NULL && (*slot_of(message, next) = initial_of(next)) == NULL)
            goto surprise;
    return message;
surprise:
    Py_XDECREF(message);
    return fall_back(self, args, nargs, names);
}

static PyObject *codec_new(PyTypeObject *type, PyObject *args, PyObject *names, vectorcallfunc call)
{
    PyObject *described, *fallback;
    Py_ssize_t number = 0;
    if (!is_set_up()) {
        PyErr_SetString(PyExc_RuntimeError, "set_up comes first");
        return NULL;
    }
    if (names != NULL && PyDict_GET_SIZE(names) > 0) {
        PyErr_Format(PyExc_TypeError, "%s takes no keyword arguments", type->tp_name);
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "OO|n", &described, &fallback, &number))
        return NULL;
    layout *root = read_layout(described);
    if (root == NULL)
        return NULL;
    codec *self = (codec *)type->tp_alloc(type, 0);
    if (self == NULL) {
        free_layout(root);
        return NULL;
    }
    self->vectorcall = call;
    self->root = root;
    self->fallback = Py_NewRef(fallback);
    self->number = number;
    return (PyObject *)self;
}

static PyObject *decoder_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    return codec_new(type, args, names, decode);
}

static PyObject *encoder_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    return codec_new(type, args, names, encode);
}

static PyObject *maker_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    return codec_new(type, args, names, make);
}

static void codec_free(PyObject *object)
{
    codec *self = (codec *)object;
    free_layout(self->root);
    Py_XDECREF(self->fallback);
    Py_TYPE(object)->tp_free(object);
}

/* Codecs are created once and live as long as the process, so they need no garbage collection. */
#define CODEC_TYPE(NAME, NEW, DOC)                                                                                     \
    {                                                                                                                  \
        PyVarObject_HEAD_INIT(NULL, 0).tp_name = "cordwood.wire._native." NAME, .tp_basicsize = sizeof(codec),         \
        .tp_dealloc = codec_free, .tp_vectorcall_offset = offsetof(codec, vectorcall), .tp_call = PyVectorcall_Call,   \
        .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, .tp_doc = DOC, .tp_new = NEW                      \
    }

static PyTypeObject decoder_type = CODEC_TYPE("Decoder", decoder_new, "decode(view, pos) -> (message, pos)");
static PyTypeObject encoder_type = CODEC_TYPE("Encoder", encoder_new, "encode(message) -> chunks");
static PyTypeObject maker_type = CODEC_TYPE("Maker", maker_new, "make(field=value, ...) -> message");

static PyObject *set_up(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *make_uuid, *file_slice;
    Py_ssize_t chunk_bytes_min;
    if (!PyArg_ParseTuple(args, "OOn", &make_uuid, &file_slice, &chunk_bytes_min) || set_up_uuids(make_uuid) < 0)
        return NULL;
    set_up_records(file_slice, chunk_bytes_min);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"count_at_most", (PyCFunction)(void (*)(void))count_at_most, METH_FASTCALL,
     "count_at_most(entries, size, at, width, value)"},
    {"entry_at_most", (PyCFunction)(void (*)(void))entry_at_most, METH_FASTCALL,
     "entry_at_most(entries, size, column, value) -> (first, second) or None"},
    {"count_numbers_at_most", (PyCFunction)(void (*)(void))count_numbers_at_most, METH_FASTCALL,
     "count_numbers_at_most(numbers, value)"},
    {"read_head", (PyCFunction)(void (*)(void))read_head, METH_FASTCALL, "read_head(frame, flexible_from)"},
#ifdef __linux__
    {"send_chunks", (PyCFunction)(void (*)(void))send_chunks, METH_FASTCALL,
     "send_chunks(socket, pieces) -> how many bytes are left; a piece is bytes or (file, position, length)"},
#endif
    {"place_at", place_at, METH_O, "place_at(data) -> (first offset, last offset, bytes) of a stored batch, or None"},
    {"stamp", (PyCFunction)(void (*)(void))stamp, METH_FASTCALL, "stamp(batch, base_offset, leader_epoch)"},
    {"add_entry", (PyCFunction)(void (*)(void))add_entry, METH_FASTCALL, "add_entry(entries, size, first, second)"},
    {"set_up", set_up, METH_VARARGS, "set_up(make_uuid, FileSlice, chunk_bytes_min)"},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef crc_functions[] = {
    {"crc32c", crc32c_of, METH_O, "crc32c(data) -> the CRC-32C of its bytes"},
    {"usual_batch", usual_batch, METH_O, "usual_batch(batch) -> fields of the header of one that may be taken, or None"},
    {NULL, NULL, 0, NULL},
};

/* The state of this module belongs to the whole process, but objects belong to one interpreter: the others use the
 * generated functions, as if this module did not exist. */
static int fill(PyObject *module)
{
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_ModuleNotFoundError, "the native codec serves the main interpreter alone");
        return -1;
    }
    PyTypeObject *const types[] = {&decoder_type, &encoder_type, &maker_type};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (PyModule_AddType(module, types[i]) < 0)
            return -1;
    return set_up_crc() ? PyModule_AddFunctions(module, crc_functions) : 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, fill},
#ifdef Py_mod_multiple_interpreters /* otherwise Python itself refuses some of them, with another error */
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_native", .m_methods = functions, .m_slots = slots,
};

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&definition);
}
