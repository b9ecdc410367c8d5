"""Checkpoints: everything a run needs to go on exactly, in one safetensors file, which any safetensors tool loads.

Arrays are tensors (`model.*`, `optimizer.*`, `order.words`, `history.*`); the rest is JSON in the file's metadata.
Nothing is ever unpickled. A file is replaced whole or not at all, so a run killed while it saves loses nothing; a
checksum tells a file that was changed since.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gradwalk.files import Held, read_file, replace_file
from gradwalk.training.tensors import CODES, Tensors, deserialised, little_endian, serialised, shaped, tensor

FORMAT = 1  # raised when an older gradwalk could not read a file rightly

LARGEST_FILE = 2**30  # bytes; forty million parameters, one Value each, are beyond this package
KINDS = {code: name[0].lower() for name, code in CODES.items()}  # f, i or u

# whatever reading a file that somebody else may have written can come to
DAMAGES = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


class CheckpointError(ValueError):
    """A file that is not a checkpoint this version can use; the text says why, in one line."""


@dataclass
class Checkpoint:
    """A run between two steps."""

    step: int
    configuration: dict[str, Any]
    characters: str  # the tokenizer: its tokens are these, in this order
    data: dict[str, Any]  # the file's name, and the digest of the documents in it
    model: Tensors
    optimizer: dict[str, Any]  # tensors and plain numbers
    order: dict[str, Any]  # the random generator's words, and the position in the epoch
    losses: list[float]  # of each step so far
    validation_losses: list[tuple[int, float]]  # the step, and the loss after it
    evaluation: dict[str, int] = field(default_factory=dict)  # how often, and on how many documents

    def __getstate__(self) -> dict[str, Any]:
        """For other processes; a memoryview as such cannot be pickled."""
        return {name: _packed(part) for name, part in vars(self).items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({name: _unpacked(part) for name, part in state.items()})


class _Packed(NamedTuple):
    """A memoryview, taken apart."""

    format: str
    shape: tuple[int, ...] | None
    content: bytes


def _packed(part: Any) -> Any:
    if isinstance(part, dict):
        return {name: _packed(each) for name, each in part.items()}
    return _Packed(part.format, part.shape, part.tobytes()) if isinstance(part, memoryview) else part


def _unpacked(part: Any) -> Any:
    if isinstance(part, _Packed):
        whole: Any = memoryview(part.content)
        return whole.cast(part.format, part.shape)
    return {name: _unpacked(each) for name, each in part.items()} if isinstance(part, dict) else part


# ---------------------------------------------------------------- writing


def save(checkpoint: Checkpoint, path: str | os.PathLike[str], new: bool = False, held: Held | None = None) -> None:
    """Write the checkpoint; until it is complete on the disk, what was at `path` before stays there.

    A `new` one takes the name only if nobody has it: FileExistsError. `held` then holds it.
    """
    numbers = {name: part for name, part in checkpoint.optimizer.items() if not isinstance(part, memoryview)}
    tensors = {f"model.{name}": part for name, part in checkpoint.model.items()}
    tensors |= {f"optimizer.{name}": part for name, part in checkpoint.optimizer.items() if name not in numbers}
    tensors["order.words"] = tensor("U32", checkpoint.order["words"])
    tensors["history.losses"] = tensor("F64", checkpoint.losses)
    tensors["history.validation_steps"] = tensor("I64", [step for step, _ in checkpoint.validation_losses])
    tensors["history.validation_losses"] = tensor("F64", [loss for _, loss in checkpoint.validation_losses])
    description = {
        "step": checkpoint.step,
        "configuration": checkpoint.configuration,
        "characters": checkpoint.characters,
        "data": checkpoint.data,
        "optimizer": numbers,
        "order_position": checkpoint.order["position"],
        "evaluation": checkpoint.evaluation,
    }
    metadata = {"gradwalk_checkpoint": str(FORMAT), "run": json.dumps(description)}
    metadata["checksum"] = checksum(metadata["run"], tensors)
    replace_file(path, serialised(tensors, metadata), new, held)


def checksum(run: str, tensors: Tensors) -> str:
    """A fingerprint of the description and of every tensor with its name, type and shape."""
    digest = hashlib.sha256(run.encode("utf-8", "surrogatepass"))
    for name in sorted(tensors):
        part = tensors[name]
        kind = f"<{KINDS[part.format]}{part.itemsize}"
        digest.update(f"\0{name}\0{kind}\0{part.shape}\0".encode("utf-8", "surrogatepass"))
        digest.update(little_endian(part))
    return digest.hexdigest()


# ---------------------------------------------------------------- reading


def load(path: str | os.PathLike[str]) -> Checkpoint:
    """The checkpoint at `path`."""
    from safetensors import SafetensorError

    name = os.fspath(path)
    try:
        metadata, found = deserialised(read_file(path, LARGEST_FILE, "a checkpoint"))
        description = _description(name, metadata)
        tensors = shaped(found)
    except OSError as error:
        raise CheckpointError(f"{name}: {error.strerror or error}") from None
    except SafetensorError as error:
        raise CheckpointError(f"{name}: not a safetensors file, or cut short ({error})") from None
    except CheckpointError:
        raise
    except DAMAGES as error:
        raise CheckpointError(f"{name}: a damaged checkpoint ({short(error)})") from None
    unknown = metadata.keys() - {"gradwalk_checkpoint", "run", "checksum", "format"}  # the last is other programs'
    if unknown and "checksum" not in metadata:  # its name may be what was damaged; the first checkpoints had none
        raise CheckpointError(f"{name}: a damaged checkpoint (its header has {short_name(min(unknown))})")
    if "checksum" in metadata and metadata["checksum"] != checksum(metadata["run"], tensors):
        raise CheckpointError(f"{name}: a damaged checkpoint (it was changed since it was written: another checksum)")
    try:
        return _checkpoint(description, tensors)
    except DAMAGES as error:
        raise CheckpointError(f"{name}: a damaged checkpoint ({short(error)})") from None


def short(error: BaseException) -> str:
    """An error in a few words: what a file made us say may be long."""
    text = str(error)
    return f"{type(error).__name__}: {text if len(text) <= 300 else text[:297] + '...'}"


def short_name(name: str) -> str:
    """Fit for a terminal, whatever it is."""
    return repr(name if len(name) <= 40 else name[:37] + "...")


def _description(name: str, metadata: dict[str, str]) -> dict[str, Any]:
    version = metadata.get("gradwalk_checkpoint")
    if version is None:
        raise CheckpointError(f"{name}: a safetensors file, but not one of gradwalk's checkpoints")
    if not version.isdecimal() or len(version) > 9:
        raise CheckpointError(f"{name}: a damaged checkpoint (format {version[:20]!r})")
    if int(version) > FORMAT:
        raise CheckpointError(
            f"{name}: written by a newer gradwalk (format {version}; this one reads {FORMAT}); "
            "pip install --upgrade gradwalk"
        )
    try:
        description = json.loads(metadata["run"])
    except (KeyError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{name}: a damaged checkpoint ({short(error)})") from None
    if not isinstance(description, dict):
        raise CheckpointError(f"{name}: a damaged checkpoint (its description is not an object)")
    return description


def _checkpoint(description: dict[str, Any], tensors: Tensors) -> Checkpoint:
    def under(prefix: str) -> Tensors:
        return {name[len(prefix) :]: part for name, part in tensors.items() if name.startswith(prefix)}

    def numbers(name: str, kind: str) -> list[Any]:
        if tensors[name].ndim != 1 or KINDS[tensors[name].format] != kind:
            raise ValueError(f"{name} is not a list of numbers of the right type")
        return tensors[name].tolist()

    step, characters = description["step"], description["characters"]
    losses = numbers("history.losses", "f")
    if type(step) is not int or not 0 <= step < 2**63 or len(losses) != step:
        raise ValueError(f"the step is not the number of losses, {len(losses)}")
    if not isinstance(characters, str):
        raise TypeError("its tokenizer is not a text")
    data, optimizer = dict(description["data"]), dict(description["optimizer"])
    name, evaluation = data.get("name"), dict(description.get("evaluation", {}))
    if name is not None and (not isinstance(name, str) or "\0" in name):
        raise TypeError("the name of its data is not a text")
    if any(type(number) is not int or not 0 < number < 2**63 for number in evaluation.values()):
        raise ValueError("how often it is evaluated is not a number")
    if any(type(number) not in (int, float, str, bool, type(None)) for number in optimizer.values()):
        raise TypeError("its optimizer's settings are not plain numbers")
    validation_steps = numbers("history.validation_steps", "i")
    return Checkpoint(
        step=step,
        configuration=dict(description["configuration"]),
        characters=characters,
        data=data,
        model=under("model."),
        optimizer={**optimizer, **under("optimizer.")},
        order={"words": numbers("order.words", "u"), "position": description["order_position"]},
        losses=losses,
        validation_losses=list(zip(validation_steps, numbers("history.validation_losses", "f"), strict=True)),
        evaluation=evaluation,
    )
