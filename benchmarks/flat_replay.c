/* The plain way to replay a recorded graph: one switch a node, forward over the tape and back again.
 * What growth.py compares the executor with. Node i has the operation ops[i] and the children left[i] and right[i],
 * which have smaller numbers; inputs and constants have their numbers in `values` already. */

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { GIVEN, ADD, SUB, MUL, DIV, NEG, EXP, LOG, SIN, COS, TANH, SIGMOID };

void forward(int64_t count, const uint8_t *ops, const int32_t *left, const int32_t *right, double *values)
{
    for (int64_t i = 0; i < count; i++) {
        const double x = values[left[i]], y = values[right[i]];
        switch (ops[i]) {
        case ADD: values[i] = x + y; break;
        case SUB: values[i] = x - y; break;
        case MUL: values[i] = x * y; break;
        case DIV: values[i] = x / y; break;
        case NEG: values[i] = -x; break;
        case EXP: values[i] = exp(x); break;
        case LOG: values[i] = log(x); break;
        case SIN: values[i] = sin(x); break;
        case COS: values[i] = cos(x); break;
        case TANH: values[i] = tanh(x); break;
        case SIGMOID: values[i] = 1.0 / (1.0 + exp(-x)); break;
        default: break;
        }
    }
}

void backward(int64_t count, const uint8_t *ops, const int32_t *left, const int32_t *right, const double *values,
              double *grads)
{
    memset(grads, 0, (size_t)count * sizeof *grads);
    grads[count - 1] = 1.0;
    for (int64_t i = count - 1; i >= 0; i--) {
        const double g = grads[i], out = values[i];
        switch (ops[i]) {
        case ADD: grads[left[i]] += g, grads[right[i]] += g; break;
        case SUB: grads[left[i]] += g, grads[right[i]] -= g; break;
        case MUL: {
            const double x = values[left[i]], y = values[right[i]];
            grads[left[i]] += g * y, grads[right[i]] += g * x;
            break;
        }
        case DIV: {
            const double share = g / values[right[i]];
            grads[left[i]] += share, grads[right[i]] -= share * out;
            break;
        }
        case NEG: grads[left[i]] -= g; break;
        case EXP: grads[left[i]] += g * out; break;
        case LOG: grads[left[i]] += g / values[left[i]]; break;
        case SIN: grads[left[i]] += g * cos(values[left[i]]); break;
        case COS: grads[left[i]] -= g * sin(values[left[i]]); break;
        case TANH: grads[left[i]] += g * (1.0 - out * out); break;
        case SIGMOID: grads[left[i]] += g * out * (1.0 - out); break;
        default: break;
        }
    }
}
