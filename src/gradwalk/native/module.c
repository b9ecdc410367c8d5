/* The extension module gradwalk._native. */

#include "executor/flat.h"
#include "executor/program.h"
#include "kernels/kernels.h"
#include "value/optim.h"
#include "value/value.h"

#include <stdlib.h>

static PyMethodDef module_methods[] = {
    {"set_equality_is_identity", type_set_equality_is_identity, METH_O,
     INSIDE("set_equality_is_identity(wanted, /)\n--\n\n"
     "Whether ==, != and truth are those of a class that defines neither, in this process; returns what was before.")},
    {"stand_in", stand_in_new, METH_VARARGS,
     INSIDE("stand_in(name, ways, /)\n--\n\nA type of nodes that has the ways of a class in somebody's script.")},
    {"stand_in_set_ways", stand_in_set_ways, METH_VARARGS,
     INSIDE("stand_in_set_ways(type, ways, /)\n--\n\nGive such a type other ways, before nodes of it are made.")},
    {"formula_method", formula_method, METH_O,
     INSIDE("formula_method(formula, /)\n--\n\nWhat a formula computes, as a method of such a type.")},
    {"stand_in_nodes", stand_in_nodes, METH_NOARGS,
     INSIDE("stand_in_nodes()\n--\n\nHow many nodes operations on such types have made.")},
    {NULL, NULL, 0, NULL},
};

/* A dict name → function of the operations, for gradwalk.engine. New. */
static PyObject *module_functions_by_name(PyMethodDef *functions)
{
    PyObject *dict = PyDict_New();
    for (PyMethodDef *entry = functions; dict != NULL && entry->ml_name != NULL; entry++) {
        PyObject *function = PyCFunction_New(entry, NULL);
        if (function == NULL || PyDict_SetItemString(dict, entry->ml_name, function) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(function);
    }
    return dict;
}

/* The names of the kernels that this machine can run, the best first. New. */
static PyObject *module_kernels_here(void)
{
    PyObject *names = PyList_New(0);
    for (const Kernels *set = kernels_next(NULL); set != NULL && names != NULL; set = kernels_next(set)) {
        PyObject *name = PyUnicode_FromString(set->name);
        if (name == NULL || PyList_Append(names, name) < 0)
            Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

/* Which kernels are in use, and which there are, for the doctor; those that were asked for have to be there. */
static int module_kernels_ready(PyObject *module)
{
    PyObject *here = module_kernels_here();
    if (here == NULL || PyModule_AddObjectRef(module, "KERNELS_HERE", here) < 0) {
        Py_XDECREF(here);
        return -1;
    }
    const char *wanted = getenv("GRADWALK_KERNELS");
    if (wanted != NULL && *wanted && kernels_named(wanted) == NULL) {
        PyErr_Format(PyExc_ImportError, "GRADWALK_KERNELS: expected one of %R on this machine, got '%s'", here, wanted);
        Py_DECREF(here);
        return -1;
    }
    Py_DECREF(here);
    return PyModule_AddStringConstant(module, "KERNELS", kernels_best()->name);
}

static int module_exec(PyObject *module)
{
    if (value_type != NULL) {
        PyErr_SetString(PyExc_ImportError, "gradwalk._native cannot be loaded twice in one process");
        return -1;
    }
    return module_kernels_ready(module) < 0 || modes_ready() < 0 || type_ready(module) < 0 || executor_ready(module) < 0
        || PyModule_AddObject(module, "Change", modes_change_type()) < 0
        || PyModule_AddObject(module, "FUNCTIONS", module_functions_by_name(record_functions)) < 0
        || PyModule_AddObject(module, "COMPOSITES", module_functions_by_name(composite_functions)) < 0
        || PyModule_AddFunctions(module, structure_functions) < 0
        || PyModule_AddObject(module, "OPTIMISERS", module_functions_by_name(optim_functions)) < 0
        || PyModule_AddObject(module, "TRACING", module_functions_by_name(flatten_functions)) < 0
        || PyModule_AddObject(module, "LOOPS", module_functions_by_name(flat_functions)) < 0 ? -1 : 0;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
#if PY_VERSION_HEX >= 0x030D0000
    {Py_mod_gil, Py_MOD_GIL_USED}, /* a lock per node would cost more than most operations; programs run without it */
#endif
    {0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT, "gradwalk._native", "The fast engine: Value and its operations in C.", 0,
    module_methods, module_slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&module_definition);
}
