/* The module cordwood.wire._native: codecs, and what makes messages. */

#include "native.h"

/* What is not usual is the generated function's. */
PyObject *fall_back(codec *self, PyObject *const *args, size_t count)
{
    PyErr_Clear();
    return PyObject_Vectorcall(self->fallback, args, count, NULL);
}

/* make(field=value, ...) -> message: the class itself, called without a dict and without an interpreter. */
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
    PyErr_Clear();
    return PyObject_Vectorcall(self->fallback, args, nargs, names);
}

static PyObject *codec_new(PyTypeObject *type, PyObject *args, vectorcallfunc call)
{
    PyObject *described, *fallback;
    Py_ssize_t number = 0;
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

static PyObject *decoder_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(names))
{
    return codec_new(type, args, decode);
}

static PyObject *encoder_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(names))
{
    return codec_new(type, args, encode);
}

static PyObject *maker_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(names))
{
    return codec_new(type, args, make);
}

static void codec_free(PyObject *object)
{
    codec *self = (codec *)object;
    free_layout(self->root);
    Py_XDECREF(self->fallback);
    Py_TYPE(object)->tp_free(object);
}

/* Codecs are made once and live as long as the process: they need no garbage collection. */
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
    {"read_head", (PyCFunction)(void (*)(void))read_head, METH_FASTCALL, "read_head(frame, flexible_from)"},
    {"set_up", set_up, METH_VARARGS, "set_up(make_uuid, FileSlice, chunk_bytes_min)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_native", .m_size = -1, .m_methods = functions,
};

PyMODINIT_FUNC PyInit__native(void)
{
    if (PyType_Ready(&decoder_type) < 0 || PyType_Ready(&encoder_type) < 0 || PyType_Ready(&maker_type) < 0)
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL || PyModule_AddObjectRef(module, "Decoder", (PyObject *)&decoder_type) < 0 ||
        PyModule_AddObjectRef(module, "Encoder", (PyObject *)&encoder_type) < 0 ||
        PyModule_AddObjectRef(module, "Maker", (PyObject *)&maker_type) < 0) {
        Py_XDECREF(module);
        return NULL;
    }
    return module;
}
