/* A step of Adam: optim.c takes it over the Values' own gradients, executor/train.c along those of a program. */

#ifndef GRADWALK_OPTIM_H
#define GRADWALK_OPTIM_H

#include "kernels/kernels.h"
#include "value.h"

/* What a step of Adam takes besides the gradients. */
typedef struct {
    const Kernels *kernels;
    PyObject *parameters; /* a tuple */
    Py_buffer mean_buffer, square_buffer;
    double *means, *squares, settings[ADAM_SETTINGS];
} Adam;

#define ADAM_FORMAT "dddddd"
#define ADAM_SETTINGS_OF(adam) \
    &(adam)->settings[ADAM_BETA], &(adam)->settings[ADAM_BETA_SQUARE], &(adam)->settings[ADAM_STEP], \
        &(adam)->settings[ADAM_SCALE], &(adam)->settings[ADAM_EPSILON], &(adam)->settings[ADAM_SHRINK]

extern PyMethodDef optim_functions[];

INTERNAL void optim_set_gradient(Value *v, double grad);
INTERNAL Value *optim_parameter(PyObject *parameters, Py_ssize_t i); /* borrowed; NULL with an exception set */
INTERNAL int optim_adam_hold(Adam *adam, PyObject *parameters, PyObject *means, PyObject *squares);
INTERNAL void optim_adam_release(Adam *adam);
INTERNAL int optim_adam_move(const Adam *adam, Py_ssize_t first, Py_ssize_t end, const int32_t *slots,
                             const double *found);
INTERNAL void optim_adam_move_known(const Adam *adam, Py_ssize_t first, Py_ssize_t end, double *data,
                                    const double *grads);

#endif
