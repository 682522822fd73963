/* Topic ids. The same few occur again and again, so some are cached, both by their bytes and by their objects. */

#include "native.h"

static PyObject *make_uuid, *int_name, *to_bytes_name, *big_name, *sixteen;

enum { UUIDS = 64 };

typedef struct {
    uint8_t raw[16];
    PyObject *uuid; /* NULL if this entry is empty */
} known_uuid;

static known_uuid by_bytes[UUIDS], by_object[UUIDS];

static void remember(known_uuid *at, const uint8_t *raw, PyObject *uuid)
{
    memcpy(at->raw, raw, 16);
    Py_XSETREF(at->uuid, Py_NewRef(uuid));
}

PyObject *uuid_of(const uint8_t *raw)
{
    known_uuid *known = &by_bytes[raw[15] % UUIDS];
    if (known->uuid != NULL && memcmp(known->raw, raw, 16) == 0)
        return Py_NewRef(known->uuid);
    PyObject *bytes = PyBytes_FromStringAndSize((const char *)raw, 16);
    PyObject *made = bytes ? PyObject_CallOneArg(make_uuid, bytes) : NULL;
    if (made != NULL) /* the copy, because the bytes of the frame may have changed meanwhile */
        remember(known, (const uint8_t *)PyBytes_AS_STRING(bytes), made);
    Py_XDECREF(bytes);
    return made;
}

int bytes_of_uuid(PyObject *uuid, uint8_t *raw)
{
    known_uuid *known = &by_object[((uintptr_t)uuid >> 4) % UUIDS];
    if (known->uuid != NULL && known->uuid == uuid) {
        memcpy(raw, known->raw, 16);
        return 0;
    }
    Py_INCREF(uuid);
    PyObject *number = PyObject_GetAttr(uuid, int_name);
    PyObject *bytes = number ? PyObject_CallMethodObjArgs(number, to_bytes_name, sixteen, big_name, NULL) : NULL;
    int done = bytes && PyBytes_Check(bytes) && PyBytes_GET_SIZE(bytes) == 16 ? 0 : -1;
    if (done == 0) {
        memcpy(raw, PyBytes_AS_STRING(bytes), 16);
        remember(known, raw, uuid);
    }
    Py_XDECREF(bytes);
    Py_XDECREF(number);
    Py_DECREF(uuid);
    return done;
}

/* *make*, called with bytes, makes the UUIDs that are not cached. */
int set_up_uuids(PyObject *make)
{
    Py_XSETREF(int_name, PyUnicode_InternFromString("int"));
    Py_XSETREF(to_bytes_name, PyUnicode_InternFromString("to_bytes"));
    Py_XSETREF(big_name, PyUnicode_InternFromString("big"));
    Py_XSETREF(sixteen, PyLong_FromLong(16));
    if (!int_name || !to_bytes_name || !big_name || !sixteen)
        return -1;
    Py_XSETREF(make_uuid, Py_NewRef(make));
    return 0;
}

int is_set_up(void)
{
    return make_uuid != NULL;
}
