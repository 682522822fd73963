/* Layouts, made from the descriptions of wire/layout.py. They cannot be recursive, and live as long as their codec. */

#include "native.h"

#include <structmember.h>

void free_layout(layout *made)
{
    if (made == NULL)
        return;
    Py_ssize_t count = made->fields ? made->plain_count + made->tagged_count + made->absent_count : 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_XDECREF(made->fields[i].name);
        Py_XDECREF(made->fields[i].initial);
        free_layout(made->fields[i].inner);
    }
    PyMem_Free(made->fields);
    Py_XDECREF(made->cls);
    PyMem_Free(made);
}

static int read_field(field *made, PyTypeObject *cls, PyObject *described)
{
    int kind;
    PyObject *name, *initial, *inner;
    if (!PyArg_ParseTuple(described, "UCbbblnOO", &name, &kind, &made->array, &made->nullable, &made->compact,
                          &made->tag, &made->least, &initial, &inner))
        return -1;
    if (kind == 0 || kind > 127 || !strchr("?bhiqHIdUsyr{", kind) || (kind == KIND_STRUCT) != (inner != Py_None)) {
        PyErr_Format(PyExc_ValueError, "%U is of no known kind", name);
        return -1;
    }
    made->kind = (char)kind;
    made->initial = Py_NewRef(initial);
    made->name = Py_NewRef(name);
    PyUnicode_InternInPlace(&made->name);
    PyObject *member = PyObject_GetAttr((PyObject *)cls, made->name);
    if (member == NULL)
        return -1;
    if (!Py_IS_TYPE(member, &PyMemberDescr_Type) || !PyType_IsSubtype(cls, PyDescr_TYPE(member)) ||
        ((PyMemberDescrObject *)member)->d_member->type != T_OBJECT_EX) {
        Py_DECREF(member);
        PyErr_Format(PyExc_TypeError, "%U is not a slot", made->name);
        return -1;
    }
    made->offset = ((PyMemberDescrObject *)member)->d_member->offset;
    Py_DECREF(member);
    return inner == Py_None || (made->inner = read_layout(inner)) != NULL ? 0 : -1;
}

layout *read_layout(PyObject *described)
{
    PyObject *cls, *groups[3];
    unsigned char flexible;
    if (!PyArg_ParseTuple(described, "O!bO!O!O!", &PyType_Type, &cls, &flexible, &PyTuple_Type, &groups[0],
                          &PyTuple_Type, &groups[1], &PyTuple_Type, &groups[2]))
        return NULL;
    layout *made = PyMem_Calloc(1, sizeof(layout));
    if (made == NULL)
        return (layout *)PyErr_NoMemory();
    made->cls = (PyTypeObject *)Py_NewRef(cls);
    made->flexible = flexible;
    made->plain_count = PyTuple_GET_SIZE(groups[0]);
    made->tagged_count = PyTuple_GET_SIZE(groups[1]);
    made->absent_count = PyTuple_GET_SIZE(groups[2]);
    Py_ssize_t count = made->plain_count + made->tagged_count + made->absent_count, next = 0;
    made->fields = PyMem_Calloc(count ? count : 1, sizeof(field));
    if (made->fields == NULL) {
        free_layout(made);
        return (layout *)PyErr_NoMemory();
    }
    for (int group = 0; group < 3; group++)
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(groups[group]); i++)
            if (read_field(&made->fields[next++], made->cls, PyTuple_GET_ITEM(groups[group], i)) < 0) {
                free_layout(made);
                return NULL;
            }
    return made;
}

/* A new reference to a field's default. */
PyObject *initial_of(const field *of)
{
    if (of->initial == (PyObject *)&PyList_Type)
        return PyList_New(0);
    return PyType_Check(of->initial) ? PyObject_CallNoArgs(of->initial) : Py_NewRef(of->initial);
}
