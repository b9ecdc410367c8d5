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

/* The weights of one model from `first` on. */
static void models_move_some(const Executor *self, const Models *models, Count k, Count first, Count count,
                             const double *grads)
{
    const double *settings = models->settings + k * models->settings_each;
    Count place = models->rows[k] * models->weights_each + first;
    if (models->second != NULL)
        self->kernels->adam(count, models->weights + place, grads, models->first + place, models->second + place,
                            settings);
    else
        models_sgd(count, models->weights + place, grads, models->first ? models->first + place : NULL, settings);
}

/* Whether the program applies to the model, and its value is one to move along. */
static int models_moves(const Models *models, Count k)
{
    return !models->failed[k] && isfinite(models->values[k]) && models->settings != NULL;
}

/* Moves `count` models from the k-th on along the gradients that the last pass has found in this memory. Side by side,
 * they take the places of the weights, which the next pass is given anew: a model's then lie one after the other. */
static void models_move(const Executor *self, const Models *models, const Memory *memory, Count k, Count count)
{
    static const double nothing[BATCH]; /* the gradients of weights that are not read */
    for (Count i = 0, here; i < models->weights_each; i += here) {
        Count slot = models->slots[i];
        int read = slot < self->size, wide = read && memory->width > 1;
        here = read || models->stretches[i] < BATCH ? models->stretches[i] : BATCH;
        const double *grads = wide ? memory->values + slot * BATCH : read ? memory->grads + slot : nothing;
        if (wide)
            self->kernels->transpose(here, BATCH, memory->grads + slot * BATCH, BATCH, memory->values + slot * BATCH);
        for (Count lane = 0; lane < count; lane++) {
            if (models_moves(models, k + lane))
                models_move_some(self, models, k + lane, i, here, wide ? grads + lane * here : grads);
        }
    }
}

/* One step of one model; -1 with an exception set. */
static int models_step_one(Executor *self, const Models *models, Count k)
{
    static const double one = 1.0;
    double *slots = self->single.values;
    const double *weights = models->weights + models->rows[k] * models->weights_each;
    program_write_inputs(self, slots, 0, models->arguments, models->given + k * models->arguments);
    for (Count i = 0; i < models->weights_each; i += models->stretches[i]) {
        if (models->slots[i] < self->size)
            memcpy(slots + models->slots[i], weights + i, (size_t)models->stretches[i] * sizeof *slots);
    }
    models->failed[k] = program_run_forward(self, &self->single) != 0;
    if (PyErr_Occurred())
        return -1;
    models->values[k] = slots[self->outputs[0]];
    if (!models_moves(models, k))
        return 0;
    if (program_run_reverse(self, &one) < 0)
        return -1;
    models_move(self, models, &self->single, k, 1);
    return 0;
}

/* Puts the inputs of so many models side by side; places left over repeat the first. */
static void models_fill(const Executor *self, const Models *models, const Memory *memory, Count k, Count count)
{
    const double *weights[BATCH], *here[BATCH];
    for (Count lane = 0; lane < BATCH; lane++) {
        Count model = k + (lane < count ? lane : 0);
        weights[lane] = models->weights + models->rows[model] * models->weights_each;
        for (Count i = 0; i < models->arguments; i++)
            memory->values[self->inputs[i] * BATCH + lane] = models->given[model * models->arguments + i];
    }
    for (Count i = 0; i < models->weights_each; i += models->stretches[i]) {
        for (Count lane = 0; lane < BATCH; lane++)
            here[lane] = weights[lane] + i;
        if (models->slots[i] < self->size)
            self->kernels->side_by_side(models->stretches[i], here, memory->values + models->slots[i] * BATCH);
    }
}

/* One step of up to BATCH models, side by side; -1 with an exception set. */
static int models_step_wide(Executor *self, const Models *models, Count k, Count count)
{
    static const double one = 1.0;
    if (program_batch_make(self, 1) < 0)
        return -1;
    Memory memory = self->batch[0];
    memory.shared_grads = NULL; /* each has leaves of its own */
    models_fill(self, models, &memory, k, count);
    unsigned failed = program_run_forward(self, &memory);
    int moves = 0, finite;
    for (Count lane = 0; lane < count; lane++) {
        models->failed[k + lane] = failed >> lane & 1;
        models->values[k + lane] = memory.values[self->outputs[0] * BATCH + lane];
        moves |= models_moves(models, k + lane);
    }
    if (!moves)
        return 0;
    Py_BEGIN_ALLOW_THREADS
    program_reverse(self, &memory, &one, 0, 0);
    Count span = self->inputs_to - self->inputs_from;
    finite = self->kernels->finite(span * BATCH, memory.grads + self->inputs_from * BATCH);
    Py_END_ALLOW_THREADS
    if (finite)
        models_move(self, models, &memory, k, count);
    for (Count lane = 0; !finite && lane < count; lane++) { /* one by one it is known whose they are, and why */
        if (models_step_one(self, models, k + lane) < 0)
            return -1;
    }
    return 0;
}

enum { WORTH_THE_WIDTH = 7 }; /* a pass over BATCH models takes as long as one after the other for so many */

/* One step of each chosen model to which the program applies, and whose value is finite; -1 with an exception set. */
static int models_step(Executor *self, const Models *models)
{
    self->read_at = 0; /* the leaves' numbers are no longer in their slots */
    for (Count k = 0, here; k < models->chosen; k += here) {
        here = models->chosen - k < BATCH ? models->chosen - k : BATCH;
        int wide = !self->exact && here >= WORTH_THE_WIDTH; /* an exact program sums in one order only */
        here = wide ? here : 1;
        if ((wide ? models_step_wide(self, models, k, here) : models_step_one(self, models, k)) < 0)
            return -1;
    }
    return 0;
}

/* The places of those that are marked. New. */
static PyObject *models_failed(const Models *models)
{
    PyObject *failed = PyList_New(0);
    for (Count k = 0; failed != NULL && k < models->chosen; k++) {
        PyObject *place = models->failed[k] ? PyLong_FromSsize_t(k) : NULL;
        if (models->failed[k] && (place == NULL || PyList_Append(failed, place) < 0))
            Py_CLEAR(failed);
        Py_XDECREF(place);
    }
    return failed;
}

/* Which of the chosen models the program does not apply to, as a list of places among them. New. */
INTERNAL PyObject *executor_step_models(Executor *self, PyObject *args)
{
    enum { GIVEN, WEIGHTS, VALUES, SETTINGS, FIRST, SECOND, BUFFERS };
    static const char *const names[BUFFERS] = {"arguments", "weights", "values", "settings", "moments", "moments"};
    PyObject *given[BUFFERS], *rows_given, *slots_given, *result = NULL;
    if (!PyArg_ParseTuple(args, "OOOOOOOO:step_models", &rows_given, &slots_given, &given[GIVEN], &given[WEIGHTS],
                          &given[VALUES], &given[SETTINGS], &given[FIRST], &given[SECOND]))
        return NULL;
    Models models = {.models = 0};
    Py_buffer buffers[BUFFERS] = {{.obj = NULL}};
    int32_t *rows = NULL, *slots = NULL, *stretches = NULL;
    for (int i = 0; i < BUFFERS; i++) {
        if (given[i] != Py_None && read_doubles(given[i], names[i], -1, i != GIVEN && i != SETTINGS, &buffers[i]) < 0)
            goto done;
    }
    if ((slots = read_slots(slots_given, "the weights", self->size + 1, -1, &models.weights_each)) == NULL
        || (stretches = program_stretches(slots, models.weights_each, self->size)) == NULL)
        goto done;
    Count each = models.weights_each > 0 ? models.weights_each : 1, one = (Count)sizeof(double);
    Count all = buffers[WEIGHTS].len / one;
    models.models = all / each;
    if ((rows = read_slots(rows_given, "the models", models.models, -1, &models.chosen)) == NULL)
        goto done;
    Count chosen = models.chosen > 0 ? models.chosen : 1;
    models.arguments = buffers[GIVEN].len / one / chosen;
    models.settings_each = buffers[SETTINGS].len / one / chosen;
    Count leaves = 0;
    for (Count i = 0; i < models.weights_each; i++)
        leaves += slots[i] < self->size;
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
    models.slots = slots, models.stretches = stretches, models.rows = rows;
    models.given = buffers[GIVEN].buf, models.settings = buffers[SETTINGS].buf;
    models.weights = buffers[WEIGHTS].buf, models.values = buffers[VALUES].buf;
    models.first = buffers[FIRST].buf, models.second = buffers[SECOND].buf;
    if (program_begin(self) == 0) {
        int failed = models_step(self, &models) < 0;
        program_unlock(self);
        result = failed ? NULL : models_failed(&models);
    }
done:
    for (int i = 0; i < BUFFERS; i++) {
        if (buffers[i].obj != NULL)
            PyBuffer_Release(&buffers[i]);
    }
    PyMem_Free(models.failed);
    PyMem_Free(stretches);
    PyMem_Free(slots);
    PyMem_Free(rows);
    return result;
}
