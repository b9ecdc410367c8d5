/* Many models: one program over rows of weights, each moved along its own gradient by Adam or SGD. */

#include "program.h"
#include "value/optim.h"

enum { SGD_RATE, SGD_MOMENTUM, SGD_DECAY, SGD_NESTEROV, SGD_SETTINGS };

/* What is the same for all of them. Weights and moments have a row for each model, in the order of `slots`; a weight
 * that the program does not read has the slot after the last. */
typedef struct {
    Count models, chosen, weights_each, arguments, settings_each;
    const int32_t *slots, *stretches, *rows;
    const double *given, *settings;
    double *weights, *first, *second, *values; /* first and second: moments; NULL where there are none */
    double *gradients; /* of weights that are not moved, or NULL */
    unsigned char *failed;
} Models;

/* In the order of operations of optim.c: the same numbers to the bit. */
static void models_sgd(Count n, double *data, const double *grad, double *velocity, const double *settings)
{
    double momentum = settings[SGD_MOMENTUM], decay = settings[SGD_DECAY];
    for (Count i = 0; i < n; i++) {
        double direction = grad[i];
        if (decay != 0.0)
            direction = direction + decay * data[i];
        if (momentum != 0.0) {
            velocity[i] = momentum * velocity[i] + direction;
            direction = settings[SGD_NESTEROV] != 0.0 ? direction + momentum * velocity[i] : velocity[i];
        }
        data[i] = data[i] - settings[SGD_RATE] * direction;
    }
}

/* Puts some of a model's weights in place. */
static inline void models_load(const Executor *self, const Models *models, Count row, Count i, Count count)
{
    if (models->slots[i] < self->size)
        memcpy(self->single.values + models->slots[i], models->weights + row * models->weights_each + i,
               (size_t)count * sizeof(double));
}

/* The gradients that the last pass has found, in the order of the weights. */
static void models_tell(const Executor *self, const Models *models, Count row)
{
    for (Count i = 0; i < models->weights_each; i++)
        models->gradients[row * models->weights_each + i] =
            models->slots[i] < self->size ? self->single.grads[models->slots[i]] : 0.0;
}

/* Moves one model's weights along the gradients that the last pass has found, and puts those of the next in place, if
 * there is one: the processor reads them while it waits for roots and quotients. */
static void models_move(const Executor *self, const Models *models, Count row, const double *settings, Count next)
{
    enum { PIECE = 64 };
    static const double nothing[PIECE]; /* the gradients of weights that are not read */
    for (Count i = 0, here; i < models->weights_each; i += here) {
        Count place = row * models->weights_each + i;
        here = models->stretches[i] < PIECE ? models->stretches[i] : PIECE;
        const double *grads = models->slots[i] < self->size ? self->single.grads + models->slots[i] : nothing;
        if (models->second != NULL)
            self->kernels->adam(here, models->weights + place, grads, models->first + place, models->second + place,
                                settings);
        else
            models_sgd(here, models->weights + place, grads, models->first ? models->first + place : NULL, settings);
        if (next >= 0)
            models_load(self, models, next, i, here);
    }
}

/* One step of each chosen model to which the program applies, and whose value is finite; -1 with an exception set. */
NEVER_INLINE static int models_step(Executor *self, const Models *models)
{
    static const double one = 1.0;
    double *slots = self->single.values;
    int raised = 0, loaded = 0;
    self->read_at = 0; /* the leaves' numbers are no longer in their slots */
    Py_BEGIN_ALLOW_THREADS
    for (Count k = 0; k < models->chosen && !raised; k++) {
        Count row = models->rows[k];
        program_write_inputs(self, slots, 0, models->arguments, models->given + k * models->arguments);
        for (Count i = 0; i < models->weights_each && !loaded; i += models->stretches[i])
            models_load(self, models, row, i, models->stretches[i]);
        models->failed[k] = program_forward(self, &self->single) != 0;
        models->values[k] = slots[self->outputs[0]];
        int passes = !models->failed[k] && isfinite(models->values[k]);
        loaded = passes && models->settings != NULL;
        if (!loaded && !(passes && models->gradients != NULL))
            continue;
        program_reverse(self, &self->single, &one, 0, 0);
        if (program_is_to_reverse_again(self)) {
            Py_BLOCK_THREADS
            raised = program_reverse_again(self, &one);
            Py_UNBLOCK_THREADS
        }
        if (!raised && loaded)
            models_move(self, models, row, models->settings + k * models->settings_each,
                        k + 1 < models->chosen ? models->rows[k + 1] : -1);
        else if (!raised)
            models_tell(self, models, row);
    }
    Py_END_ALLOW_THREADS
    return raised;
}

/* Which of the chosen models the program does not apply to, as a list of places among them. New. */
COLD INTERNAL PyObject *executor_step_models(Executor *self, PyObject *args)
{
    enum { GIVEN, WEIGHTS, VALUES, SETTINGS, FIRST, SECOND, BUFFERS };
    static const char *const names[BUFFERS] = {"arguments", "weights", "values", "settings", "moments", "moments"};
    PyObject *given[BUFFERS], *rows_given, *slots_given, *result = NULL;
    if (!PyArg_ParseTuple(args, "OOOOOOOO:step_models", &rows_given, &slots_given, &given[GIVEN], &given[WEIGHTS],
                          &given[VALUES], &given[SETTINGS], &given[FIRST], &given[SECOND]))
        return NULL;
    if (program_begin(self) < 0)
        return NULL;
    Models models = {.models = 0};
    Py_buffer buffers[BUFFERS] = {{.obj = NULL}};
    int32_t *rows = NULL;
    for (int i = 0; i < BUFFERS; i++) {
        if (given[i] != Py_None && read_doubles(given[i], names[i], -1, i != GIVEN && i != SETTINGS, &buffers[i]) < 0)
            goto done;
    }
    if (train_take(self, NULL, slots_given) < 0)
        goto done;
    models.weights_each = self->trained.count, models.slots = self->trained.slots;
    models.stretches = self->trained.stretches;
    Count each = models.weights_each > 0 ? models.weights_each : 1, one = (Count)sizeof(double);
    Count all = buffers[WEIGHTS].len / one;
    models.models = all / each;
    if ((rows = read_slots(rows_given, "the models", models.models, -1, &models.chosen)) == NULL)
        goto done;
    Count chosen = models.chosen > 0 ? models.chosen : 1;
    models.arguments = buffers[GIVEN].len / one / chosen;
    models.settings_each = buffers[SETTINGS].len / one / chosen;
    Count leaves = 0;
    for (Count i = 0; i < models.weights_each; i += models.stretches[i])
        leaves += models.slots[i] < self->size ? models.stretches[i] : 0;
    int moves = buffers[SETTINGS].obj != NULL, adam = buffers[SECOND].obj != NULL;
    if (self->output_count != 1 || self->calls || models.arguments + leaves != self->input_count
        || all != models.models * each || buffers[VALUES].len != models.chosen * one
        || buffers[GIVEN].len != models.chosen * models.arguments * one
        || (moves && buffers[SETTINGS].len != models.chosen * (adam ? ADAM_SETTINGS : SGD_SETTINGS) * one)
        || (buffers[FIRST].obj != NULL && buffers[FIRST].len != all * one)
        || (adam && (buffers[SECOND].len != all * one || buffers[FIRST].obj == NULL))) {
        PyErr_SetString(PyExc_ValueError, "Executor: expected a program with one result and no function of one's own, "
                                          "and rows of arguments, weights, settings and moments that fit it");
        goto done;
    }
    for (Count k = 0; moves && !adam && buffers[FIRST].obj == NULL && k < models.chosen; k++) {
        if (((const double *)buffers[SETTINGS].buf)[k * SGD_SETTINGS + SGD_MOMENTUM] != 0.0) {
            PyErr_SetString(PyExc_ValueError, "Executor: expected moments where there is momentum, got None");
            goto done;
        }
    }
    if ((models.failed = PyMem_Calloc((size_t)chosen, 1)) == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    models.rows = rows, models.given = buffers[GIVEN].buf, models.settings = buffers[SETTINGS].buf;
    models.weights = buffers[WEIGHTS].buf, models.values = buffers[VALUES].buf;
    models.first = buffers[FIRST].buf, models.second = buffers[SECOND].buf;
    models.gradients = moves ? NULL : models.first;
    result = models_step(self, &models) == 0 ? batch_marked(models.failed, models.chosen) : NULL;
done:
    program_unlock(self);
    for (int i = 0; i < BUFFERS; i++) {
        if (buffers[i].obj != NULL)
            PyBuffer_Release(&buffers[i]);
    }
    PyMem_Free(models.failed);
    PyMem_Free(rows);
    return result;
}
