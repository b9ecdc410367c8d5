"""A damped pendulum simulated in a loop, differentiated through time, and fitted to what was seen of it.

Run it with `python examples/pendulum.py`: from its angles alone it finds the length and the damping.
"""

import gradwalk.math as math
from gradwalk import hessian, value_and_grad

GRAVITY, STEP, STEPS = 9.81, 0.02, 100
TRUE = {"length": 1.3, "damping": 0.25}


def angles(length, damping, angle=1.0):
    """The angle after each step: the speed first, then the angle, so that energy does not grow."""
    seen, speed = [], 0.0
    for _ in range(STEPS):
        speed = speed + STEP * (-GRAVITY / length * math.sin(angle) - damping * speed)
        angle = angle + STEP * speed
        seen.append(angle)
    return seen


def misfit(parameters, observed):
    """The mean square distance between the simulated and the observed angles."""
    simulated = angles(parameters["length"], parameters["damping"])
    return sum((a - b) ** 2 for a, b in zip(simulated, observed, strict=True)) / len(observed)


def fit(parameters, observed, steps=20):
    """Newton's method: the gradient and the Hessian through all of the simulated time, both exact."""
    for _ in range(steps):
        value, slope = value_and_grad(misfit)(parameters, observed)
        curvature = hessian(misfit)(parameters, observed)
        a, b, c = (curvature[i][j] for i, j in (("length", "length"), ("length", "damping"), ("damping", "damping")))
        determinant = a * c - b * b
        step = {
            "length": (c * slope["length"] - b * slope["damping"]) / determinant,
            "damping": (a * slope["damping"] - b * slope["length"]) / determinant,
        }
        parameters = {name: parameters[name] - step[name] for name in parameters}
        if max(map(abs, step.values())) < 1e-12:
            break
    return parameters, value


if __name__ == "__main__":
    found, value = fit({"length": 1.2, "damping": 0.2}, angles(**TRUE))
    for name, true in TRUE.items():
        print(f"{name:<8} true {true:.6f}, found {found[name]:.6f}")
    print(f"misfit   {value:.1e}")
