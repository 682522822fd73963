/* Sends the chunks of replies, bytes and slices of files, in one call. Where this function is missing,
 * _send_one_by_one in run/client_socket.py does the same, but without the cork and the pipe, and it raises at once an
 * error that occurs after something was sent.
 *
 * Other threads run while data is sent. So everything that is needed then is taken beforehand: numbers are copied, and
 * the buffers of bytes are held.
 */

#ifdef __linux__

#include "native.h"
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

enum { JOINED_BYTES_MAX = 1 << 16 };      /* as in run/client_socket.py */
enum { JOINED_MAX = 128, ON_STACK = 32 }; /* most pieces in one system call; most without a malloc */
enum { LONG_BYTES = 1 << 18 };            /* slices of this size or more gain by a pipe */
enum { FILE_ENDED = -1 };

/* What is left of a chunk; never empty. */
typedef struct {
    const char *data; /* NULL for a slice of a file */
    size_t length;
    off_t position;
    int file;
    Py_buffer view; /* holds the buffer of bytes */
} piece;

typedef struct {
    int socket;
    piece *next, *end;
    Py_ssize_t left; /* bytes of all pieces */
    int has_slices, is_corked;
    int ends_in_slice; /* in its only slice */
    int failure; /* an errno, or FILE_ENDED */
} reply;

/* -1 and an exception if the object is not a number from 0 to *max*. */
static long long number_of(PyObject *object, long long max)
{
    long long number = PyLong_Check(object) ? PyLong_AsLongLong(object) : -1;
    if (number >= 0 && number <= max)
        return number;
    if (!PyErr_Occurred())
        PyErr_Format(PyLong_Check(object) ? PyExc_ValueError : PyExc_TypeError, "%R is not a number from 0 to %lld",
                     object, max);
    return -1;
}

static int read_bytes(piece *into, PyObject *bytes)
{
    if (PyObject_GetBuffer(bytes, &into->view, PyBUF_SIMPLE) < 0)
        return -1;
    into->data = into->view.buf;
    into->length = (size_t)into->view.len;
    return 0;
}

static int read_slice(piece *into, PyObject *numbers)
{
    if (PyTuple_GET_SIZE(numbers) != 3) {
        PyErr_SetString(PyExc_ValueError, "a slice is a file descriptor, a position and a length");
        return -1;
    }
    long long file = number_of(PyTuple_GET_ITEM(numbers, 0), INT_MAX);
    long long position = file < 0 ? -1 : number_of(PyTuple_GET_ITEM(numbers, 1), PY_SSIZE_T_MAX);
    long long length = position < 0 ? -1 : number_of(PyTuple_GET_ITEM(numbers, 2), PY_SSIZE_T_MAX);
    *into = (piece){.length = (size_t)length, .position = (off_t)position, .file = (int)file};
    return length < 0 ? -1 : 0;
}

/* An empty piece is released at once, so that no system call is made for it. */
static int add(reply *of, piece *read)
{
    if (read->length == 0) {
        PyBuffer_Release(&read->view);
        return 0;
    }
    of->end = read + 1;
    of->ends_in_slice = read->data == NULL && !of->has_slices;
    of->has_slices |= read->data == NULL;
    if (!__builtin_add_overflow(of->left, (Py_ssize_t)read->length, &of->left))
        return 0;
    PyErr_SetString(PyExc_OverflowError, "more bytes than can be counted");
    return -1;
}

static int read_pieces(reply *into, PyObject *tuple)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
        PyObject *item = PyTuple_GET_ITEM(tuple, i);
        piece *read = into->end;
        if ((PyTuple_Check(item) ? read_slice(read, item) : read_bytes(read, item)) < 0 || add(into, read) < 0)
            return -1;
    }
    return 0;
}

static void cork(reply *of, int on)
{
    int is_done = setsockopt(of->socket, IPPROTO_TCP, TCP_CORK, &on, sizeof on) == 0;
    of->is_corked = on && is_done; /* only TCP sockets can be corked */
}

/* A slice leaves in many packets, each as soon as it is full. Without a cork, an acknowledgement from the client makes
 * the last packet leave partly filled, and the few bytes that end a reply would be a packet of their own. For a header
 * and one short slice, MSG_MORE is enough. */
static int is_to_be_corked(const reply *of)
{
    return of->has_slices && (!of->ends_in_slice || of->left >= LONG_BYTES);
}

static ssize_t send_short_slice(reply *of)
{
    off_t position = of->next->position;
    return sendfile(of->socket, of->next->file, &position, of->next->length);
}

static ssize_t send_slice(reply *of)
{
    const piece *slice = of->next;
    ssize_t sent = NO_PIPE;
    if (slice->length >= LONG_BYTES)
        sent = send_long_slice(of->socket, slice->file, slice->position, slice->length);
    if (sent == NO_PIPE)
        sent = send_short_slice(of);
    if (sent == 0)
        of->failure = FILE_ENDED; /* only a bug, or somebody who edits our files, can cause that */
    return sent;
}

/* Send neighbouring small pieces in one system call. */
static ssize_t send_bytes(reply *of)
{
    struct iovec parts[JOINED_MAX];
    const piece *at = of->next;
    size_t size = 0, count = 0;
    do {
        parts[count++] = (struct iovec){.iov_base = (char *)at->data, .iov_len = at->length};
        size += at++->length;
    } while (at < of->end && at->data != NULL && count < JOINED_MAX && size + at->length <= JOINED_BYTES_MAX);
    int flags = at < of->end ? MSG_MORE : 0; /* otherwise the client would be woken for the header alone */
    if (count == 1)
        return send(of->socket, parts->iov_base, size, flags);
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
    return sendmsg(of->socket, &message, flags);
}

static void take_off(reply *of, size_t sent)
{
    of->left -= (Py_ssize_t)sent;
    for (; sent > 0 && sent >= of->next->length; of->next++)
        sent -= of->next->length;
    if (sent == 0)
        return;
    of->next->length -= sent;
    if (of->next->data)
        of->next->data += sent;
    else
        of->next->position += (off_t)sent;
}

/* Send until everything is sent, the socket is full, or there is an error. */
static void send_all(reply *of)
{
    if (is_to_be_corked(of))
        cork(of, 1);
    while (of->next < of->end && !of->failure) {
        ssize_t sent = of->next->data ? send_bytes(of) : send_slice(of);
        if (sent >= 0)
            take_off(of, (size_t)sent);
        else if (errno != EINTR)
            of->failure = errno;
    }
    if (of->is_corked)
        cork(of, 0);
}

/* Return how many bytes are left. An error after something was sent is not raised: sending the rest meets it again. */
static PyObject *send_reply(reply *of)
{
    Py_ssize_t before = of->left;
    Py_BEGIN_ALLOW_THREADS
    send_all(of);
    Py_END_ALLOW_THREADS
    if (of->failure == 0 || of->failure == EAGAIN || of->left < before)
        return PyLong_FromSsize_t(of->left);
    if (of->failure == FILE_ENDED) {
        PyErr_SetString(PyExc_OSError, "a segment file ended before its slice");
        return NULL;
    }
    errno = of->failure;
    return PyErr_SetFromErrno(PyExc_OSError);
}

static PyObject *send_tuple(int socket, PyObject *tuple)
{
    piece few[ON_STACK];
    Py_ssize_t count = PyTuple_GET_SIZE(tuple);
    piece *pieces = count <= ON_STACK ? few : PyMem_New(piece, count);
    if (pieces == NULL)
        return PyErr_NoMemory();
    reply of = {.socket = socket, .next = pieces, .end = pieces};
    PyObject *left = read_pieces(&of, tuple) < 0 ? NULL : send_reply(&of);
    for (piece *read = pieces; read < of.end; read++)
        PyBuffer_Release(&read->view);
    if (pieces != few)
        PyMem_Free(pieces);
    return left;
}

PyObject *send_chunks(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2 || !PyList_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "send_chunks(socket, list of pieces)");
        return NULL;
    }
    long long socket = number_of(args[0], INT_MAX);
    PyObject *tuple = socket < 0 ? NULL : PyList_AsTuple(args[1]); /* a copy that nobody can change */
    if (tuple == NULL)
        return NULL;
    PyObject *left = send_tuple((int)socket, tuple);
    Py_DECREF(tuple);
    return left;
}

#endif
