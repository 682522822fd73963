/* The check of a batch that a client produces (its header, its checksum, and the length of its first record), and the
 * numbers that say where a batch is: stamped into the batch, packed into an index, and read back.
 *
 * As in the codec, only the common case is handled here. produced_batch in record/batch.py has the same rules, and the
 * errors for batches that break them; it is asked about every batch that usual_batch does not accept.
 */

#include "native.h"
#include "numbers.h"

enum {
    LENGTH_AT = 8, EPOCH_AT = 12, MAGIC_AT = 16, CRC_AT = 17, ATTRIBUTES_AT = 21, DELTA_AT = 23, BASE_TIMESTAMP_AT = 27,
    MAX_TIMESTAMP_AT = 35, PRODUCER_AT = 43, PRODUCER_EPOCH_AT = 51, SEQUENCE_AT = 53, COUNT_AT = 57, HEADER_SIZE = 61
};
enum { MAGIC = 2, RECORD_SIZE_MIN = 7, VARINT_SIZE_MAX = 5 };
enum { CODEC_MASK = 0x07, CODEC_MAX = 4, LOG_APPEND_TIME = 0x08 };

/* Does the first record leave enough room for the others, or no room at all if it is the only one? */
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
    return crc_of(batch + ATTRIBUTES_AT, (size_t)(size - ATTRIBUTES_AT)) == u32_at(batch + CRC_AT);
}

/* The header fields that do not follow from the size of the batch and the rules above, in the order of the header. */
static PyObject *fields_of(const uint8_t *batch)
{
    const long long fields[] = {
        i32_at(batch + EPOCH_AT),
        u32_at(batch + CRC_AT),
        i16_at(batch + ATTRIBUTES_AT),
        i64_at(batch + BASE_TIMESTAMP_AT),
        i64_at(batch + MAX_TIMESTAMP_AT),
        i64_at(batch + PRODUCER_AT),
        i16_at(batch + PRODUCER_EPOCH_AT),
        i32_at(batch + SEQUENCE_AT),
        i32_at(batch + COUNT_AT),
    };
    return tuple_of(fields, sizeof fields / sizeof *fields);
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

/* Like place_at in record/batch.py, which knows what is wrong with a batch for which this returns None. */
PyObject *place_at(PyObject *Py_UNUSED(module), PyObject *data)
{
    Py_buffer view;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    const uint8_t *batch = view.buf;
    PyObject *found = NULL;
    long long place[3];
    if (view.len >= HEADER_SIZE && batch[MAGIC_AT] == MAGIC && i32_at(batch + LENGTH_AT) >= HEADER_SIZE - EPOCH_AT) {
        place[0] = i64_at(batch);
        place[2] = (long long)i32_at(batch + LENGTH_AT) + EPOCH_AT;
        if (!__builtin_add_overflow(place[0], (long long)i32_at(batch + DELTA_AT), &place[1]))
            found = tuple_of(place, 3);
    }
    PyBuffer_Release(&view);
    return found != NULL || PyErr_Occurred() ? found : Py_NewRef(Py_None);
}

/* stamp(batch, base_offset, leader_epoch): the checksum covers neither. */
PyObject *stamp(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 3) {
        PyErr_SetString(PyExc_TypeError, "stamp(batch, base_offset, leader_epoch)");
        return NULL;
    }
    long long base_offset = PyLong_AsLongLong(args[1]), leader_epoch = PyLong_AsLongLong(args[2]);
    if ((base_offset == -1 || leader_epoch == -1) && PyErr_Occurred())
        return NULL;
    Py_buffer view;
    if (PyObject_GetBuffer(args[0], &view, PyBUF_WRITABLE) < 0)
        return NULL;
    int fits = view.len >= MAGIC_AT && leader_epoch == (int32_t)leader_epoch;
    if (fits) {
        put_u64(view.buf, (uint64_t)base_offset);
        put_u32((uint8_t *)view.buf + EPOCH_AT, (uint32_t)leader_epoch);
    } else
        PyErr_SetString(PyExc_ValueError, "this is no batch, or no leader epoch");
    PyBuffer_Release(&view);
    return fits ? Py_NewRef(Py_None) : NULL;
}

/* add_entry(entries, size, first, second): append an index entry of *size* bytes, *second* in the last four. */
PyObject *add_entry(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 4 || !PyByteArray_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "add_entry(entries, size, first, second)");
        return NULL;
    }
    long long size = PyLong_AsLongLong(args[1]), first = PyLong_AsLongLong(args[2]), second = PyLong_AsLongLong(args[3]);
    if ((size == -1 || first == -1 || second == -1) && PyErr_Occurred())
        return NULL;
    if ((size != 8 && size != 12) || (size == 8 && first != (int32_t)first) || second != (int32_t)second) {
        PyErr_SetString(PyExc_ValueError, "there is no such entry");
        return NULL;
    }
    Py_ssize_t end = PyByteArray_GET_SIZE(args[0]);
    if (PyByteArray_Resize(args[0], end + (Py_ssize_t)size) < 0)
        return NULL;
    uint8_t *at = (uint8_t *)PyByteArray_AS_STRING(args[0]) + end;
    if (size == 8)
        put_u32(at, (uint32_t)first);
    else
        put_u64(at, (uint64_t)first);
    put_u32(at + size - 4, (uint32_t)second);
    Py_RETURN_NONE;
}
