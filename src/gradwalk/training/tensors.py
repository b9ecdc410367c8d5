"""Tensors in a safetensors file, as memoryviews: a run is saved, and goes on, without NumPy too.

The file is eight bytes with the length of its header, the header in JSON, and the numbers. Written here; read by the
library, which checks all of it.
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Iterable
from typing import Any

Tensors = dict[str, memoryview]

CODES = {
    "F64": "d",
    "F32": "f",
    "I64": "q",
    "I32": "i",
    "I16": "h",
    "I8": "b",
    "U64": "Q",
    "U32": "I",
    "U16": "H",
    "U8": "B",
}
TYPES = {code: name for name, code in CODES.items()}
ALIGNED = 8  # bytes; where the numbers begin


def tensor(type: str, numbers: Iterable[float]) -> memoryview:
    """A row of numbers of a type.

    >>> tensor("I64", [1, 2]).tolist()
    [1, 2]
    """
    return memoryview(array(CODES[type], numbers))


def little_endian(tensor: memoryview) -> bytes:
    """Its numbers as they are in a file."""
    if sys.byteorder == "little":
        return tensor.tobytes()
    swapped = array(tensor.format, tensor.tobytes())
    swapped.byteswap()
    return swapped.tobytes()


def serialised(tensors: Tensors, metadata: dict[str, str]) -> bytes:
    """The content of a safetensors file."""
    header: dict[str, Any] = {"__metadata__": metadata}
    parts, end = [], 0
    for name in sorted(tensors, key=lambda name: (-tensors[name].itemsize, name)):  # so each begins at its multiple
        begin, end = end, end + tensors[name].nbytes
        shape = list(tensors[name].shape or ())
        header[name] = {"dtype": TYPES[tensors[name].format], "shape": shape, "data_offsets": [begin, end]}
        parts.append(little_endian(tensors[name]))
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % ALIGNED)
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])


def deserialised(content: bytes) -> tuple[dict[str, str], list[tuple[str, dict[str, Any]]]]:
    """The metadata of a file, and its tensors for `shaped`; SafetensorError for what is none."""
    from safetensors import deserialize

    found = deserialize(content)  # type: ignore[no-untyped-call]
    length = int.from_bytes(content[:8], "little")
    metadata: dict[str, str] = json.loads(content[8 : 8 + length]).get("__metadata__") or {}
    return metadata, found


def shaped(found: list[tuple[str, dict[str, Any]]]) -> Tensors:
    """The tensors of a file; KeyError for a type that no checkpoint has, such as F16."""
    return {name: _shaped(about) for name, about in found}


def _shaped(about: dict[str, Any]) -> memoryview:
    numbers = array(CODES[about["dtype"]], bytes(about["data"]))
    if sys.byteorder == "big":
        numbers.byteswap()
    view, shape = memoryview(numbers), tuple(about["shape"])
    return view if view.shape == shape else view.cast("B").cast(view.format, shape)  # type: ignore[call-overload]
