/* From messages to bytes: one chunk, or several where records are sent as they are, as chunks of their own. */

#include "native.h"
#include "numbers.h"

enum { TEXT_ROOM = 512 };

static PyObject *file_slice_type;
static Py_ssize_t chunk_bytes_min;

/* *file_slice* is the class of records in a file. Records in memory become chunks if they have *bytes_min* bytes. */
void set_up_records(PyObject *file_slice, Py_ssize_t bytes_min)
{
    Py_XSETREF(file_slice_type, Py_NewRef(file_slice));
    chunk_bytes_min = bytes_min;
}

typedef struct {
    uint8_t *data;
    Py_ssize_t length, capacity;
    uint8_t room[TEXT_ROOM]; /* where short messages are written */
    PyObject *chunks;        /* the finished chunks, a new reference; NULL if there are none */
    Py_ssize_t finished;     /* the number of bytes in them */
} writer;

static int reserve(writer *out, Py_ssize_t more)
{
    if (out->capacity - out->length >= more)
        return 0;
    Py_ssize_t capacity = out->capacity * 2 > out->length + more ? out->capacity * 2 : out->length + more;
    uint8_t *data = PyMem_Realloc(out->data == out->room ? NULL : out->data, capacity);
    if (data == NULL)
        return -1;
    if (out->data == out->room)
        memcpy(data, out->room, out->length);
    out->data = data;
    out->capacity = capacity;
    return 0;
}

static int write_bytes(writer *out, const void *bytes, Py_ssize_t length)
{
    if (reserve(out, length) < 0)
        return -1;
    memcpy(out->data + out->length, bytes, length);
    out->length += length;
    return 0;
}

static int write_big_endian(writer *out, uint64_t value, int bytes)
{
    if (reserve(out, bytes) < 0)
        return -1;
    uint8_t *at = out->data + out->length;
    if (bytes == 8)
        put_u64(at, value);
    else if (bytes == 4)
        put_u32(at, (uint32_t)value);
    else if (bytes == 2)
        put_u16(at, (uint16_t)value);
    else
        *at = (uint8_t)value;
    out->length += bytes;
    return 0;
}

static int put_uvarint(uint8_t *at, uint64_t value)
{
    int bytes = 0;
    for (; value > 0x7F; value >>= 7)
        at[bytes++] = (uint8_t)(value | 0x80);
    at[bytes++] = (uint8_t)value;
    return bytes;
}

static int write_uvarint(writer *out, uint64_t value)
{
    if (reserve(out, 10) < 0)
        return -1;
    out->length += put_uvarint(out->data + out->length, value);
    return 0;
}

/* A length or a count; -1 is null. */
static int write_length(writer *out, int compact, int bytes, Py_ssize_t length)
{
    if (length > (bytes == 2 ? STRING_LENGTH_MAX : INT32_MAX))
        return -1;
    return compact ? write_uvarint(out, (uint64_t)(length + 1)) : write_big_endian(out, (uint64_t)length, bytes);
}

static int write_integer(writer *out, PyObject *value, int64_t least, int64_t most, int bytes)
{
    if (!PyLong_Check(value))
        return -1;
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow || number < least || number > most)
        return -1;
    return write_big_endian(out, (uint64_t)number, bytes);
}

static int write_fixed(writer *out, PyObject *value, char kind)
{
    switch (kind) {
    case KIND_BOOL:
        return PyBool_Check(value) ? write_big_endian(out, value == Py_True, 1) : -1;
    case KIND_I8:
        return write_integer(out, value, INT8_MIN, INT8_MAX, 1);
    case KIND_I16:
        return write_integer(out, value, INT16_MIN, INT16_MAX, 2);
    case KIND_U16:
        return write_integer(out, value, 0, UINT16_MAX, 2);
    case KIND_I32:
        return write_integer(out, value, INT32_MIN, INT32_MAX, 4);
    case KIND_U32:
        return write_integer(out, value, 0, UINT32_MAX, 4);
    case KIND_I64:
        return write_integer(out, value, INT64_MIN, INT64_MAX, 8);
    case KIND_F64: {
        if (!PyFloat_CheckExact(value) && !PyLong_CheckExact(value))
            return -1;
        double number = PyFloat_AsDouble(value);
        if (number == -1.0 && PyErr_Occurred())
            return -1;
        uint64_t bits;
        memcpy(&bits, &number, 8);
        return write_big_endian(out, bits, 8);
    }
    default: {
        uint8_t raw[16];
        return bytes_of_uuid(value, raw) < 0 ? -1 : write_bytes(out, raw, 16);
    }
    }
}

static int write_string(writer *out, PyObject *value, int compact)
{
    Py_ssize_t length;
    const char *text = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, &length) : NULL;
    return text == NULL || write_length(out, compact, 2, length) < 0 ? -1 : write_bytes(out, text, length);
}

static inline int is_in_memory(PyObject *value)
{
    return PyBytes_CheckExact(value) || PyMemoryView_Check(value) || PyByteArray_CheckExact(value);
}

static int write_blob(writer *out, PyObject *value, int compact)
{
    Py_buffer buffer;
    if (!is_in_memory(value) || PyObject_GetBuffer(value, &buffer, PyBUF_SIMPLE) < 0)
        return -1;
    int done = write_length(out, compact, 4, buffer.len) < 0 ? -1 : write_bytes(out, buffer.buf, buffer.len);
    PyBuffer_Release(&buffer);
    return done;
}

/* Make a chunk of what was written since the last one. */
static int finish_chunk(writer *out)
{
    if (out->chunks == NULL && (out->chunks = PyList_New(0)) == NULL)
        return -1;
    PyObject *chunk = PyBytes_FromStringAndSize((const char *)out->data, out->length);
    if (chunk == NULL)
        return -1;
    out->finished += out->length;
    out->length = 0;
    int done = PyList_Append(out->chunks, chunk);
    Py_DECREF(chunk);
    return done;
}

static int write_chunk(writer *out, PyObject *value, Py_ssize_t length)
{
    out->finished += length;
    return finish_chunk(out) < 0 ? -1 : PyList_Append(out->chunks, value);
}

/* Record batches: long ones, and those in a file, are sent as they are. */
static int write_records(writer *out, PyObject *value, int compact)
{
    int is_bytes = is_in_memory(value), done = -1;
    if (!is_bytes && (PyObject *)Py_TYPE(value) != file_slice_type)
        return -1; /* a sequence of several */
    Py_INCREF(value);
    Py_ssize_t length = PyObject_Size(value);
    if (is_bytes && 0 <= length && length < chunk_bytes_min)
        done = write_blob(out, value, compact);
    else if (length >= 0 && write_length(out, compact, 4, length) == 0)
        done = length == 0 ? 0 : write_chunk(out, value, length);
    Py_DECREF(value);
    return done;
}

static int write_struct(writer *out, PyObject *message, const layout *of);

static int write_element(writer *out, PyObject *value, const field *of, int compact, int nullable)
{
    if (value == Py_None) {
        int sized = of->kind == KIND_STRING || of->kind == KIND_BYTES || of->kind == KIND_RECORDS;
        return sized && nullable ? write_length(out, compact, of->kind == KIND_STRING ? 2 : 4, -1) : -1;
    }
    switch (of->kind) {
    case KIND_STRING:
        return write_string(out, value, compact);
    case KIND_BYTES:
        return write_blob(out, value, compact);
    case KIND_RECORDS:
        return write_records(out, value, compact);
    case KIND_STRUCT:
        return write_struct(out, value, of->inner);
    default:
        return write_fixed(out, value, of->kind);
    }
}

static int write_array(writer *out, PyObject *items, const field *of, int flexible)
{
    if (items == Py_None)
        return of->nullable ? write_length(out, flexible, 4, -1) : -1;
    if (!PyList_CheckExact(items) && !PyTuple_CheckExact(items))
        return -1;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(items);
    int done = write_length(out, flexible, 4, count);
    Py_INCREF(items);
    for (Py_ssize_t i = 0; i < count && done == 0; i++) {
        int same = PySequence_Fast_GET_SIZE(items) == count; /* else a value that runs code of its own has changed it */
        done = same ? write_element(out, PySequence_Fast_GET_ITEM(items, i), of, flexible, 0) : -1;
    }
    Py_DECREF(items);
    return done;
}

static int write_field(writer *out, PyObject *value, const field *of, int flexible)
{
    if (of->array)
        return write_array(out, value, of, flexible);
    if (of->kind == KIND_STRUCT && of->nullable) {
        if (value == Py_None)
            return write_big_endian(out, of->tag >= 0 ? 0 : 0xFF, 1);
        return write_big_endian(out, 1, 1) < 0 ? -1 : write_struct(out, value, of->inner);
    }
    return write_element(out, value, of, flexible && of->compact, of->nullable);
}

static inline int is_list(const field *of)
{
    return of->initial == (PyObject *)&PyList_Type;
}

/* Does a value differ from its field's default? -1 if that is hard to say. */
static int differs(PyObject *value, const field *of)
{
    if (value == of->initial)
        return 0;
    if (PyType_Check(of->initial)) /* the default is a new object: it can be compared only if it is a list */
        return is_list(of) && PyList_CheckExact(value) ? PyList_GET_SIZE(value) != 0 : -1;
    Py_INCREF(value);
    int found = PyObject_RichCompareBool(value, of->initial, Py_NE);
    Py_DECREF(value);
    return found;
}

/* Must a tagged field be sent? -1 if that is hard to say. */
static int is_sent(PyObject *value, const field *of)
{
    if (is_list(of) && (PyTuple_CheckExact(value) || value == Py_None))
        return value != Py_None && PyTuple_GET_SIZE(value) != 0;
    if (of->kind != KIND_STRUCT || of->array)
        return differs(value, of);
    if (of->nullable)
        return 1;
    if (value == Py_None)
        return 0;
    if (Py_TYPE(value) != of->inner->cls)
        return -1;
    const field *inner = of->inner->fields;
    Py_ssize_t count = of->inner->plain_count + of->inner->tagged_count + of->inner->absent_count;
    int found = 0;
    Py_INCREF(value);
    for (Py_ssize_t i = 0; i < count && found == 0; i++) {
        PyObject *part = *slot_of(value, inner + i);
        found = part == NULL ? -1 : differs(part, inner + i);
    }
    Py_DECREF(value);
    return found;
}

static int write_tag(writer *out, PyObject *message, const field *of)
{
    PyObject *value = *slot_of(message, of); /* a comparison may have replaced it meanwhile */
    if (value == NULL || write_uvarint(out, (uint64_t)of->tag) < 0)
        return -1;
    Py_ssize_t start = out->length, finished = out->finished;
    if (write_field(out, value, of, 1) < 0 || reserve(out, 10) < 0)
        return -1;
    if (out->finished != finished) /* records became a chunk, and the tag is in the chunk before it */
        return -1;
    uint8_t size[10];
    Py_ssize_t length = out->length - start, bytes = put_uvarint(size, (uint64_t)length);
    memmove(out->data + start + bytes, out->data + start, length);
    memcpy(out->data + start, size, bytes);
    out->length += bytes;
    return 0;
}

static int write_tags(writer *out, PyObject *message, const layout *of)
{
    const field *tagged = of->fields + of->plain_count;
    uint64_t sent = 0, count = 0;
    if (of->tagged_count > 64)
        return -1;
    for (Py_ssize_t i = 0; i < of->tagged_count; i++) {
        PyObject *value = *slot_of(message, tagged + i);
        int found = value == NULL ? -1 : is_sent(value, tagged + i);
        if (found < 0)
            return -1;
        sent |= (uint64_t)found << i;
        count += (uint64_t)found;
    }
    if (write_uvarint(out, count) < 0)
        return -1;
    for (Py_ssize_t i = 0; i < of->tagged_count && sent >> i; i++)
        if (sent >> i & 1 && write_tag(out, message, tagged + i) < 0)
            return -1;
    return 0;
}

static int write_struct(writer *out, PyObject *message, const layout *of)
{
    if (Py_TYPE(message) != of->cls)
        return -1;
    int done = 0;
    Py_INCREF(message);
    for (const field *next = of->fields, *end = next + of->plain_count; next < end && done == 0; next++) {
        PyObject *value = *slot_of(message, next);
        done = value == NULL ? -1 : write_field(out, value, next, of->flexible);
    }
    if (done == 0 && of->flexible)
        done = write_tags(out, message, of);
    Py_DECREF(message);
    return done;
}

/* Room for the size of the frame, its correlation id and, in a flexible version, an empty list of tagged fields. */
static int write_head(writer *out, PyObject *correlation_id, Py_ssize_t bytes)
{
    if (write_big_endian(out, 0, 4) < 0 || write_integer(out, correlation_id, INT32_MIN, INT32_MAX, 4) < 0)
        return -1;
    return bytes == 9 ? write_big_endian(out, 0, 1) : 0;
}

/* Write the size, now that it is known, into the header, which is at the beginning of the first chunk. */
static int write_size(writer *out)
{
    PyObject *first = PyList_GET_ITEM(out->chunks, 0);
    if (out->finished - 4 > INT32_MAX || !PyBytes_CheckExact(first))
        return -1;
    for (int i = 0; i < 4; i++)
        PyBytes_AS_STRING(first)[i] = (char)((out->finished - 4) >> (24 - 8 * i));
    return 0;
}

PyObject *encode(PyObject *callable, PyObject *const *args, size_t nargs, PyObject *names)
{
    codec *self = (codec *)callable;
    int has_head = self->number > 0;
    if (PyVectorcall_NARGS(nargs) != 1 + has_head || names != NULL)
        return fall_back(self, args, nargs, names);
    writer out;
    out.data = out.room;
    out.length = out.finished = 0;
    out.capacity = TEXT_ROOM;
    out.chunks = NULL;
    int done = has_head ? write_head(&out, args[1], self->number) : 0;
    if (done == 0)
        done = write_struct(&out, args[0], self->root);
    if (done == 0 && (out.length || out.chunks == NULL))
        done = finish_chunk(&out);
    if (done == 0 && has_head)
        done = write_size(&out);
    if (out.data != out.room)
        PyMem_Free(out.data);
    if (done == 0)
        return out.chunks;
    Py_XDECREF(out.chunks);
    return fall_back(self, args, nargs, names);
}
