/* What is looked at of a batch that a client produces: its header, its checksum, and how long its first record is; and the
 * place in the log that is written into it.
 *
 * As in the codec, what is usual is known here and nothing else: record/batch.py's produced_batch has the same rules with
 * what is wrong with a batch that breaks them, and is asked about all that this one does not take.
 */

#include "native.h"

enum {
    LENGTH_AT = 8, EPOCH_AT = 12, MAGIC_AT = 16, CRC_AT = 17, ATTRIBUTES_AT = 21, DELTA_AT = 23, BASE_TIMESTAMP_AT = 27,
    MAX_TIMESTAMP_AT = 35, PRODUCER_AT = 43, PRODUCER_EPOCH_AT = 51, SEQUENCE_AT = 53, COUNT_AT = 57, HEADER_SIZE = 61
};
enum { MAGIC = 2, RECORD_SIZE_MIN = 7, VARINT_SIZE_MAX = 5 };
enum { CODEC_MASK = 0x07, CODEC_MAX = 4, LOG_APPEND_TIME = 0x08 };

static uint64_t number_at(const uint8_t *at, int size)
{
    uint64_t number = 0;
    while (size--)
        number = number << 8 | *at++;
    return number;
}

static int16_t i16_at(const uint8_t *at)
{
    return (int16_t)number_at(at, 2);
}

static int32_t i32_at(const uint8_t *at)
{
    return (int32_t)number_at(at, 4);
}

static int64_t i64_at(const uint8_t *at)
{
    return (int64_t)number_at(at, 8);
}

/* Does the first record leave room for the others, and nothing if it is alone? */
static int first_record_fits(const uint8_t *at, int64_t size, int64_t count)
{
    uint64_t length = 0;
    int used = 0;
    do {
        if (used == VARINT_SIZE_MAX || used == size)
            return 0;
        length |= (uint64_t)(at[used] & 0x7F) << 7 * used;
    } while (at[used++] & 0x80);
    int64_t rest = size - used - (int64_t)(length >> 1);
    return !(length & 1) && rest >= (count - 1) * RECORD_SIZE_MIN && (rest == 0 || count > 1);
}

static int is_usual(const uint8_t *batch, Py_ssize_t size)
{
    if (size < HEADER_SIZE || batch[MAGIC_AT] != MAGIC || i32_at(batch + LENGTH_AT) != size - EPOCH_AT)
        return 0;
    int64_t count = i32_at(batch + COUNT_AT), records_size = size - HEADER_SIZE;
    int attributes = (uint16_t)i16_at(batch + ATTRIBUTES_AT), codec = attributes & CODEC_MASK;
    if (i64_at(batch) != 0 || count <= 0 || i32_at(batch + DELTA_AT) != count - 1 || codec > CODEC_MAX ||
        attributes & ~(CODEC_MASK | LOG_APPEND_TIME))
        return 0;
    if (codec == 0 && (count * RECORD_SIZE_MIN > records_size ||
                       !first_record_fits(batch + HEADER_SIZE, records_size, count)))
        return 0;
    if (i64_at(batch + PRODUCER_AT) >= 0 && (i32_at(batch + SEQUENCE_AT) < 0 || i16_at(batch + PRODUCER_EPOCH_AT) < 0))
        return 0;
    return crc_of(batch + ATTRIBUTES_AT, (size_t)(size - ATTRIBUTES_AT)) == (uint32_t)number_at(batch + CRC_AT, 4);
}

/* The fields that the size of a batch and the rules above do not give, in their order. */
static PyObject *fields_of(const uint8_t *batch)
{
    const long long fields[] = {
        i32_at(batch + EPOCH_AT),
        (long long)number_at(batch + CRC_AT, 4),
        i16_at(batch + ATTRIBUTES_AT),
        i64_at(batch + BASE_TIMESTAMP_AT),
        i64_at(batch + MAX_TIMESTAMP_AT),
        i64_at(batch + PRODUCER_AT),
        i16_at(batch + PRODUCER_EPOCH_AT),
        i32_at(batch + SEQUENCE_AT),
        i32_at(batch + COUNT_AT),
    };
    const Py_ssize_t count = sizeof fields / sizeof *fields;
    PyObject *found = PyTuple_New(count);
    for (Py_ssize_t i = 0; found != NULL && i < count; i++) {
        PyObject *number = PyLong_FromLongLong(fields[i]);
        if (number == NULL)
            Py_CLEAR(found);
        else
            PyTuple_SET_ITEM(found, i, number);
    }
    return found;
}

PyObject *usual_batch(PyObject *Py_UNUSED(module), PyObject *batch)
{
    Py_buffer view;
    if (PyObject_GetBuffer(batch, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *found = is_usual(view.buf, view.len) ? fields_of(view.buf) : Py_NewRef(Py_None);
    PyBuffer_Release(&view);
    return found;
}

static void put_number(uint8_t *at, int size, uint64_t number)
{
    for (int i = size; i--; number >>= 8)
        at[i] = (uint8_t)number;
}

static int stamp_place(PyObject *batch, Py_ssize_t position, long long base_offset, long length, long leader_epoch)
{
    Py_buffer view;
    if (PyObject_GetBuffer(batch, &view, PyBUF_WRITABLE) < 0)
        return -1;
    int fits = position >= 0 && position <= view.len - MAGIC_AT;
    if (fits) {
        uint8_t *at = (uint8_t *)view.buf + position;
        put_number(at, 8, (uint64_t)base_offset);
        put_number(at + LENGTH_AT, 4, (uint64_t)length);
        put_number(at + EPOCH_AT, 4, (uint64_t)leader_epoch);
    } else
        PyErr_SetString(PyExc_ValueError, "there is no room for a batch's place");
    PyBuffer_Release(&view);
    return fits ? 0 : -1;
}

/* What the packing of a struct does, which takes three times the instructions. */
PyObject *stamp(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 5) {
        PyErr_SetString(PyExc_TypeError, "stamp(batch, position, base_offset, length, leader_epoch)");
        return NULL;
    }
    Py_ssize_t position = PyLong_AsSsize_t(args[1]);
    long long base_offset = PyLong_AsLongLong(args[2]);
    long length = PyLong_AsLong(args[3]), leader_epoch = PyLong_AsLong(args[4]);
    if (!PyErr_Occurred() && (length != (int32_t)length || leader_epoch != (int32_t)leader_epoch))
        PyErr_SetString(PyExc_OverflowError, "a length and a leader epoch have 32 bits");
    if (PyErr_Occurred() || stamp_place(args[0], position, base_offset, length, leader_epoch) < 0)
        return NULL;
    Py_RETURN_NONE;
}
