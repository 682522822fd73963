/* The codec of all messages in C, for compiled builds. It does what wire/decoding.py and wire/encoding.py do, faster,
 * and only in the common case.
 *
 * A Decoder or an Encoder is made from a layout (wire/layout.py), which says where each field is in one version of one
 * message. It walks the layout and moves values between the bytes and the slots of the message's objects.
 *
 * The rule that keeps this short and safe: at any surprise (bytes that end too early, an impossible length, an unknown
 * tag, a number that does not fit) the codec drops what it has made and calls the generated function, which either
 * handles the case or knows which error to raise. So the codec raises no error of its own, and what it cannot do is not
 * refused yet. A function that returns NULL or -1 has met a surprise; it may or may not have set an exception.
 *
 * Values may run code of their own (a topic id that is compared, the length of a slice of a file), and that code may
 * change the message, or be interrupted. So the codec holds a reference to a value that runs code, and to each list and
 * message around it, until that is over; and it does not swallow an exception that is not about a value.
 */

#ifndef CORDWOOD_NATIVE_H
#define CORDWOOD_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { STRING_LENGTH_MAX = 0x7FFF };

/* The kinds of fields: the letters of the struct module, and some more. */
enum {
    KIND_BOOL = '?', KIND_I8 = 'b', KIND_I16 = 'h', KIND_I32 = 'i', KIND_I64 = 'q', KIND_U16 = 'H', KIND_U32 = 'I',
    KIND_F64 = 'd', KIND_UUID = 'U', KIND_STRING = 's', KIND_BYTES = 'y', KIND_RECORDS = 'r', KIND_STRUCT = '{'
};

struct layout;

typedef struct {
    PyObject *name;
    Py_ssize_t offset; /* of the slot in the object */
    char kind;
    unsigned char array, nullable, compact;
    long tag;          /* -1 if it is not tagged */
    Py_ssize_t least;  /* the fewest bytes that a value, or an element, can take */
    PyObject *initial; /* the default: a value, or a class that makes a new one (`list` or a message's class) */
    struct layout *inner;
} field;

typedef struct layout {
    PyTypeObject *cls;
    unsigned char flexible;
    Py_ssize_t plain_count, tagged_count, absent_count;
    field *fields; /* plain ones in order, then tagged ones by tag, then those that this version does not have */
} layout;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    layout *root;
    PyObject *fallback;
    /* in a Decoder: how many entries a message may have, in all its arrays and tags; in an Encoder: the bytes before
     * the message, which are those of a response's size and header, or none */
    Py_ssize_t number;
} codec;

static inline PyObject **slot_of(PyObject *message, const field *of)
{
    return (PyObject **)((char *)message + of->offset);
}

static inline PyObject *tuple_of(const long long *numbers, Py_ssize_t count)
{
    PyObject *made = PyTuple_New(count);
    for (Py_ssize_t i = 0; made != NULL && i < count; i++) {
        PyObject *number = PyLong_FromLongLong(numbers[i]);
        if (number == NULL)
            Py_CLEAR(made);
        else
            PyTuple_SET_ITEM(made, i, number);
    }
    return made;
}

/* layout.c */
layout *read_layout(PyObject *described);
void free_layout(layout *made);
PyObject *initial_of(const field *of);

/* uuids.c */
int set_up_uuids(PyObject *make_uuid);
int is_set_up(void);
PyObject *uuid_of(const uint8_t *raw);
int bytes_of_uuid(PyObject *uuid, uint8_t *raw);

/* crc.c: crc32c(data) -> int, if set_up_crc says that this processor has the instructions for it */
int set_up_crc(void);
uint32_t crc_of(const uint8_t *at, size_t size);
PyObject *crc32c_of(PyObject *module, PyObject *data);

/* batch.c, on the same processors: usual_batch(batch) -> header fields of a batch that can be accepted, or None */
PyObject *usual_batch(PyObject *module, PyObject *batch);
/* and on all: place_at(data), stamp(batch, base_offset, leader_epoch), add_entry(entries, size, first, second) */
PyObject *place_at(PyObject *module, PyObject *data);
PyObject *stamp(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *add_entry(PyObject *module, PyObject *const *args, Py_ssize_t nargs);

/* search.c: in ascending numbers, how many are at most a value, and the last entry whose number is */
PyObject *count_at_most(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *entry_at_most(PyObject *module, PyObject *const *args, Py_ssize_t nargs);
PyObject *count_numbers_at_most(PyObject *module, PyObject *const *args, Py_ssize_t nargs);

/* send.c, on Linux: send_chunks(socket, pieces) -> bytes left. Unlike the codec, it raises its own errors. */
PyObject *send_chunks(PyObject *module, PyObject *const *args, Py_ssize_t nargs);

/* pipe.c, on Linux: returns what sendfile would, or NO_PIPE if the slice must be sent in another way */
enum { NO_PIPE = -2 };
ssize_t send_long_slice(int socket, int file, off_t position, size_t length);

/* decode.c: decode(view, pos) -> (message, the position after it) */
PyObject *decode(PyObject *callable, PyObject *const *args, size_t nargs, PyObject *names);
PyObject *read_head(PyObject *module, PyObject *const *args, Py_ssize_t nargs);

/* encode.c: encode(message) -> chunks; with a header: encode(message, correlation_id) -> chunks */
PyObject *encode(PyObject *callable, PyObject *const *args, size_t nargs, PyObject *names);
void set_up_records(PyObject *file_slice, Py_ssize_t chunk_bytes_min);

/* module.c */
int may_give_up(void);
PyObject *fall_back(codec *self, PyObject *const *args, size_t nargs, PyObject *names);

#endif
