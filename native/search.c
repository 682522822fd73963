/* Binary searches in ascending numbers, as log/search.py describes them: how many are at most some value. */

#include "native.h"
#include "numbers.h"

static int64_t number_at(const uint8_t *at, Py_ssize_t bytes)
{
    return bytes == 8 ? i64_at(at) : i32_at(at);
}

/* A value that does not fit is clamped, which gives the same count. */
static int64_t value_of(PyObject *object)
{
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    return overflow > 0 ? INT64_MAX : overflow < 0 ? INT64_MIN : value;
}

static PyObject *refused(void)
{
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "these are not entries with such a number in them");
    return NULL;
}

/* How many entries of *size* bytes have a number of *bytes* bytes at position *at* that is at most *value*. */
static Py_ssize_t count_entries(const Py_buffer *entries, Py_ssize_t size, Py_ssize_t at, Py_ssize_t bytes, int64_t value)
{
    const uint8_t *first = (const uint8_t *)entries->buf + at;
    Py_ssize_t low = 0, high = entries->len / size;
    while (low < high) {
        Py_ssize_t middle = low + (high - low) / 2;
        if (number_at(first + middle * size, bytes) <= value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* count_at_most(entries, bytes per entry, position of the number in an entry, bytes of the number, value) */
PyObject *count_at_most(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    Py_buffer entries;
    if (nargs != 5)
        return refused();
    Py_ssize_t size = PyLong_AsSsize_t(args[1]), at = PyLong_AsSsize_t(args[2]), bytes = PyLong_AsSsize_t(args[3]);
    int64_t value = value_of(args[4]);
    if (PyErr_Occurred() || at < 0 || (bytes != 4 && bytes != 8) || bytes > size || at > size - bytes)
        return refused();
    if (PyObject_GetBuffer(args[0], &entries, PyBUF_SIMPLE) < 0)
        return NULL;
    Py_ssize_t count = count_entries(&entries, size, at, bytes, value);
    PyBuffer_Release(&entries);
    return PyLong_FromSsize_t(count);
}

static PyObject *entry_at(const uint8_t *at, Py_ssize_t first_bytes)
{
    const long long numbers[] = {number_at(at, first_bytes), i32_at(at + first_bytes)};
    return tuple_of(numbers, 2);
}

/* entry_at_most(entries, bytes per entry, which of its two numbers, value): the second number is the last 4 bytes. */
PyObject *entry_at_most(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    enum { SECOND_BYTES = 4 };
    Py_buffer entries;
    if (nargs != 4)
        return refused();
    Py_ssize_t size = PyLong_AsSsize_t(args[1]), column = PyLong_AsSsize_t(args[2]);
    int64_t value = value_of(args[3]);
    if (PyErr_Occurred() || (size != 8 && size != 12) || (column != 0 && column != 1))
        return refused();
    if (PyObject_GetBuffer(args[0], &entries, PyBUF_SIMPLE) < 0)
        return NULL;
    Py_ssize_t first_bytes = size - SECOND_BYTES, at = column == 0 ? 0 : first_bytes;
    Py_ssize_t count = count_entries(&entries, size, at, column == 0 ? first_bytes : SECOND_BYTES, value);
    PyObject *found = count > 0 ? entry_at((const uint8_t *)entries.buf + (count - 1) * size, first_bytes)
                                : Py_NewRef(Py_None);
    PyBuffer_Release(&entries);
    return found;
}

/* count_numbers_at_most(numbers, value): in an array("q") */
PyObject *count_numbers_at_most(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    Py_buffer numbers;
    if (nargs != 2)
        return refused();
    int64_t value = value_of(args[1]);
    if (PyErr_Occurred() || PyObject_GetBuffer(args[0], &numbers, PyBUF_ND | PyBUF_FORMAT) < 0)
        return NULL;
    if (numbers.itemsize != 8 || numbers.ndim != 1 || numbers.format == NULL || strcmp(numbers.format, "q") != 0) {
        PyBuffer_Release(&numbers);
        return refused();
    }
    const char *first = numbers.buf; /* in a view, they may be unaligned */
    Py_ssize_t low = 0, high = numbers.len / 8;
    while (low < high) {
        Py_ssize_t middle = low + (high - low) / 2;
        int64_t number;
        memcpy(&number, first + middle * 8, 8);
        if (number <= value)
            low = middle + 1;
        else
            high = middle;
    }
    PyBuffer_Release(&numbers);
    return PyLong_FromSsize_t(low);
}
