// The starting examples: the smallest graphs first in which something can go wrong, then what people build of them.

export const EXAMPLES = [
  {
    title: "relu(a\u00b7b + d)",
    text: "relu(a*b + d)",
    values: { a: 2, b: -3, d: 10 },
    note: "The whole rule in three operations: each one hands its gradient to what it was made from.",
  },
  {
    title: "a + a",
    text: "a + a",
    values: { a: 3 },
    note: "One node, used twice: both contributions count. Try \u201c= instead of +=\u201d.",
  },
  {
    title: "(a\u00b7b + a)\u00b2",
    text: "(a*b + a)**2",
    values: { a: 2, b: -3 },
    note: "a is used at two depths, so its gradient arrives in two parts.",
  },
  {
    title: "(a + b)\u00b7c",
    text: "(a + b)*c",
    values: { a: 2, b: -1, c: 3 },
    note: "Addition passes the gradient on, multiplication swaps the factors.",
  },
  {
    title: "a neuron",
    text: "tanh(w1*x1 + w2*x2 + b)",
    values: { w1: -3, x1: 2, w2: 1, x2: 0.5, b: 6.5 },
    fixed: ["x1", "x2"],
    note: "Where tanh is flat, little gradient gets through: drag b and see.",
  },
  {
    title: "a small MLP",
    text: "h1 = tanh(u1*x1 + u2*x2 + b1)\nh2 = tanh(w1*x1 + w2*x2 + b2)\nout = p*h1 + q*h2 + b3\nloss = (out - y)**2",
    values: { u1: 0.7, x1: 1, u2: -0.4, x2: 2, b1: 0.3, w1: -0.3, w2: 0.6, b2: -0.2, p: 1.1, q: -0.8, b3: 0.3, y: 1 },
    fixed: ["x1", "x2", "y"],
    note: "Two hidden neurons and a squared error: the gradients of the nine weights are what training follows.",
  },
  {
    title: "softmax with cross entropy",
    text: "ea = exp(a)\neb = exp(b)\nec = exp(c)\ntotal = ea + eb + ec\np = ea / total\nloss = -log(p)",
    values: { a: 1, b: 2, c: -1 },
    note: "At the logits arrives the probability, minus 1 for the right one. In breadth-first order it does not: ea is used twice.",
  },
  {
    title: "attention over two tokens",
    text: "s1 = (q1*k11 + q2*k12) / sqrt(2)\ns2 = (q1*k21 + q2*k22) / sqrt(2)\ne1 = exp(s1)\ne2 = exp(s2)\ntotal = e1 + e2\nout = e1/total * v1 + e2/total * v2",
    values: { q1: 1, k11: 0.5, q2: -1, k12: 0.3, k21: -0.2, k22: 0.8, v1: 2, v2: -1 },
    note: "A query, two keys, two values: the query's gradient goes through both scores.",
  },
];
