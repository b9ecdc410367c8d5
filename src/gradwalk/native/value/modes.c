/* What may be different while a `with` block is active, in this thread: no recording, a function that is told of every
 * new node, a function that is told of every comparison. The fast path asks one global flag whether any is in use. */

#include "value.h"

typedef struct {
    int no_grad;
    PyObject *on_record;  /* called with every recorded node, or NULL */
    PyObject *on_compare; /* called with (left, right, sign, outcome) of every comparison, or NULL */
    PyObject *on_read;    /* called with every Value whose data is read, or NULL */
} Modes;

int modes_in_use;
static _Thread_local Modes modes;

/* Steals `out` and returns it, or NULL with an exception set. */
Value *modes_recorded(Value *out)
{
    if (out == NULL)
        return NULL;
    if (scopes_in_use)
        slab_tag(out);
    if (modes.on_record != NULL) {
        PyObject *hook = modes.on_record;
        Py_INCREF(hook);
        PyObject *result = PyObject_CallOneArg(hook, (PyObject *)out);
        Py_DECREF(hook);
        if (result == NULL) {
            Py_DECREF(out);
            return NULL;
        }
        Py_DECREF(result);
    }
    if (modes.no_grad)
        value_forget_history(out);
    return out;
}

int modes_compared(PyObject *left, PyObject *right, int comparison, int outcome)
{
    static const char *const signs[] = {"<", "<=", "==", "!=", ">", ">="};
    if (modes.on_compare == NULL)
        return 0;
    PyObject *hook = modes.on_compare;
    Py_INCREF(hook);
    PyObject *result = PyObject_CallFunction(hook, "OOsO", left, right, signs[comparison],
                                             outcome ? Py_True : Py_False);
    Py_DECREF(hook);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

int modes_read(PyObject *value)
{
    if (modes.on_read == NULL)
        return 0;
    PyObject *hook = Py_NewRef(modes.on_read);
    PyObject *result = PyObject_CallOneArg(hook, value);
    Py_DECREF(hook);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

/* What the hook gives in place of the number of a Value that is read, None for nothing; NULL with an exception. New. */
PyObject *modes_read_data(PyObject *value)
{
    if (modes.on_read == NULL)
        Py_RETURN_NONE;
    PyObject *hook = Py_NewRef(modes.on_read);
    PyObject *instead = PyObject_CallFunctionObjArgs(hook, value, Py_True, NULL);
    Py_DECREF(hook);
    return instead;
}

/* The modes of this thread as a tuple. New. */
PyObject *modes_current(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *hooks[] = {modes.on_record, modes.on_compare, modes.on_read};
    for (int i = 0; i < 3; i++)
        hooks[i] = hooks[i] ? hooks[i] : Py_None;
    return Py_BuildValue("OOOO", modes.no_grad ? Py_True : Py_False, hooks[0], hooks[1], hooks[2]);
}

static PyObject *swap_hook(PyObject **place, PyObject *hook)
{
    PyObject *before = *place ? *place : Py_NewRef(Py_None);
    *place = hook == Py_None ? NULL : Py_NewRef(hook);
    return before;
}

/* The modes of this thread as a tuple, to be given back to modes_set. New. */
PyObject *modes_set(PyObject *module, PyObject *args)
{
    (void)module;
    int no_grad;
    PyObject *on_record, *on_compare, *on_read;
    if (!PyArg_ParseTuple(args, "pOOO:set_modes", &no_grad, &on_record, &on_compare, &on_read))
        return NULL;
    PyObject *before = PyTuple_New(4);
    if (before == NULL)
        return NULL;
    modes_in_use = 1; /* once used, always asked: other threads may be inside a block of their own */
    PyTuple_SET_ITEM(before, 0, PyBool_FromLong(modes.no_grad));
    modes.no_grad = no_grad;
    PyTuple_SET_ITEM(before, 1, swap_hook(&modes.on_record, on_record));
    PyTuple_SET_ITEM(before, 2, swap_hook(&modes.on_compare, on_compare));
    PyTuple_SET_ITEM(before, 3, swap_hook(&modes.on_read, on_read));
    return before;
}
