"""Which files are the user's own: not installed, not of the standard library, not gradwalk's."""

from __future__ import annotations

import functools
import os

_NOT_THEIRS = tuple(os.path.realpath(folder) + os.sep for folder in map(os.path.dirname, (os.__file__, __file__)))


@functools.lru_cache(maxsize=4096)
def is_own(path: str | None) -> bool:
    """Whether a file is the user's; what has no file is Python's."""
    if not path:
        return False
    path = os.path.join(os.path.realpath(path), "") if path.endswith(os.sep) else os.path.realpath(path)
    return not path.startswith(_NOT_THEIRS) and not {"site-packages", "dist-packages"} & set(path.split(os.sep))
