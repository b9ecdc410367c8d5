/* The type Executor: made from the parts of a Program, and what Python can ask of it. */

#include "program.h"

/* ---------------------------------------------------------------- its end */

static int executor_traverse(PyObject *object, visitproc visit, void *arg)
{
    Executor *self = (Executor *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->gradients_again);
    Py_VISIT(self->known_leaves);
    Py_VISIT(self->trained.parameters);
    for (Count i = 0; self->calls && i < self->step_count; i++) {
        if (self->steps[i].kind == KIND_CALL)
            Py_VISIT(self->steps[i].call.function);
    }
    return 0;
}

static int executor_clear(PyObject *object)
{
    Executor *self = (Executor *)object;
    Py_CLEAR(self->gradients_again);
    Py_CLEAR(self->known_leaves);
    Py_CLEAR(self->trained.parameters);
    for (Count i = 0; self->calls && i < self->step_count; i++) {
        if (self->steps[i].kind == KIND_CALL)
            Py_CLEAR(self->steps[i].call.function);
    }
    return 0;
}

static void executor_dealloc(PyObject *object)
{
    Executor *self = (Executor *)object;
    PyObject_GC_UnTrack(object);
    for (Count i = 0; self->steps != NULL && i < self->step_count; i++)
        step_release(&self->steps[i]);
    PyMem_Free(self->steps);
    tape_release_all(self->tapes, self->tape_count);
    PyMem_Free(self->cleared);
    PyMem_Free(self->guards);
    PyMem_Free(self->edges);
    PyMem_Free(self->sizes);
    PyMem_Free(self->steep);
    PyMem_Free(self->inputs);
    PyMem_Free(self->stretches);
    PyMem_Free(self->outputs);
    PyMem_Free(self->initial);
    program_memory_release(&self->single);
    for (int i = 0; i < self->batch_count; i++)
        program_memory_release(&self->batch[i]);
    PyMem_Free(self->batch);
    Py_XDECREF(self->gradients_again);
    Py_XDECREF(self->known_leaves);
    train_release(&self->trained);
    if (self->lock != NULL)
        PyThread_free_lock(self->lock);
    PyTypeObject *type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}

/* ---------------------------------------------------------------- making it */

static int executor_read_initial(Executor *self, PyObject *given)
{
    Py_buffer initial;
    if (self->size < 0 || self->size > INT32_MAX) {
        PyErr_Format(PyExc_ValueError, "Executor: expected a size from 0 to %d, got %zd", INT32_MAX, self->size);
        return -1;
    }
    if (read_doubles(given, "initial", self->size, 0, &initial) < 0)
        return -1;
    self->initial = PyMem_Malloc((size_t)initial.len + 1);
    if (self->initial == NULL)
        PyErr_NoMemory();
    else
        memcpy(self->initial, initial.buf, (size_t)initial.len);
    PyBuffer_Release(&initial);
    return self->initial == NULL ? -1 : 0;
}

/* New. */
static PyObject *executor_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"size", "initial", "inputs", "outputs", "instructions", "guards", "exact", "kernels",
                            "functions", "gradients_again", NULL};
    PyObject *initial, *inputs, *outputs, *instructions, *guards, *functions = NULL, *gradients_again = NULL;
    Count size;
    int exact = 0;
    const char *kernels = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "nOOOOO|pzO!O:Executor", names, &size, &initial, &inputs, &outputs,
                                     &instructions, &guards, &exact, &kernels, &PyTuple_Type, &functions,
                                     &gradients_again))
        return NULL;
    Executor *self = (Executor *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->size = size;
    self->exact = exact;
    self->gradients_again = Py_XNewRef(gradients_again);
    self->kernels = kernels ? kernels_named(kernels) : kernels_best();
    if (self->kernels == NULL)
        PyErr_Format(PyExc_ValueError, "Executor: expected kernels that this machine can run, got '%s'", kernels);
    if (PyErr_Occurred() || program_make_lock(self) < 0 || executor_read_initial(self, initial) < 0
        || (self->inputs = read_slots(inputs, "inputs", size, -1, &self->input_count)) == NULL
        || (self->stretches = program_stretches(self->inputs, self->input_count, size)) == NULL
        || (self->outputs = read_slots(outputs, "outputs", size, -1, &self->output_count)) == NULL
        || program_read(self, instructions, functions) < 0 || program_memory_make(self, &self->single, 1) < 0
        || guards_read(self, guards) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

/* ---------------------------------------------------------------- what Python can ask of it */

/* The instruction set in use. New. */
static PyObject *executor_kernels(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(((Executor *)self)->kernels->name);
}

/* How many examples of a batch are summed before others are added to them. New. */
static PyObject *executor_piece(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromSsize_t(batch_piece((Executor *)self));
}

/* New. */
static PyObject *executor_undecided(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(((Executor *)self)->undecided);
}

#define METHOD(name, flags, doc) {#name, (PyCFunction)(void (*)(void))executor_##name, flags, INSIDE(doc)}

static PyMethodDef executor_methods[] = {
    METHOD(run, METH_O, "run(inputs, /)\n--\n\nForward; False where a guard fails or a number is not finite."),
    METHOD(run_values, METH_FASTCALL,
           "run_values(arguments, leaves, /)\n--\n\nrun() with the leaves' current data after the arguments."),
    METHOD(outputs, METH_O, "outputs(into, /)\n--\n\nWrites the results of the last run."),
    METHOD(gradients, METH_FASTCALL,
           "gradients(seeds, into, /)\n--\n\nReverse over the last run; writes the gradient of every input."),
    METHOD(value, METH_FASTCALL,
           "value(arguments, leaves, /)\n--\n\nrun_values() of a program with one result: it, or None for False."),
    METHOD(backward, METH_FASTCALL,
           "backward(arguments, leaves, /)\n--\n\nvalue(), and its gradients are added to the leaves' own."),
    METHOD(value_and_gradients, METH_FASTCALL,
           "value_and_gradients(arguments, leaves, gradients, /)\n--\n\n"
           "value(), and the gradient of every input is written, unless it is None."),
    METHOD(leaf_numbers, METH_O, "leaf_numbers(leaves, /)\n--\n\nThe leaves' current data, as bytes of doubles."),
    METHOD(add_gradients, METH_FASTCALL, "add_gradients(leaves, gradients, /)\n--\n\nAdds to the leaves' gradients."),
    METHOD(node, METH_FASTCALL,
           "node(children, places, /)\n--\n\n"
           "Reverse over the last run; its only result as a node over children that were the inputs at these places."),
    METHOD(run_directions, METH_FASTCALL,
           "run_directions(point, leaves, directions, outputs, /)\n--\n\n"
           "The results along many directions, which are the arguments after the point; False as run() says it."),
    METHOD(train, METH_VARARGS,
           "train(parameters, slots, means, squares, beta, beta_square, step, scale, epsilon, shrink, /)\n--\n\n"
           "Reverse over the last run, and a step of Adam; what the program does not read has the slot after the last."),
    METHOD(step_models, METH_VARARGS,
           "step_models(rows, slots, arguments, weights, values, settings, first, second, /)\n--\n\n"
           "A step of each of these models along its own gradient; those to which the program does not apply."),
    METHOD(run_batch, METH_VARARGS | METH_KEYWORDS,
           "run_batch(arguments, leaves, outputs, seeds=None, argument_gradients=None, leaf_gradients=None, "
           "threads=1)\n--\n\n"
           "Many examples that share the leaves; returns the numbers of those to which the program does not apply.\n"
           "With seeds, also gradients; the leaves' are summed, or one row an example, as the buffer has room for.\n"
           "Where it returns any numbers, the gradients mean nothing. Leaves are Values, or an array of their numbers.\n"
           "Threads share pieces of `piece` examples; gradients are summed in the same order by any number of them."),
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef executor_getset[] = {
    {"kernels", executor_kernels, NULL, INSIDE("The instruction set in use."), NULL},
    {"piece", executor_piece, NULL,
     INSIDE("How many examples of a batch are summed before others are added to them."), NULL},
    {"undecided", executor_undecided, NULL,
     INSIDE("Whether the last run said False only because it compared two numbers that are too close to tell."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

INTERNAL int executor_ready(PyObject *module)
{
    if (program_watch_forks())
        return PyErr_NoMemory() ? 0 : -1;
    PyType_Slot slots[] = {
        {Py_tp_doc, "Runs a program of vector instructions, forward and in reverse."},
        {Py_tp_new, executor_new},
        {Py_tp_dealloc, executor_dealloc},
        {Py_tp_traverse, executor_traverse},
        {Py_tp_clear, executor_clear},
        {Py_tp_methods, executor_methods},
        {Py_tp_getset, executor_getset},
        {0, NULL},
    };
    PyType_Spec spec = {.name = "gradwalk._native.Executor", .basicsize = sizeof(Executor),
                        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, .slots = slots};
    PyObject *type = PyType_FromSpec(&spec);
    return type == NULL ? -1 : PyModule_AddObject(module, "Executor", type);
}
