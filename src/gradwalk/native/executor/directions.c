/* One point and many directions: what does not depend on the direction is computed once, the rest for BATCH directions
 * side by side. For derivatives, whose last arguments are a direction. */

#include "program.h"

/* Marks the steps that depend on an input from `first` on, and before `end`; 0, or -1 with an exception set. */
COLD static int directions_mark(Executor *self, Count first, Count end)
{
    unsigned char *moving = PyMem_Calloc((size_t)self->size + 1, 1);
    if (moving == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Count i = first; i < end; i++)
        moving[self->inputs[i]] = 1;
    for (Count i = 0; i < self->step_count; i++) {
        Step *step = &self->steps[i];
        step->moves = 0;
        for (Count entry = 0; entry < step->rows * step->columns; entry++) {
            int moves = KINDS[step->kind]->depends(step, entry / step->columns, entry % step->columns, moving);
            moving[step->out + entry] = (unsigned char)moves;
            step->moves |= moves;
        }
    }
    self->moving_from = first, self->moving_to = end;
    PyMem_Free(moving);
    return 0;
}

static void directions_spread(const double *from, Count slot, Count count, double *into)
{
    for (Count i = slot; i < slot + count; i++) {
        for (int lane = 0; lane < BATCH; lane++)
            into[i * BATCH + lane] = from[i];
    }
}

/* What stands still, from the memory of one example to that of a batch; its constants are there already. */
static void directions_spread_point(const Executor *self, Count first, Count end, const Memory *memory)
{
    const double *values = self->single.values;
    for (Count i = 0; i < self->input_count; i++) {
        if (i < first || i >= end)
            directions_spread(values, self->inputs[i], 1, memory->values);
    }
    for (Count i = 0; i < self->step_count; i++) {
        const Step *step = &self->steps[i];
        if (!step->moves)
            directions_spread(values, step->out, step->rows * step->columns, memory->values);
    }
}

/* The results along each of `count` directions, which are the inputs from `first` on; whether all are finite. */
static int directions_run(const Executor *self, Count first, Count end, const double *directions, Count count,
                          double *outputs)
{
    const Memory *memory = &self->batch[0];
    Count width = end - first;
    int finite = 1;
    directions_spread_point(self, first, end, memory);
    for (Count begin = 0; begin < count && finite; begin += BATCH) {
        Count present = count - begin < BATCH ? count - begin : BATCH;
        for (Count i = 0; i < width; i++) {
            double *slot = memory->values + (Count)self->inputs[first + i] * BATCH;
            for (Count lane = 0; lane < BATCH; lane++) /* places left over repeat the last */
                slot[lane] = directions[(begin + (lane < present ? lane : present - 1)) * width + i];
        }
        for (Count i = 0; i < self->step_count; i++) {
            const Step *step = &self->steps[i];
            if (!step->moves)
                continue;
            KINDS[step->kind]->forward(self->kernels, step, memory);
            if (step->checked)
                finite &= self->kernels->finite(step->rows * step->columns * BATCH, memory->values + step->out * BATCH);
        }
        for (Count i = 0; i < self->output_count; i++) {
            const double *slot = memory->values + (Count)self->outputs[i] * BATCH;
            for (Count lane = 0; lane < present; lane++)
                outputs[(begin + lane) * self->output_count + i] = slot[lane];
        }
    }
    return finite;
}

/* Whether the program applies to the point, and every number along every direction is finite. */
COLD INTERNAL PyObject *executor_run_directions(Executor *self, PyObject *const *args, Py_ssize_t count)
{
    enum { POINT, DIRECTIONS, OUTPUTS, BUFFERS };
    static const char *const names[BUFFERS] = {"point", "directions", "outputs"};
    if (program_expect("run_directions", count, 4) < 0)
        return NULL;
    PyObject *const given[BUFFERS] = {args[0], args[2], args[3]}, *leaves = args[1], *result = NULL;
    Py_buffer buffers[BUFFERS];
    int held = 0;
    while (held < BUFFERS && read_doubles(given[held], names[held], -1, held == OUTPUTS, &buffers[held]) == 0)
        held++;
    if (held < BUFFERS)
        goto done;
    Count first = buffers[POINT].len / (Count)sizeof(double);
    Count end = self->input_count - (PyTuple_Check(leaves) ? PyTuple_GET_SIZE(leaves) : 0), width = end - first;
    Count rows = width > 0 ? buffers[DIRECTIONS].len / (Count)sizeof(double) / width : 0;
    if (self->exact || self->calls || first < 1 || rows < 1
        || buffers[DIRECTIONS].len != rows * width * (Count)sizeof(double)
        || buffers[OUTPUTS].len != rows * self->output_count * (Count)sizeof(double)) {
        PyErr_SetString(PyExc_ValueError, "Executor: expected directions of a program that is not exact and calls no "
                                          "function, and room for the results along each");
        goto done;
    }
    if (program_check_leaves(self, leaves, end) < 0 || program_begin(self) < 0)
        goto done;
    int marked = self->moving_from == first && self->moving_to == end;
    if ((!marked && directions_mark(self, first, end) < 0) || program_batch_make(self, 1) < 0) {
        program_unlock(self);
        goto done;
    }
    program_write_inputs(self, self->single.values, first, first + width, buffers[DIRECTIONS].buf);
    program_write_inputs(self, self->single.values, 0, first, buffers[POINT].buf);
    program_fill_leaves(self, end, leaves);
    int applies = program_run_forward(self, &self->single) == 0;
    if (applies) {
        Py_BEGIN_ALLOW_THREADS
        applies = directions_run(self, first, end, buffers[DIRECTIONS].buf, rows, buffers[OUTPUTS].buf);
        Py_END_ALLOW_THREADS
    }
    program_unlock(self);
    result = PyErr_Occurred() ? NULL : PyBool_FromLong(applies);
done:
    while (held > 0)
        PyBuffer_Release(&buffers[--held]);
    return result;
}
