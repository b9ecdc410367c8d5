"""Bundle adjustment in small: cameras and points moved until the points appear where they were seen.

Run it with `python examples/bundle_adjustment.py`; it needs SciPy (`pip install gradwalk[science]`). The residual is
ordinary Python, its Jacobian comes from `jacobian`.
"""

import random

import numpy as np
from scipy.optimize import least_squares

import gradwalk.math as math
from gradwalk import jacobian

CAMERAS, POINTS, PER_CAMERA = 3, 8, 8  # rotation (3), translation (3), focal length, distortion


def rotated(point, axis):
    """Rodrigues' formula: a turn about `axis`, by its length."""
    angle = math.hypot(*axis)
    ux, uy, uz = (a / angle for a in axis)
    x, y, z = point
    c, s = math.cos(angle), math.sin(angle)
    along = (ux * x + uy * y + uz * z) * (1.0 - c)
    return (
        x * c + (uy * z - uz * y) * s + ux * along,
        y * c + (uz * x - ux * z) * s + uy * along,
        z * c + (ux * y - uy * x) * s + uz * along,
    )


def projected(camera, point):
    """Where a camera sees a point, with radial distortion."""
    x, y, z = (a + t for a, t in zip(rotated(point, camera[0:3]), camera[3:6], strict=True))
    u, v = x / z, y / z
    scale = camera[6] * (1.0 + camera[7] * (u * u + v * v))
    return scale * u, scale * v


def split(parameters):
    cameras = [parameters[PER_CAMERA * i : PER_CAMERA * (i + 1)] for i in range(CAMERAS)]
    rest = parameters[PER_CAMERA * CAMERAS :]
    return cameras, [rest[3 * i : 3 * i + 3] for i in range(POINTS)]


def views(parameters):
    """Every point in every camera, as one flat list."""
    cameras, points = split(parameters)
    return [coordinate for camera in cameras for point in points for coordinate in projected(camera, point)]


def residuals(parameters, seen):
    return np.array([view - s for view, s in zip(views(parameters), seen, strict=True)])


def scene(seed=11):
    """True parameters, and a disturbed start."""
    rng = random.Random(seed)
    true = []
    for i in range(CAMERAS):
        true += [0.1 + 0.05 * i, 0.2 * i - 0.2, 0.05, 0.1 * i, -0.1, 6.0, 2.0, -0.01]
    true += [rng.uniform(-1.0, 1.0) for _ in range(3 * POINTS)]
    return np.array(true), np.array([x + rng.gauss(0.0, 0.02) for x in true])


def adjust():
    true, start = scene()
    return (
        least_squares(residuals, start, jac=jacobian(residuals), args=(views(true),), x_scale="jac"),
        start,
        views(true),
    )


if __name__ == "__main__":
    found, start, seen = adjust()
    print(f"{len(seen)} residuals of {len(start)} parameters, {found.njev} Jacobians")
    print(f"root mean square error: {np.sqrt(np.mean(residuals(start, seen) ** 2)):.1e} at the start, ", end="")
    print(f"{np.sqrt(np.mean(found.fun**2)):.1e} at the end")
