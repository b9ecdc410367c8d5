/* From Python's objects to numbers: read once, checked once, so that running need not. */

#ifndef GRADWALK_READ_H
#define GRADWALK_READ_H

#include "views.h"

#define MOST_ENTRIES ((Count)1 << 28) /* of all Views: more is no program, and would only take for ever */
#define READ_NAMES 24 /* of attributes: a few more than there are */

INTERNAL int read_doubles(PyObject *given, const char *what, Count count, int writable, Py_buffer *buffer);
INTERNAL int32_t *read_slots(PyObject *given, const char *what, Count size, Count expected, Count *count);
INTERNAL PyObject *read_attribute(PyObject *object, const char *text);
INTERNAL int read_count(PyObject *object, const char *name, Count least, Count most, Count *count);
INTERNAL int read_view(PyObject *view, Count size, Operand *operand);

#endif
