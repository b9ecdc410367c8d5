"""Checkpoints: everything a run needs to go on exactly, in one safetensors file, which any safetensors tool loads.

Arrays are tensors (`model.*`, `optimizer.*`, `order.words`, `history.*`); the rest is JSON in the file's metadata.
Nothing is ever unpickled. A file is replaced whole or not at all, so a run killed while it saves loses nothing; a
checksum tells a file that was changed since.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from gradwalk.training.tensors import CODES, Tensors, deserialised, little_endian, serialised, shaped, tensor

try:
    import fcntl
except ImportError:  # on Windows; what killed runs leave behind stays there
    fcntl = None  # type: ignore[assignment]

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


def save(checkpoint: Checkpoint, path: str | os.PathLike[str], new: bool = False) -> None:
    """Write the checkpoint; until it is complete on the disk, what was at `path` before stays there.

    A `new` one takes the name only if nobody has it: FileExistsError.
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
    replace_file(path, serialised(tensors, metadata), new)


def checksum(run: str, tensors: Tensors) -> str:
    """A fingerprint of the description and of every tensor with its name, type and shape."""
    digest = hashlib.sha256(run.encode("utf-8", "surrogatepass"))
    for name in sorted(tensors):
        part = tensors[name]
        kind = f"<{KINDS[part.format]}{part.itemsize}"
        digest.update(f"\0{name}\0{kind}\0{part.shape}\0".encode("utf-8", "surrogatepass"))
        digest.update(little_endian(part))
    return digest.hexdigest()


def replace_file(path: str | os.PathLike[str], content: bytes, new: bool = False) -> None:
    """Put `content` at `path`, whole or not at all: through a file beside it, synced and then renamed.

    What is no ordinary file is never replaced by one. With `new`, nothing is: FileExistsError.
    """
    target = os.path.realpath(path)  # what a link points to is replaced, not the link
    if kind := special_file(target):
        raise OSError(errno.EINVAL, f"{kind}, expected a file", os.fspath(path))
    partial, descriptor = _partial_file(target)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            # still open, and so still locked: nobody takes it for the leftover of a killed run
            if new:
                _take_name(partial, target)
            else:
                os.replace(partial, target)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(partial)
        if isinstance(error, OSError):
            error.filename, error.filename2 = os.fspath(path), None  # whoever asked knows nothing of the partial file
        raise
    if os.name != "nt":  # a folder cannot be opened there
        folder = os.open(os.path.dirname(target), os.O_RDONLY)
        try:
            os.fsync(folder)  # the new name itself
        finally:
            os.close(folder)


def special_file(path: str | os.PathLike[str]) -> str | None:
    """What is at `path`, if it is neither a file nor a folder: opening it may wait for ever."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return None
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return None
    return "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"


def _partial_file(target: str) -> tuple[str, int]:
    """A new file beside the target, locked as long as it is open. Its name is nobody else's: processes of containers
    that share a folder may have the same number."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    while True:
        partial = f"{target}.{os.getpid()}-{secrets.token_hex(4)}.partial"
        descriptor = os.open(partial, flags, 0o666)
        try:
            if locked(descriptor) and os.path.exists(partial):
                return partial, descriptor
        except BaseException:
            os.close(descriptor)
            with suppress(OSError):
                os.unlink(partial)
            raise
        os.close(descriptor)  # somebody took it for a leftover before it was locked


def locked(descriptor: int, without_locks: bool = True) -> bool:
    """Whether the file is ours now, until it is closed: no other process has locked it.

    Where a system, or a file system, has no locks, nobody can tell: `without_locks` is the answer there.
    """
    if fcntl is None:
        return without_locks
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return without_locks
    return True


def _take_name(partial: str, target: str) -> None:
    """Give the file its name, which nobody may have: of several processes at once, one gets it."""
    try:
        os.link(partial, target)
    except FileExistsError:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from None
    except OSError:  # a file system without links: an empty file holds the name for a moment
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        os.replace(partial, target)
        return
    os.unlink(partial)


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Delete the partial files beside `path` that killed runs have left there: those that nobody holds locked.

    Without locks they stay: somebody may be writing them.
    """
    if fcntl is None:
        return
    target = Path(os.path.realpath(path))
    for partial in target.parent.glob(f"{_glob_escaped(target.name)}.*.partial"):
        inner = partial.name[len(target.name) + 1 : -len(".partial")]
        if not re.fullmatch(r"\d+(-[0-9a-f]{8})?", inner) or special_file(partial):
            continue
        with suppress(OSError):
            descriptor = os.open(partial, os.O_RDONLY | os.O_NONBLOCK)
            try:
                if locked(descriptor, without_locks=False):
                    partial.unlink()
            finally:
                os.close(descriptor)


def _glob_escaped(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)


# ---------------------------------------------------------------- reading


def load(path: str | os.PathLike[str]) -> Checkpoint:
    """The checkpoint at `path`."""
    from safetensors import SafetensorError

    name = os.fspath(path)
    if kind := special_file(path):
        raise CheckpointError(f"{name}: {kind}, expected a file")
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST_FILE + 1)
        if len(content) > LARGEST_FILE:
            raise CheckpointError(f"{name}: larger than a checkpoint can be ({LARGEST_FILE:,} bytes)")
        metadata, found = deserialised(content)
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
