/* From bytes to messages.
 *
 * No length is believed before it is compared with what is left of the buffer, and no count before it is compared with
 * what is left divided by the least size of an element. No more entries are created than a message may have. The depth
 * of the calls below is that of the message's declaration, whatever the bytes are.
 */

#include "native.h"
#include "numbers.h"

/* More than any message has in one array. Here a list of the claimed length is allocated before the first element is
 * read; the generated function appends the elements one by one. */
enum { COUNT_MAX = 1 << 20 };

typedef struct {
    PyObject *view;
    const uint8_t *data;
    Py_ssize_t pos, limit;
    Py_ssize_t room; /* how many more entries are allowed */
} reader;

static inline int has(const reader *in, Py_ssize_t bytes)
{
    return in->limit - in->pos >= bytes;
}

static int read_long_uvarint(reader *in, Py_ssize_t *value)
{
    uint64_t sum = 0;
    for (int shift = 0; shift < 35; shift += 7) {
        if (!has(in, 1))
            return -1;
        uint8_t byte = in->data[in->pos++];
        sum |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            *value = (Py_ssize_t)sum;
            return sum > INT32_MAX ? -1 : 0;
        }
    }
    return -1;
}

/* Most varints are one byte long. */
static inline int read_uvarint(reader *in, Py_ssize_t *value)
{
    if (!has(in, 1) || in->data[in->pos] > 0x7F)
        return read_long_uvarint(in, value);
    *value = in->data[in->pos++];
    return 0;
}

/* A length or a count; -1 is null. */
static int read_length(reader *in, int compact, int bytes, Py_ssize_t *length)
{
    if (compact) {
        if (read_uvarint(in, length) < 0)
            return -1;
        *length -= 1;
        return 0;
    }
    if (!has(in, bytes))
        return -1;
    const uint8_t *at = in->data + in->pos;
    in->pos += bytes;
    *length = bytes == 2 ? i16_at(at) : i32_at(at);
    return *length < -1 ? -1 : 0;
}

static PyObject *slice(reader *in, Py_ssize_t length)
{
    PyObject *start = PyLong_FromSsize_t(in->pos), *stop = PyLong_FromSsize_t(in->pos + length), *found = NULL;
    PyObject *range = start && stop ? PySlice_New(start, stop, NULL) : NULL;
    if (range != NULL)
        found = PyObject_GetItem(in->view, range);
    Py_XDECREF(range);
    Py_XDECREF(start);
    Py_XDECREF(stop);
    return found;
}

/* A string, bytes or records. */
static PyObject *read_sized(reader *in, const field *of, int compact, int nullable)
{
    Py_ssize_t length;
    if (read_length(in, compact, of->kind == KIND_STRING ? 2 : 4, &length) < 0)
        return NULL;
    if (length < 0)
        return nullable ? Py_NewRef(Py_None) : NULL;
    if (!has(in, length) || (of->kind == KIND_STRING && length > STRING_LENGTH_MAX))
        return NULL;
    const char *at = (const char *)in->data + in->pos;
    PyObject *found = of->kind == KIND_STRING  ? PyUnicode_DecodeUTF8(at, length, NULL)
                      : of->kind == KIND_BYTES ? PyBytes_FromStringAndSize(at, length)
                                               : slice(in, length);
    in->pos += length;
    return found;
}

static PyObject *read_fixed(reader *in, char kind)
{
    static const uint8_t sizes[128] = {['?'] = 1, ['b'] = 1, ['h'] = 2, ['H'] = 2, ['i'] = 4,
                                       ['I'] = 4, ['q'] = 8, ['d'] = 8, ['U'] = 16};
    int size = sizes[(uint8_t)kind];
    if (!has(in, size))
        return NULL;
    const uint8_t *at = in->data + in->pos;
    in->pos += size;
    switch (kind) {
    case KIND_BOOL:
        return PyBool_FromLong(*at != 0);
    case KIND_I8:
        return PyLong_FromLong((int8_t)*at);
    case KIND_I16:
        return PyLong_FromLong(i16_at(at));
    case KIND_U16:
        return PyLong_FromLong(u16_at(at));
    case KIND_I32:
        return PyLong_FromLong(i32_at(at));
    case KIND_U32:
        return PyLong_FromLongLong(u32_at(at));
    case KIND_I64:
        return PyLong_FromLongLong(i64_at(at));
    case KIND_F64: {
        uint64_t bits = u64_at(at);
        double number;
        memcpy(&number, &bits, 8);
        return PyFloat_FromDouble(number);
    }
    default:
        return uuid_of(at);
    }
}

static PyObject *read_struct(reader *in, const layout *of);

static PyObject *read_element(reader *in, const field *of, int compact, int nullable)
{
    switch (of->kind) {
    case KIND_STRING:
    case KIND_BYTES:
    case KIND_RECORDS:
        return read_sized(in, of, compact, nullable);
    case KIND_STRUCT:
        return read_struct(in, of->inner);
    default:
        return read_fixed(in, of->kind);
    }
}

static PyObject *read_array(reader *in, const field *of, int flexible)
{
    Py_ssize_t count;
    if (read_length(in, flexible, 4, &count) < 0)
        return NULL;
    if (count < 0)
        return of->nullable ? Py_NewRef(Py_None) : NULL;
    if (of->least <= 0 || count > COUNT_MAX || count > (in->limit - in->pos) / of->least || (in->room -= count) < 0)
        return NULL;
    PyObject *items = PyList_New(count);
    for (Py_ssize_t i = 0; items != NULL && i < count; i++) {
        PyObject *item = read_element(in, of, flexible, 0);
        if (item == NULL)
            Py_CLEAR(items);
        else
            PyList_SET_ITEM(items, i, item);
    }
    return items;
}

static PyObject *read_nullable_struct(reader *in, const field *of)
{
    if (!has(in, 1))
        return NULL;
    int8_t mark = (int8_t)in->data[in->pos++];
    if (mark == 1)
        return read_struct(in, of->inner);
    return mark == (of->tag >= 0 ? 0 : -1) ? Py_NewRef(Py_None) : NULL;
}

static PyObject *read_field_value(reader *in, const field *of, int flexible)
{
    if (of->array)
        return read_array(in, of, flexible);
    if (of->kind == KIND_STRUCT && of->nullable)
        return read_nullable_struct(in, of);
    return read_element(in, of, flexible && of->compact, of->nullable);
}

/* The tagged fields at the end of a struct: tags must ascend and be known, and each field be as long as it claims. */
static int read_tags(reader *in, const layout *of, PyObject *message)
{
    Py_ssize_t count, tag, length, previous = -1;
    if (read_uvarint(in, &count) < 0)
        return -1;
    if (count == 0)
        return 0;
    if (count > (in->limit - in->pos) / 2 || (in->room -= count) < 0)
        return -1;
    for (; count; count--) {
        if (read_uvarint(in, &tag) < 0 || read_uvarint(in, &length) < 0 || tag <= previous || !has(in, length))
            return -1;
        const field *tagged = of->fields + of->plain_count, *last = tagged + of->tagged_count;
        while (tagged < last && tagged->tag != tag)
            tagged++;
        if (tagged == last)
            return -1;
        Py_ssize_t end = in->pos + length;
        PyObject *value = read_field_value(in, tagged, 1);
        if (value == NULL)
            return -1;
        Py_XSETREF(*slot_of(message, tagged), value);
        if (in->pos != end)
            return -1;
        previous = tag;
    }
    return 0;
}

static PyObject *read_struct(reader *in, const layout *of)
{
    PyObject *message = of->cls->tp_alloc(of->cls, 0);
    if (message == NULL)
        return NULL;
    const field *next = of->fields, *plain_end = next + of->plain_count;
    for (; next < plain_end; next++)
        if ((*slot_of(message, next) = read_field_value(in, next, of->flexible)) == NULL)
            goto surprise;
    for (const field *end = plain_end + of->tagged_count + of->absent_count; next < end; next++)
        if ((*slot_of(message, next) = initial_of(next)) == NULL)
            goto surprise;
    if (of->flexible && read_tags(in, of, message) < 0)
        goto surprise;
    return message;
surprise:
    Py_DECREF(message);
    return NULL;
}

/* Hold the bytes of a one-dimensional view, so that they stay in place until they are released. */
static int hold_bytes(PyObject *view, Py_buffer *bytes)
{
    if (!PyMemoryView_Check(view) || PyObject_GetBuffer(view, bytes, PyBUF_ND) < 0)
        return -1;
    if (bytes->ndim == 1 && bytes->itemsize == 1)
        return 0;
    PyBuffer_Release(bytes);
    return -1;
}

PyObject *decode(PyObject *callable, PyObject *const *args, size_t nargs, PyObject *names)
{
    codec *self = (codec *)callable;
    Py_buffer bytes;
    if (PyVectorcall_NARGS(nargs) != 2 || names != NULL || hold_bytes(args[0], &bytes) < 0)
        return fall_back(self, args, nargs, names);
    reader in = {args[0], bytes.buf, PyLong_AsSsize_t(args[1]), bytes.len, self->number};
    PyObject *message = in.pos < 0 || in.pos > in.limit ? NULL : read_struct(&in, self->root);
    PyBuffer_Release(&bytes);
    if (message == NULL)
        return fall_back(self, args, nargs, names);
    PyObject *end = PyLong_FromSsize_t(in.pos), *found = end ? PyTuple_New(2) : NULL;
    if (found == NULL) {
        Py_DECREF(message);
        Py_XDECREF(end);
        return NULL;
    }
    PyTuple_SET_ITEM(found, 0, message);
    PyTuple_SET_ITEM(found, 1, end);
    return found;
}

static PyObject *read_usual_head(const uint8_t *at, Py_ssize_t limit, PyObject *flexible_from)
{
    int version = i16_at(at + 2), length = i16_at(at + 8);
    Py_ssize_t body = 10 + length;
    PyObject *found = NULL, *key = PyLong_FromLong(i16_at(at));
    PyObject *first = key ? PyDict_GetItemWithError(flexible_from, key) : NULL;
    PyObject *client = first && PyLong_Check(first) && length >= 0 && body <= limit
                           ? PyUnicode_DecodeUTF8((const char *)at + 10, length, NULL)
                           : NULL;
    long flexible = client ? PyLong_AsLong(first) : 0;
    if (flexible == -1 && PyErr_Occurred())
        Py_CLEAR(client);
    if (client != NULL && version >= flexible)
        if (body >= limit || at[body++] != 0) /* there are tagged fields */
            Py_CLEAR(client);
    if (client != NULL)
        found = Py_BuildValue("(OiiNn)", key, version, (int)i32_at(at + 4), client, body);
    Py_XDECREF(key);
    return found;
}

/* read_head(frame, flexible_from) -> (api key, version, correlation id, client id, where the body begins), or None for
 * an unusual header. *flexible_from* has the first flexible version of each API. */
PyObject *read_head(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    Py_buffer bytes;
    if (nargs != 2 || !PyDict_CheckExact(args[1]) || hold_bytes(args[0], &bytes) < 0)
        return may_give_up() ? Py_NewRef(Py_None) : NULL;
    PyObject *found = bytes.len < 10 ? NULL : read_usual_head(bytes.buf, bytes.len, args[1]);
    PyBuffer_Release(&bytes);
    return found == NULL && may_give_up() ? Py_NewRef(Py_None) : found;
}
