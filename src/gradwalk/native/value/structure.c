/* What people nest numbers in, for structure.py and compiler/reading.py: the common kinds, read in C. */

#include "value.h"

/* ---------------------------------------------------------------- rows */

/* Item i; a list may have changed meanwhile, because turning an object into a number can run Python code. New. */
PyObject *structure_item(PyObject *list, Py_ssize_t i)
{
    if (i >= PySequence_Fast_GET_SIZE(list)) {
        PyErr_SetString(PyExc_RuntimeError, "expected a list that stays as it is, got one that changed while being read");
        return NULL;
    }
    return Py_NewRef(PySequence_Fast_GET_ITEM(list, i));
}

static inline int structure_is_plain(PyObject *given)
{
    return PyFloat_CheckExact(given) || PyLong_CheckExact(given);
}

/* Whether a list or tuple holds nothing but floats and ints. New. */
static PyObject *structure_all_plain(PyObject *module, PyObject *numbers)
{
    (void)module;
    if (!PyList_Check(numbers) && !PyTuple_Check(numbers)) {
        PyErr_SetString(PyExc_TypeError, "all_plain: expected a list or tuple");
        return NULL;
    }
    PyObject **items = PySequence_Fast_ITEMS(numbers);
    Py_ssize_t i = 0, count = PySequence_Fast_GET_SIZE(numbers);
    while (i < count && structure_is_plain(items[i]))
        i++;
    return PyBool_FromLong(i == count);
}

/* Whether a list holds nothing but floats, and ints that are not beyond them all. New. */
static PyObject *structure_all_doubles(PyObject *module, PyObject *numbers)
{
    (void)module;
    if (!PyList_Check(numbers)) {
        PyErr_SetString(PyExc_TypeError, "all_doubles: expected a list");
        return NULL;
    }
    int known = 1;
    for (Py_ssize_t i = 0; known && i < PyList_GET_SIZE(numbers); i++) {
        PyObject *number = PyList_GET_ITEM(numbers, i);
        known = PyFloat_CheckExact(number)
             || (PyLong_CheckExact(number) && !(PyLong_AsDouble(number) == -1.0 && PyErr_Occurred()));
    }
    PyErr_Clear();
    return PyBool_FromLong(known);
}

/* The type that all items of a list or tuple have; NULL if they differ, or there are none. Borrowed. */
static PyTypeObject *structure_type_of_all(PyObject *items)
{
    PyObject **each = PySequence_Fast_ITEMS(items);
    Py_ssize_t i = 0, count = PySequence_Fast_GET_SIZE(items);
    while (i < count && Py_TYPE(each[i]) == Py_TYPE(each[0]))
        i++;
    return i == count && count > 0 ? Py_TYPE(each[0]) : NULL;
}

/* The same for Python: None if they differ. New. */
static PyObject *structure_only_type(PyObject *module, PyObject *items)
{
    (void)module;
    if (!PyList_Check(items) && !PyTuple_Check(items)) {
        PyErr_SetString(PyExc_TypeError, "only_type: expected a list or tuple");
        return NULL;
    }
    PyTypeObject *type = structure_type_of_all(items);
    return Py_NewRef(type != NULL ? (PyObject *)type : Py_None);
}

int structure_doubles_of(PyObject *array, Py_buffer *view, int flags)
{
    if (PyObject_GetBuffer(array, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | flags) < 0)
        return -1;
    if (strcmp(view->format, "d") == 0)
        return 0;
    PyErr_Format(PyExc_TypeError, "expected an array of doubles, got one of the format %s", view->format);
    PyBuffer_Release(view);
    return -1;
}

/* Floats, ints, and what Values hold. False where there is something else among them, or with an exception set. */
static int structure_write_row(PyObject *numbers, double *into, Py_ssize_t room)
{
    if (!PyList_Check(numbers) || PyList_GET_SIZE(numbers) != room) {
        PyErr_Format(PyExc_ValueError, "write: expected a list of %zd numbers", room);
        return 0;
    }
    for (Py_ssize_t i = 0; i < room; i++) {
        PyObject *number = PyList_GET_ITEM(numbers, i); /* nothing here runs Python code: the list stays as it is */
        if (PyFloat_CheckExact(number))
            into[i] = PyFloat_AS_DOUBLE(number);
        else if (PyLong_CheckExact(number))
            into[i] = PyLong_AsDouble(number);
        else if (is_value(number))
            into[i] = ((Value *)number)->data;
        else
            return 0;
    }
    return !PyErr_Occurred();
}

/* Writes the numbers of a list into an array of as many doubles, or of a list of lists into one with as many rows. New. */
static PyObject *structure_write(PyObject *module, PyObject *const *arguments, Py_ssize_t given)
{
    (void)module;
    if (given != 2 || !PyList_Check(arguments[0])) {
        PyErr_SetString(PyExc_TypeError, "write: expected a list and an array");
        return NULL;
    }
    PyObject *numbers = arguments[0];
    Py_buffer view;
    if (structure_doubles_of(arguments[1], &view, PyBUF_WRITABLE) < 0)
        return NULL;
    int known = 1, rows = view.ndim == 2;
    Py_ssize_t count = rows ? view.shape[0] : 1, room = view.len / (Py_ssize_t)sizeof(double) / (count ? count : 1);
    for (Py_ssize_t i = 0; i < count && known; i++) {
        PyObject *row = !rows ? numbers : i < PyList_GET_SIZE(numbers) ? PyList_GET_ITEM(numbers, i) : Py_None;
        known = structure_write_row(row, (double *)view.buf + i * room, room);
    }
    PyBuffer_Release(&view);
    return PyErr_Occurred() ? NULL : PyBool_FromLong(known);
}

/* ---------------------------------------------------------------- arguments */

typedef struct {
    PyObject *numbers, *holders;            /* lists: what was found, in order */
    PyObject *row, *sequence, *mapping;     /* the Kinds of structure.py */
    PyObject *of_float, *of_int, *of_value; /* keys */
    PyObject *other;                        /* a function: reads whatever is of no common kind */
} Reader;

static PyObject *structure_key(const Reader *self, PyObject *whole);

/* Of each item of a list or tuple. New. */
static PyObject *structure_keys(const Reader *self, PyObject *items)
{
    Py_ssize_t count = PySequence_Fast_GET_SIZE(items);
    PyObject *keys = PyTuple_New(count);
    for (Py_ssize_t i = 0; keys != NULL && i < count; i++) {
        PyObject *item = structure_item(items, i);
        PyObject *key = item != NULL ? structure_key(self, item) : NULL;
        Py_XDECREF(item);
        if (key == NULL)
            Py_CLEAR(keys);
        else
            PyTuple_SET_ITEM(keys, i, key);
    }
    return keys;
}

static int structure_extend(PyObject *list, PyObject *items)
{
    return PyList_SetSlice(list, PY_SSIZE_T_MAX, PY_SSIZE_T_MAX, items);
}

/* New. */
static PyObject *structure_key_of_sequence(const Reader *self, PyObject *whole)
{
    PyTypeObject *kind = structure_type_of_all(whole);
    if (kind == &PyFloat_Type || kind == &PyLong_Type || kind == value_type) {
        if (structure_extend(self->numbers, whole) < 0
            || (kind == value_type && structure_extend(self->holders, whole) < 0)
            || PyList_Append(self->holders, whole) < 0)
            return NULL;
        return Py_BuildValue("OOnO", self->row, Py_TYPE(whole), PySequence_Fast_GET_SIZE(whole), kind);
    }
    PyObject *keys = PyList_Append(self->holders, whole) < 0 ? NULL : structure_keys(self, whole);
    return keys != NULL ? Py_BuildValue("OO()N", self->sequence, Py_TYPE(whole), keys) : NULL;
}

/* Of a dict whose keys are texts; NULL without an exception for another. New. */
static PyObject *structure_key_of_dict(const Reader *self, PyObject *whole)
{
    PyObject *names = PyDict_Keys(whole), *made = NULL;
    if (names != NULL && (PyList_GET_SIZE(names) == 0 || structure_type_of_all(names) == &PyUnicode_Type)) {
        PyObject *parts = PyList_Append(self->holders, whole) < 0 ? NULL : PyDict_Values(whole);
        PyObject *keys = parts != NULL ? structure_keys(self, parts) : NULL;
        PyObject *in_order = keys != NULL ? PyList_AsTuple(names) : NULL;
        if (in_order != NULL)
            made = Py_BuildValue("OO(N())O", self->mapping, &PyDict_Type, in_order, keys);
        Py_XDECREF(parts);
        Py_XDECREF(keys);
    }
    Py_XDECREF(names);
    return made;
}

/* New. */
static PyObject *structure_key(const Reader *self, PyObject *whole)
{
    if (PyFloat_CheckExact(whole))
        return PyList_Append(self->numbers, whole) < 0 ? NULL : Py_NewRef(self->of_float);
    if (PyLong_CheckExact(whole))
        return PyList_Append(self->numbers, whole) < 0 ? NULL : Py_NewRef(self->of_int);
    if (is_value(whole))
        return PyList_Append(self->numbers, whole) < 0 || PyList_Append(self->holders, whole) < 0
             ? NULL : Py_NewRef(self->of_value);
    if (Py_EnterRecursiveCall(" in the structure of an argument"))
        return NULL;
    PyObject *key = PyList_CheckExact(whole) || PyTuple_CheckExact(whole) ? structure_key_of_sequence(self, whole)
                  : PyDict_CheckExact(whole) ? structure_key_of_dict(self, whole) : NULL;
    if (key == NULL && !PyErr_Occurred())
        key = PyObject_CallOneArg(self->other, whole);
    Py_LeaveRecursiveCall();
    return key;
}

/* structure_keys for Python. New. */
static PyObject *structure_read(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 5 || !PyTuple_Check(arguments[0]) || !PyList_Check(arguments[1]) || !PyList_Check(arguments[2])
        || !PyTuple_Check(arguments[3]) || PyTuple_GET_SIZE(arguments[3]) != 6) {
        PyErr_SetString(PyExc_TypeError, "read: expected a tuple, two lists, the kinds and a function");
        return NULL;
    }
    PyObject **kinds = PySequence_Fast_ITEMS(arguments[3]);
    Reader reader = {arguments[1], arguments[2], kinds[0], kinds[1], kinds[2], kinds[3], kinds[4], kinds[5],
                     arguments[4]};
    return structure_keys(&reader, arguments[0]);
}

/* ---------------------------------------------------------------- what is there twice */

/* Which of a list's items are one object: a tuple of pairs, the place of each that was there before, and where; but of
 * tuples, which cannot change. New. */
static PyObject *structure_repetitions(PyObject *module, PyObject *items)
{
    (void)module;
    if (!PyList_Check(items)) {
        PyErr_SetString(PyExc_TypeError, "repetitions: expected a list");
        return NULL;
    }
    enum { FEW = 32 };
    Py_ssize_t on_stack[2 * FEW] = {0}, *places = on_stack, room = 2 * FEW, count = PyList_GET_SIZE(items);
    PyObject *found = NULL; /* a list, made when it is needed */
    int failed = 0;
    if (count > FEW) {
        while (room < 2 * count)
            room *= 2;
        if ((places = PyMem_Calloc((size_t)room, sizeof *places)) == NULL)
            return PyErr_NoMemory();
    }
    /* a table of places, one more each; 0: empty. Making a pair may run the collector, and with it who shortens the list */
    for (Py_ssize_t i = 0; i < count && i < PyList_GET_SIZE(items) && !failed; i++) {
        PyObject *item = PyList_GET_ITEM(items, i);
        size_t at = (size_t)((uintptr_t)item >> 4) * (size_t)UINT64_C(0x9E3779B97F4A7C15) >> 20;
        at &= (size_t)room - 1;
        while (places[at] != 0 && PyList_GET_ITEM(items, places[at] - 1) != item)
            at = (at + 1) & ((size_t)room - 1);
        if (places[at] == 0) {
            places[at] = i + 1;
        }
        else if (!PyTuple_CheckExact(item)) {
            PyObject *pair = found != NULL || (found = PyList_New(0)) != NULL
                           ? Py_BuildValue("nn", i, places[at] - 1) : NULL;
            failed = pair == NULL || PyList_Append(found, pair) < 0;
            Py_XDECREF(pair);
        }
    }
    if (places != on_stack)
        PyMem_Free(places);
    PyObject *made = failed ? NULL : found != NULL ? PyList_AsTuple(found) : PyTuple_New(0);
    Py_XDECREF(found);
    return made;
}

PyMethodDef structure_functions[] = {
    {"all_plain", structure_all_plain, METH_O,
     INSIDE("all_plain(numbers, /)\n--\n\nWhether a list or tuple holds nothing but floats and ints.")},
    {"all_doubles", structure_all_doubles, METH_O,
     INSIDE("all_doubles(numbers, /)\n--\n\n"
     "Whether a list holds nothing but floats, and ints that are not beyond them all.")},
    {"only_type", structure_only_type, METH_O,
     INSIDE("only_type(items, /)\n--\n\nThe type that all items of a list or tuple have; None if they differ.")},
    {"write", (PyCFunction)(void (*)(void))structure_write, METH_FASTCALL,
     INSIDE("write(numbers, array, /)\n--\n\n"
     "Write a list of floats, ints and Values into an array of as many doubles, or a list of lists into one with rows; "
     "False if there is anything else.")},
    {"read", (PyCFunction)(void (*)(void))structure_read, METH_FASTCALL,
     INSIDE("read(arguments, numbers, holders, kinds, other, /)\n--\n\n"
     "The key of each argument, as Arguments in compiler/reading.py says it; `other` is asked for rarer kinds.")},
    {"repetitions", structure_repetitions, METH_O,
     INSIDE("repetitions(items, /)\n--\n\n"
     "Which items are one object: the place of each that was there before, and where. Tuples do not count.")},
    {NULL, NULL, 0, NULL},
};
