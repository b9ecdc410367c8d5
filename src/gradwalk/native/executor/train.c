/* A training step: the reverse pass, and Adam along what it found, without a detour through the Values' gradients. */

#include "program.h"
#include "value/optim.h"

INTERNAL void train_release(Trained *trained)
{
    Py_XDECREF(trained->parameters);
    Py_XDECREF(trained->slots_given);
    PyMem_Free(trained->slots);
    PyMem_Free(trained->stretches);
    *trained = (Trained){.clear_at = 0};
}

/* Looks at parameters and slots other than the last ones; those of a parameter that the program does not read is the
 * one past its last. -1 with an exception set. The executor is locked. */
INTERNAL int train_take(Executor *self, PyObject *parameters, PyObject *slots_given)
{
    Trained *trained = &self->trained;
    if (parameters == trained->parameters && slots_given == trained->slots_given)
        return 0;
    Count count = parameters != NULL ? PyTuple_GET_SIZE(parameters) : -1;
    for (Count i = 0; i < count; i++) {
        if (optim_parameter(parameters, i) == NULL)
            return -1;
    }
    int32_t *slots = read_slots(slots_given, "the parameters", self->size + 1, count, &count);
    int32_t *stretches = slots ? program_stretches(slots, count, self->size) : NULL;
    if (stretches == NULL) {
        PyMem_Free(slots);
        return -1;
    }
    program_let_go(self, trained->parameters);
    trained->parameters = NULL;
    train_release(trained);
    *trained = (Trained){Py_XNewRef(parameters), Py_NewRef(slots_given), count, slots, stretches, 0};
    return 0;
}

/* Moves the parameters along the gradients that the last pass has found. */
static void train_move(Executor *self, const Adam *adam)
{
    Trained *trained = &self->trained;
    const Memory *memory = &self->single;
    Count count = PyTuple_GET_SIZE(adam->parameters);
    if (self->read_at == data_writes && trained->clear_at == grad_writes) {
        for (Count i = 0, end; i < count; i = end) {
            end = i + trained->stretches[i];
            int32_t slot = trained->slots[i];
            if (slot < self->size)
                optim_adam_move_known(adam, i, end, memory->values + slot, memory->grads + slot);
            else
                optim_adam_move(adam, i, end, NULL, NULL);
        }
        self->read_at = data_writes;
    }
    else {
        optim_adam_move(adam, 0, count, trained->slots, memory->grads);
        trained->clear_at = grad_writes;
    }
}

/* Reverse over the last run of a program with one result, and a step of Adam. */
INTERNAL PyObject *executor_train(Executor *self, PyObject *args)
{
    PyObject *parameters, *slots, *means, *squares, *held, *result = NULL;
    Adam adam = {.kernels = self->kernels};
    if (!PyArg_ParseTuple(args, "OO" ADAM_FORMAT "OO:train", &parameters, &slots, ADAM_SETTINGS_OF(&adam), &means,
                          &squares))
        return NULL;
    if (program_expect_one(self) < 0)
        return NULL;
    if (optim_adam_hold(&adam, parameters, means, squares) < 0)
        return NULL;
    if (program_hold_gradients(adam.parameters, &held) < 0) {
        optim_adam_release(&adam);
        return NULL;
    }
    static const double one = 1.0;
    PyObject *lock;
    program_lock(self);
    if (train_take(self, adam.parameters, slots) == 0 && program_run_reverse(self, &one) == 0
        && pass_begin(&lock) == 0) {
        train_move(self, &adam);
        pass_end(lock);
        result = Py_NewRef(Py_None);
    }
    program_unlock(self);
    Py_XDECREF(held);
    optim_adam_release(&adam);
    return result;
}
