/* Composites by their declarations in row_ops.py. `x` holds all inputs of one output: the row, or two of the same length,
 * one after the other. */

#ifndef GRADWALK_COMPOSITES_H
#define GRADWALK_COMPOSITES_H

#include "composites_generated.h"

/* The composite of that op; NULL for an operation of the table, and for none. */
static inline const Composite *composite_of(unsigned op)
{
    return op >= OP_COUNT && op < NO_OP ? &composites[op - OP_COUNT] : NULL;
}

/* Numbers that a node has beside its children: the place first, if there is one. */
static inline int composite_is_placed(const Composite *composite) { return composite->per_entry || composite->has_target; }

/* How many numbers are kept over that many inputs. */
static inline ptrdiff_t composite_kept(const Composite *composite, ptrdiff_t count)
{
    return composite->kept_numbers + composite->kept_rows * (count / composite->inputs);
}

static inline void composite_keep(const Composite *composite, ptrdiff_t count, const double *x,
                                  const double *parameters, double *kept)
{
    ptrdiff_t n = count / composite->inputs;
    if (composite->keep != NULL)
        composite->keep(n, x, x + n, parameters, kept);
}

static inline double composite_output(const Composite *composite, ptrdiff_t count, const double *x, ptrdiff_t i,
                                      const double *parameters, const double *kept)
{
    ptrdiff_t n = count / composite->inputs;
    return composite->forward(n, x, x + n, i, parameters, kept);
}

static inline void composite_slopes(const Composite *composite, ptrdiff_t count, const double *x, ptrdiff_t i,
                                    const double *parameters, const double *kept, double out, double *local_grads)
{
    ptrdiff_t n = count / composite->inputs;
    composite->local_grads(n, x, x + n, i, parameters, kept, out, local_grads);
}

/* How far a row is from the next of its edges. */
static inline double composite_edge(const Composite *composite, ptrdiff_t count, const double *x, const double *parameters)
{
    ptrdiff_t n = count / composite->inputs;
    return composite->edge(n, x, x + n, parameters);
}

#endif
