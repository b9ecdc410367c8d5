/* From Python's objects to numbers, with every bound checked: a Program may come from a file. */

#include "read.h"

/* ---------------------------------------------------------------- buffers */

/* A buffer of doubles, to be released with PyBuffer_Release; `count` -1: of any length. */
INTERNAL int read_doubles(PyObject *given, const char *what, Count count, int writable, Py_buffer *buffer)
{
    if (PyObject_GetBuffer(given, buffer, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)) < 0)
        return -1;
    if (buffer->format == NULL || strcmp(buffer->format, "d") != 0
        || (count >= 0 && buffer->len != count * (Count)sizeof(double))) {
        if (count >= 0)
            PyErr_Format(PyExc_ValueError, "Executor: expected %zd doubles as %s, got %zd bytes of format '%s'", count,
                         what, buffer->len, buffer->format ? buffer->format : "B");
        else
            PyErr_Format(PyExc_TypeError, "Executor: expected doubles as %s, got format '%s'", what,
                         buffer->format ? buffer->format : "B");
        PyBuffer_Release(buffer);
        return -1;
    }
    return 0;
}

/* Slot numbers, checked and copied; released with PyMem_Free. */
INTERNAL int32_t *read_slots(PyObject *given, const char *what, Count size, Count expected, Count *count)
{
    Py_buffer buffer;
    if (PyObject_GetBuffer(given, &buffer, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0)
        return NULL;
    *count = buffer.len / 4;
    int32_t *slots = NULL;
    if (buffer.format == NULL || buffer.itemsize != 4 || (buffer.format[0] != 'i' && buffer.format[0] != 'l')
        || (expected >= 0 && *count != expected)) {
        PyErr_Format(PyExc_TypeError, "Executor: expected slots as an array of int32 for %s", what);
    }
    else if ((slots = PyMem_Malloc((size_t)(*count + 1) * sizeof *slots)) == NULL) {
        PyErr_NoMemory();
    }
    else {
        memcpy(slots, buffer.buf, (size_t)buffer.len);
        const int32_t last = (int32_t)(size - 1 < INT32_MAX ? size - 1 : INT32_MAX);
        if (!view_all_inside(slots, *count, last)) {
            const int32_t *wrong = slots;
            while (*wrong >= 0 && *wrong <= last)
                wrong++;
            PyErr_Format(PyExc_ValueError, "Executor: expected slots from 0 to %zd for %s, got %d", size - 1, what,
                         (int)*wrong);
            PyMem_Free(slots);
            slots = NULL;
        }
    }
    PyBuffer_Release(&buffer);
    return slots;
}

/* ---------------------------------------------------------------- numbers and views */

/* The object's attribute of that name. There are many objects of few kinds: each text becomes a name once. New. */
INTERNAL PyObject *read_attribute(PyObject *object, const char *text)
{
    static struct { const char *text; PyObject *name; } known[READ_NAMES];
    for (int i = 0; i < READ_NAMES; i++) {
        if (known[i].text == NULL && (known[i].name = PyUnicode_InternFromString(text)) == NULL)
            return NULL;
        if (known[i].text == NULL || known[i].text == text) {
            known[i].text = text;
            return PyObject_GetAttr(object, known[i].name);
        }
    }
    return PyObject_GetAttrString(object, text);
}

/* The object's attribute of that name, a whole number from `least` to `most`; -1 with an exception set. */
INTERNAL int read_count(PyObject *object, const char *name, Count least, Count most, Count *count)
{
    PyObject *given = read_attribute(object, name);
    *count = given ? PyNumber_AsSsize_t(given, NULL) : -1; /* what does not fit becomes the nearest that does */
    int failed = *count == -1 && PyErr_Occurred();
    if (!failed && (*count < least || *count > most)) {
        PyErr_Format(PyExc_ValueError, "Executor: expected %s from %zd to %zd, got %R", name, least, most, given);
        failed = 1;
    }
    Py_XDECREF(given);
    return failed ? -1 : 0;
}

/* One of the nested loops of a View, (how often, how many slots further). */
static int read_loop(PyObject *loop, Count size, Count *count, Count *stride)
{
    if (!PyTuple_Check(loop) || PyTuple_GET_SIZE(loop) != 2) {
        PyErr_Format(PyExc_TypeError, "Executor: expected loops of a View as pairs, got %R", loop);
        return -1;
    }
    *count = PyNumber_AsSsize_t(PyTuple_GET_ITEM(loop, 0), NULL); /* what does not fit becomes the nearest that does */
    *stride = PyErr_Occurred() ? 0 : PyNumber_AsSsize_t(PyTuple_GET_ITEM(loop, 1), NULL);
    if (!PyErr_Occurred() && (*count < 1 || *count > MOST_ENTRIES || *stride < -size || *stride > size))
        PyErr_Format(PyExc_ValueError, "Executor: expected a loop of a View inside %zd slots, got %R", size, loop);
    return PyErr_Occurred() ? -1 : 0;
}

/* The slots that nested loops go through from the operand's start on, the outermost loop first, as a table. */
static int32_t *read_loops(PyObject *loops, Count size, const Operand *operand)
{
    Count expected = operand->rows * operand->columns, made = 1, least = operand->start, most = least, count, stride;
    int32_t *slots = PyMem_Malloc((size_t)expected * sizeof *slots);
    if (slots == NULL)
        return (void)PyErr_NoMemory(), NULL;
    slots[0] = (int32_t)operand->start;
    for (Count i = PyTuple_GET_SIZE(loops); i-- > 0; made *= count) {
        if (read_loop(PyTuple_GET_ITEM(loops, i), size, &count, &stride) < 0)
            break;
        *(stride < 0 ? &least : &most) += (count - 1) * stride;
        if (count > expected / made || least < 0 || most >= size) {
            PyErr_Format(PyExc_ValueError, "Executor: expected loops over %zd of %zd slots, got %R", expected, size, loops);
            break;
        }
        for (Count k = made; k < made * count; k++)
            slots[k] = (int32_t)(slots[k - made] + stride);
    }
    if (!PyErr_Occurred() && made != expected)
        PyErr_Format(PyExc_ValueError, "Executor: expected loops over %zd slots, got %R", expected, loops);
    if (!PyErr_Occurred())
        return slots;
    PyMem_Free(slots);
    return NULL;
}

/* A table of slots that is a strided view after all. */
static int read_strides(Operand *operand)
{
    const int32_t *index = operand->index;
    Count start = index[0], column = operand->columns > 1 ? index[1] - start : 1;
    Count row = operand->rows > 1 ? index[operand->columns] - start : 0;
    for (Count r = 0; r < operand->rows; r++) {
        for (Count c = 0; c < operand->columns; c++) {
            if (index[r * operand->columns + c] != start + r * row + c * column)
                return 0;
        }
    }
    operand->start = start, operand->row_stride = row, operand->column_stride = column;
    return 1;
}

/* Of the entries of each row of a table, so many at a time lie side by side. */
static Count read_run(const Operand *operand)
{
    Count run = operand->columns;
    for (Count i = 1; run > 1 && i < operand->rows * operand->columns; i++) {
        if (operand->index[i] == operand->index[i - 1] + 1)
            continue;
        for (Count apart = i % operand->columns; apart != 0;) { /* the greatest common divisor of both */
            Count rest = run % apart;
            run = apart, apart = rest;
        }
    }
    return run;
}

/* An operand that is all zero before; its table is left to step_release, also on failure. */
INTERNAL int read_view(PyObject *view, Count size, Operand *operand)
{
    if (read_count(view, "rows", 1, MOST_ENTRIES, &operand->rows) < 0
        || read_count(view, "columns", 1, MOST_ENTRIES / operand->rows, &operand->columns) < 0
        || read_count(view, "start", 0, size, &operand->start) < 0
        || read_count(view, "row_stride", -size, size, &operand->row_stride) < 0
        || read_count(view, "column_stride", -size, size, &operand->column_stride) < 0)
        return -1;
    PyObject *index = read_attribute(view, "index"), *loops = read_attribute(view, "loops");
    Count rows = operand->rows, columns = operand->columns, count, least, most;
    int looped = loops != NULL && PyTuple_Check(loops) && PyTuple_GET_SIZE(loops) > 0;
    if (index != NULL && loops != NULL && (index != Py_None || looped)) {
        operand->index = looped ? read_loops(loops, size, operand)
                                : read_slots(index, "a View", size, rows * columns, &count);
        if (operand->index != NULL && read_strides(operand)) {
            PyMem_Free(operand->index);
            operand->index = NULL;
        }
        operand->run = operand->index != NULL ? read_run(operand) : 0;
    }
    Py_XDECREF(index);
    Py_XDECREF(loops);
    if (PyErr_Occurred())
        return -1;
    if (operand->index == NULL) {
        view_ends(operand, &least, &most);
        if (least < 0 || most >= size) {
            PyErr_Format(PyExc_ValueError, "Executor: expected a View inside %zd slots, got one from %zd to %zd", size,
                         least, most);
            return -1;
        }
        if (columns == 1)
            operand->column_stride = 1; /* as good as any: there is one column */
        operand->direct = operand->column_stride == 1 && (rows == 1 || operand->row_stride == columns);
    }
    return 0;
}
