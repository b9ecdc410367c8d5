"""numpy.random, for `import gradwalk.numpy.random`: random numbers are constants."""

from typing import Any

import numpy as _numpy


def __getattr__(name: str) -> Any:
    return getattr(_numpy.random, name)
