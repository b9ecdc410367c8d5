/* What may be different inside a `with` block (modes.py): no recording, a scope, functions that are told what happens.
 *
 * It is kept in a context variable, which threads and asyncio tasks have each for themselves, and which nobody but
 * Change sets. The fast path asks one global flag whether a mode was ever in use; then, whether a Change was entered or
 * left, or the interpreter has gone to another thread or context, since the last look. */

#include "value.h"

/* places in the named tuple */
enum { NO_GRAD, ON_RECORD, ON_COMPARE, ON_READ, ON_CONSTRUCT, SCOPE, CHANGES = 12, AROUND };

#define LOOK_AGAIN UINT64_MAX /* the version of no context */

int modes_in_use;
Modes modes;

static PyObject *variable; /* modes.VARIABLE */
static PyObject *names;    /* a tuple: of the modes, in order */

COLD int modes_ready(void)
{
    PyObject *module = PyImport_ImportModule("gradwalk.modes");
    PyObject *type = module ? PyObject_GetAttrString(module, "Modes") : NULL;
    names = type ? PyObject_GetAttrString(type, "_fields") : NULL;
    variable = names ? PyObject_GetAttrString(module, "VARIABLE") : NULL;
    Py_XDECREF(type);
    Py_XDECREF(module);
    return variable == NULL ? -1 : 0;
}

/* What is in force in this context. New. */
static PyObject *modes_in_force(void)
{
    PyObject *tuple = NULL;
    return PyContextVar_Get(variable, NULL, &tuple) < 0 ? NULL : tuple;
}

static PyObject *modes_hook_at(PyObject *tuple, Py_ssize_t place)
{
    PyObject *hook = PyTuple_GET_ITEM(tuple, place);
    return hook == Py_None ? NULL : hook;
}

static int modes_kinds_in(PyObject *tuple)
{
    int records = PyTuple_GET_ITEM(tuple, NO_GRAD) == Py_True || modes_hook_at(tuple, ON_RECORD) != NULL
               || PyObject_IsTrue(PyTuple_GET_ITEM(tuple, SCOPE)) != 0;
    return (records ? MODES_RECORD : 0) | (modes_hook_at(tuple, ON_COMPARE) ? MODES_COMPARE : 0)
         | (modes_hook_at(tuple, ON_READ) ? MODES_READ : 0) | (modes_hook_at(tuple, ON_CONSTRUCT) ? MODES_CONSTRUCT : 0);
}

/* The hooks are borrowed: the context holds them, and is looked at again before it can let go. */
void modes_look_again(PyThreadState *thread)
{
    PyObject *tuple = modes_in_force();
    if (tuple == NULL) {
        PyErr_Clear(); /* out of memory: as they were */
        return;
    }
    modes.no_grad = PyTuple_GET_ITEM(tuple, NO_GRAD) == Py_True;
    modes.on_record = modes_hook_at(tuple, ON_RECORD);
    modes.on_compare = modes_hook_at(tuple, ON_COMPARE);
    modes.on_read = modes_hook_at(tuple, ON_READ);
    modes.on_construct = modes_hook_at(tuple, ON_CONSTRUCT);
    modes.scope = (unsigned)PyLong_AsUnsignedLong(PyTuple_GET_ITEM(tuple, SCOPE));
    modes.thread = thread;
    modes.id = thread->id;
    modes.version = thread->context_ver;
    Py_DECREF(tuple);
}

/* Calls a hook, which may end the block that set it. -1 with an exception set. */
static int modes_tell(PyObject *hook, PyObject *value)
{
    Py_INCREF(hook);
    PyObject *result = PyObject_CallOneArg(hook, value);
    Py_DECREF(hook);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

/* Steals `out` and returns it, or NULL with an exception set. */
Value *modes_recorded(Value *out)
{
    if (out == NULL)
        return NULL;
    modes_look();
    if (scopes_in_use)
        slab_tag(out);
    int no_grad = modes.no_grad;
    if (modes.on_record != NULL && modes_tell(modes.on_record, (PyObject *)out) < 0) {
        Py_DECREF(out);
        return NULL;
    }
    if (no_grad)
        value_forget_history(out);
    return out;
}

int modes_compared(PyObject *left, PyObject *right, int comparison, int outcome)
{
    static const char *const signs[] = {"<", "<=", "==", "!=", ">", ">="};
    modes_look();
    if (modes.on_compare == NULL)
        return 0;
    PyObject *hook = Py_NewRef(modes.on_compare);
    PyObject *result = PyObject_CallFunction(hook, "OOsO", left, right, signs[comparison],
                                             outcome ? Py_True : Py_False);
    Py_DECREF(hook);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

/* What the hook makes of a Value whose numbers are read or set. New, or NULL with an exception. */
static PyObject *modes_told_of_read(PyObject *value, const char *what)
{
    PyObject *hook = Py_NewRef(modes.on_read);
    PyObject *result = PyObject_CallFunction(hook, "Os", value, what);
    Py_DECREF(hook);
    return result;
}

int modes_read(PyObject *value, const char *what)
{
    modes_look();
    PyObject *result = modes.on_read == NULL ? Py_NewRef(Py_None) : modes_told_of_read(value, what);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

COLD int modes_read_all(PyObject *values)
{
    modes_look();
    int failed = 0;
    for (Py_ssize_t i = 0; modes.on_read != NULL && !failed && i < PySequence_Fast_GET_SIZE(values); i++) {
        PyObject *value = structure_item(values, i);
        failed = value == NULL || (is_value(value) && modes_read(value, "") < 0);
        Py_XDECREF(value);
    }
    return failed ? -1 : 0;
}

/* What the hook gives in place of the number of a Value that is read, None for nothing; NULL with an exception. New. */
PyObject *modes_read_data(PyObject *value)
{
    modes_look();
    if (modes.on_read == NULL)
        Py_RETURN_NONE;
    return modes_told_of_read(value, "data");
}

int modes_constructed(PyObject *value)
{
    modes_look();
    return modes.on_construct == NULL ? 0 : modes_tell(modes.on_construct, value);
}

/* ---------------------------------------------------------------- Change: a block with other modes
 * In C, so that no signal handler runs between the change and the protected block, nor before it is undone. From Python
 * 3.14 on one does run before the block is protected: then nobody calls __exit__, and the end of the Change undoes it. */

typedef struct {
    PyObject_HEAD
    PyObject *changes; /* a dict: name → what it is inside */
    PyObject *token;   /* what undoes it, or NULL outside of the block */
    PyObject *before;  /* what was in force around the block */
    PyObject *after;   /* what is in force inside */
} Change;

static int change_init(PyObject *self, PyObject *args, PyObject *changes)
{
    Change *change = (Change *)self;
    if (PyTuple_GET_SIZE(args) > 0) {
        PyErr_SetString(PyExc_TypeError, "Change: expected modes by name");
        return -1;
    }
    if (changes == NULL)
        changes = PyDict_New();
    else if (Py_REFCNT(changes) == 1) /* made for this call */
        Py_INCREF(changes);
    else
        changes = PyDict_Copy(changes);
    if (changes == NULL)
        return -1;
    Py_XSETREF(change->changes, changes);
    return 0;
}

/* -1 with an exception set if there is no such mode. Runs nobody's code. */
static Py_ssize_t modes_place_of(PyObject *name)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        if (PyTuple_GET_ITEM(names, i) == name) /* both are interned: they stand in somebody's code */
            return i;
    }
    if (PyUnicode_CheckExact(name))
        return PySequence_Index(names, name);
    PyErr_Format(PyExc_TypeError, "Change: expected the name of a mode, got %R", (PyObject *)Py_TYPE(name));
    return -1;
}

static void modes_put(PyObject *tuple, Py_ssize_t place, PyObject *value)
{
    PyObject *before = PyTuple_GET_ITEM(tuple, place);
    PyTuple_SET_ITEM(tuple, place, Py_NewRef(value));
    Py_DECREF(before);
}

/* The named tuple with the changes made. New. */
COLD static PyObject *modes_with_changes(PyObject *before, PyObject *changes)
{
    PyTypeObject *type = Py_TYPE(before);
    Py_ssize_t count = PyTuple_GET_SIZE(before), at = 0;
    PyObject *after = type->tp_alloc(type, count), *name, *value;
    for (Py_ssize_t i = 0; after != NULL && i < count; i++)
        PyTuple_SET_ITEM(after, i, Py_NewRef(PyTuple_GET_ITEM(before, i)));
    while (after != NULL && changes != NULL && PyDict_Next(changes, &at, &name, &value)) { /* NULL: no __init__ */
        Py_ssize_t place = modes_place_of(name);
        if (place < 0) {
            Py_CLEAR(after);
            break;
        }
        modes_put(after, place, value);
    }
    if (after != NULL) {
        modes_put(after, CHANGES, changes);
        modes_put(after, AROUND, before);
    }
    return after;
}

/* What would be in force without that block, which is not the innermost one: those that began in it begin again around
 * it. As it is, where the block is not in force. New. */
COLD static PyObject *modes_without(PyObject *now, PyObject *block)
{
    PyObject *at = now, *kept = PyList_New(0);
    while (kept != NULL && at != Py_None && PyTuple_GET_ITEM(at, CHANGES) != PyTuple_GET_ITEM(block, CHANGES)) {
        if (PyList_Append(kept, at) < 0)
            Py_CLEAR(kept);
        at = PyTuple_GET_ITEM(at, AROUND);
    }
    if (kept == NULL)
        return NULL;
    PyObject *made = Py_NewRef(at == Py_None ? now : PyTuple_GET_ITEM(at, AROUND));
    for (Py_ssize_t i = at == Py_None ? 0 : PyList_GET_SIZE(kept); made != NULL && i > 0; i--)
        Py_SETREF(made, modes_with_changes(made, PyTuple_GET_ITEM(PyList_GET_ITEM(kept, i - 1), CHANGES)));
    Py_DECREF(kept);
    return made;
}

/* Undoes the change, if it was made and is in force here; may leave an exception set. */
COLD static void modes_undo(Change *change)
{
    PyObject *token = change->token;
    change->token = NULL;
    modes.version = LOOK_AGAIN;
    if (token != NULL) {
        int collecting = PyGC_Disable(); /* as in modes_enter */
        PyObject *now = modes_in_force();
        if (now != NULL && now != change->after) /* blocks that began in it are still there, or it is another context */
            Py_SETREF(now, modes_without(now, change->after));
        else if (now != NULL && PyContextVar_Reset(variable, token) == 0)
            Py_CLEAR(now);
        else if (now != NULL) {
            PyErr_Clear(); /* a copy of the context; or no memory: what the failure let go of may be enough */
            Py_SETREF(now, Py_NewRef(change->before));
        }
        if (now != NULL)
            Py_XDECREF(PyContextVar_Set(variable, now));
        Py_XDECREF(now);
        if (collecting)
            PyGC_Enable();
    }
    Py_XDECREF(token);
    Py_CLEAR(change->before);
    Py_CLEAR(change->after);
}

static int change_clear(PyObject *self)
{
    Change *change = (Change *)self;
    if (change->token != NULL) {
        PyObject *kind, *error, *traceback;
        PyErr_Fetch(&kind, &error, &traceback);
        modes_undo(change);
        PyErr_Restore(kind, error, traceback); /* which drops what undoing it raised */
    }
    Py_CLEAR(change->before);
    Py_CLEAR(change->after);
    return 0; /* the changes are a dict, which is cleared by itself */
}

COLD static void change_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    change_clear(self);
    Py_XDECREF(((Change *)self)->changes);
    type->tp_free(self);
    Py_DECREF(type);
}

static int change_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((Change *)self)->changes);
    Py_VISIT(((Change *)self)->token);
    Py_VISIT(((Change *)self)->before);
    Py_VISIT(((Change *)self)->after);
    return 0;
}

COLD static PyObject *modes_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    Change *change = (Change *)self;
    if (change->token != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "expected a new `with` block, got one that is being used already");
        return NULL;
    }
    if (change->changes == NULL) {
        PyErr_SetString(PyExc_AttributeError, "expected a block whose __init__ was called");
        return NULL;
    }
    /* Python before 3.12 may collect while it sets a variable, and fails where the collector's callback sets one too */
    int collecting = PyGC_Disable();
    PyObject *before = modes_in_force();
    PyObject *after = before ? modes_with_changes(before, change->changes) : NULL;
    change->token = after ? PyContextVar_Set(variable, after) : NULL;
    if (after != NULL && change->token == NULL) { /* without memory for the token it may have been set all the same */
        PyObject *kind, *error, *traceback;
        PyErr_Fetch(&kind, &error, &traceback);
        Py_XDECREF(PyContextVar_Set(variable, before));
        PyErr_Restore(kind, error, traceback);
    }
    if (collecting)
        PyGC_Enable();
    modes.version = LOOK_AGAIN;
    modes_in_use |= after ? modes_kinds_in(after) : 0;
    if (after != NULL && PyTuple_GET_ITEM(after, SCOPE) != PyTuple_GET_ITEM(before, SCOPE))
        scopes_in_use = 1;
    Py_XSETREF(change->before, before);
    Py_XSETREF(change->after, after);
    return change->token == NULL ? NULL : Py_NewRef(Py_None);
}

static PyObject *modes_exit(PyObject *self, PyObject *const *unused, Py_ssize_t count)
{
    (void)unused;
    (void)count;
    modes_undo((Change *)self);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef change_methods[] = {
    {"__enter__", modes_enter, METH_NOARGS, NULL},
    /* no tuple for its arguments: there may be no memory for one */
    {"__exit__", (PyCFunction)(void (*)(void))modes_exit, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef change_members[] = {
    {"changes", T_OBJECT_EX, offsetof(Change, changes), READONLY, "What is different inside, by name."},
    {NULL, 0, 0, 0, NULL},
};

/* The type Change. New. */
COLD PyObject *modes_change_type(void)
{
    PyType_Slot slots[] = {
        {Py_tp_doc, "Change(**modes)\n--\n\nInside, these modes are as given, and the others as they were."},
        {Py_tp_new, PyType_GenericNew},
        {Py_tp_init, change_init},
        {Py_tp_dealloc, change_dealloc},
        {Py_tp_traverse, change_traverse},
        {Py_tp_clear, change_clear},
        {Py_tp_methods, change_methods},
        {Py_tp_members, change_members},
        {0, NULL},
    };
    PyType_Spec spec = {
        .name = "gradwalk._native.Change",
        .basicsize = sizeof(Change),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
        .slots = slots,
    };
    return PyType_FromSpec(&spec);
}
