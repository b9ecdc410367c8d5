"""Checkpoints: everything a run needs to go on exactly, in one safetensors file, which any safetensors tool loads.

Arrays are tensors (`model.*`, `optimizer.*`, `order.words`, `history.*`); the rest is JSON in the file's metadata.
Nothing is ever unpickled. A file is replaced whole or not at all, so a run killed while it saves loses nothing.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy

    Arrays = dict[str, numpy.ndarray[Any, numpy.dtype[Any]]]

FORMAT = 1  # raised when an older gradwalk could not read a file rightly


class CheckpointError(ValueError):
    """A file that is not a checkpoint this version can use; the text says why, in one line."""


@dataclass
class Checkpoint:
    """A run between two steps."""

    step: int
    configuration: dict[str, Any]
    characters: str  # the tokenizer: its tokens are these, in this order
    data: dict[str, Any]  # the file's name, and the digest of the documents in it
    model: Arrays
    optimizer: dict[str, Any]  # arrays and plain numbers
    order: dict[str, Any]  # the random generator's words, and the position in the epoch
    losses: list[float]  # of each step so far
    validation_losses: list[tuple[int, float]]  # the step, and the loss after it


# ---------------------------------------------------------------- writing


def save(checkpoint: Checkpoint, path: str | os.PathLike[str]) -> None:
    """Write the checkpoint; until it is complete on the disk, what was at `path` before stays there."""
    import numpy
    from safetensors.numpy import save as serialised

    tensors = {f"model.{name}": array for name, array in checkpoint.model.items()}
    numbers = {}
    for name, part in checkpoint.optimizer.items():
        if isinstance(part, numpy.ndarray):
            tensors[f"optimizer.{name}"] = part
        else:
            numbers[name] = part
    tensors["order.words"] = numpy.array(checkpoint.order["words"], dtype=numpy.uint32)
    tensors["history.losses"] = numpy.array(checkpoint.losses, dtype=numpy.float64)
    tensors["history.validation_steps"] = numpy.array([s for s, _ in checkpoint.validation_losses], dtype=numpy.int64)
    tensors["history.validation_losses"] = numpy.array(
        [loss for _, loss in checkpoint.validation_losses], dtype=numpy.float64
    )
    described = {
        "step": checkpoint.step,
        "configuration": checkpoint.configuration,
        "characters": checkpoint.characters,
        "data": checkpoint.data,
        "optimizer": numbers,
        "order_position": checkpoint.order["position"],
    }
    metadata = {"gradwalk_checkpoint": str(FORMAT), "run": json.dumps(described)}
    contiguous = {name: numpy.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    replace_file(path, serialised(contiguous, metadata))


def replace_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Put `content` at `path`, whole or not at all: through a file beside it, synced and then renamed."""
    target = os.path.realpath(path)  # what a link points to is replaced, not the link
    partial = f"{target}.{os.getpid()}.partial"
    try:
        with open(partial, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(partial)
        raise
    if os.name != "nt":  # a folder cannot be opened there
        folder = os.open(os.path.dirname(target), os.O_RDONLY)
        try:
            os.fsync(folder)  # the new name itself
        finally:
            os.close(folder)


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Delete the partial files beside `path` that killed runs have left there."""
    target = Path(os.path.realpath(path))
    for partial in target.parent.glob(f"{_glob_escaped(target.name)}.*.partial"):
        process = partial.name[len(target.name) + 1 : -len(".partial")]
        if process.isdecimal() and not _is_running(int(process)):
            with suppress(OSError):
                partial.unlink()


def _glob_escaped(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)


def _is_running(process: int) -> bool:
    if os.name == "nt":
        return True  # there, asking with signal 0 would end the process
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return process != os.getpid()


# ---------------------------------------------------------------- reading


def load(path: str | os.PathLike[str]) -> Checkpoint:
    """The checkpoint at `path`."""
    from safetensors import SafetensorError, safe_open

    name = os.fspath(path)
    try:
        with open(path, "rb"):  # for the system's own words about what is wrong: safe_open has others
            pass
        with safe_open(name, framework="numpy") as file:
            described = _described(name, file.metadata() or {})
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118  # it is not a dict
    except OSError as error:
        raise CheckpointError(f"{name}: {error.strerror or error}") from None
    except SafetensorError as error:
        raise CheckpointError(f"{name}: not a safetensors file, or cut short ({error})") from None
    try:
        return _checkpoint(described, tensors)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{name}: a damaged checkpoint ({type(error).__name__}: {error})") from None


def _described(name: str, metadata: dict[str, str]) -> dict[str, Any]:
    version = metadata.get("gradwalk_checkpoint")
    if version is None:
        raise CheckpointError(f"{name}: a safetensors file, but not one of gradwalk's checkpoints")
    if not version.isdecimal():
        raise CheckpointError(f"{name}: a damaged checkpoint (format {version!r})")
    if int(version) > FORMAT:
        raise CheckpointError(
            f"{name}: written by a newer gradwalk (format {version}; this one reads {FORMAT}); "
            "pip install --upgrade gradwalk"
        )
    try:
        described = json.loads(metadata["run"])
    except (KeyError, ValueError) as error:
        raise CheckpointError(f"{name}: a damaged checkpoint ({type(error).__name__}: {error})") from None
    if not isinstance(described, dict):
        raise CheckpointError(f"{name}: a damaged checkpoint (its description is not an object)")
    return described


def _checkpoint(described: dict[str, Any], tensors: Arrays) -> Checkpoint:
    def under(prefix: str) -> Arrays:
        return {name[len(prefix) :]: tensor for name, tensor in tensors.items() if name.startswith(prefix)}

    step, characters = described["step"], described["characters"]
    losses = tensors["history.losses"].tolist()
    if not isinstance(step, int) or step < 0 or len(losses) != step:
        raise ValueError(f"step {step!r}, but {len(losses)} losses")
    if not isinstance(characters, str):
        raise TypeError("its tokenizer is not a text")
    configuration, data = dict(described["configuration"]), dict(described["data"])
    words, position = tensors["order.words"].tolist(), described["order_position"]
    validation_steps = tensors["history.validation_steps"].tolist()
    validation_losses = tensors["history.validation_losses"].tolist()
    return Checkpoint(
        step=step,
        configuration=configuration,
        characters=characters,
        data=data,
        model=under("model."),
        optimizer={**described["optimizer"], **under("optimizer.")},
        order={"words": words, "position": position},
        losses=losses,
        validation_losses=list(zip(validation_steps, validation_losses, strict=True)),
    )
