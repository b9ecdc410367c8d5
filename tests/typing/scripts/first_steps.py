"""The first screen of the README, and what follows from it."""

import math

import gradwalk
from gradwalk import Value

a, b, d = Value(2.0, label="a"), Value(-3.0, label="b"), Value(10.0, label="d")
f = (a * b + d).relu()
f.backward()
data: float = f.data
slope: float = a.grad
print(f"{f:.4f}", data, slope, f > 1.0, f == a, 2 * a - 1 / b, -a, abs(a), a**2, 2**a)

whole: Value = a % 2 + 7 // a + divmod(a, b)[1] + round(a) + math.floor(b) + a.item()

loss: Value = gradwalk.exp(a) + gradwalk.log(d) * gradwalk.maximum(a, 0.0) + gradwalk.atan2(1.0, b)
number: float = gradwalk.exp(1.0) + gradwalk.maximum(1.0, 2.0) + gradwalk.sum([1.0, 2.0])
total: Value = gradwalk.sum([a, b, 1.0]) + gradwalk.dot([a, b], [1.0, 2.0]) + gradwalk.mean([a, b])
chances: list[Value] = gradwalk.softmax([a, b, d])
surprise: Value = gradwalk.cross_entropy([a, b, d], 1)
held: Value = gradwalk.stop_gradient(a) + gradwalk.clamp(b, -1.0, 1.0) + gradwalk.where(a > b, a, 0.0)
parameters: list[Value] = [a, b]
for parameter in parameters:
    parameter.data -= 0.1 * parameter.grad
    parameter.grad = 0.0

with gradwalk.no_grad(), gradwalk.ieee(), gradwalk.scope("part"):
    quiet: Value = a * b
for step in gradwalk.walk(loss):
    print(step)

try:
    gradwalk.log(Value(-1.5, label="prob"))
except gradwalk.DomainError as error:
    print(error)
