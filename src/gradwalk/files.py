"""Files whose names the user gives: written whole or not at all, held by one process at a time, never waited for.

A pipe, a device or a folder may have the name of a file, and opening a pipe may wait for ever; what is read has an end.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # on Windows; what killed runs leave behind stays there, and nobody is kept out
    fcntl = None  # type: ignore[assignment]

_PLAIN = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_NOT_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


def special_file(path: str | os.PathLike[str]) -> str | None:
    """What is at `path`, if it is neither a file nor a folder: opening it may wait for ever."""
    try:
        return _special(os.stat(path).st_mode)
    except (OSError, ValueError):
        return None


def _special(mode: int) -> str | None:
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return None
    return "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"


def refuse_special(path: str | os.PathLike[str]) -> None:
    """OSError, where opening it may wait for ever."""
    if kind := special_file(path):
        raise OSError(errno.EINVAL, f"{kind}, expected a file", os.fspath(path))


def refuse_same(**named: str | os.PathLike[str] | None) -> None:
    """ValueError, where two options name one file: what one of them writes would be lost."""
    files: dict[object, str] = {}
    for name, path in named.items():
        if path is None or special_file(path):
            continue
        identity: object = os.fspath(path)
        with suppress(OSError, ValueError):
            identity = os.path.realpath(path)
            found = os.stat(path)
            identity = found.st_dev, found.st_ino
        other = files.setdefault(identity, name)
        if other != name:
            raise ValueError(f"--{other} and --{name}: expected two files, got {os.fspath(path)} for both")


# ---------------------------------------------------------------- reading


def read_file(path: str | os.PathLike[str], most: int, what: str) -> bytes:
    """What is in a file of at most so many bytes, which is more than `what` it is can be."""
    refuse_special(path)
    with open(path, "rb", buffering=0) as file:
        content = None if os.fstat(file.fileno()).st_size > most else file.readall()
    if content is None or len(content) > most:  # the latter, if somebody writes to it
        raise OSError(errno.EFBIG, f"larger than {what} can be ({most:,} bytes)", os.fspath(path))
    return content


def without_waiting(path: str, flags: int) -> int:
    """Opens a pipe also where nobody writes to it yet; one that nobody reads is an error. The system would wait."""
    try:
        descriptor = os.open(path, flags | _NOT_WAITING, 0o666)
    except OSError as error:
        if error.errno == errno.ENXIO and special_file(path) == "a pipe":
            raise OSError(errno.ENXIO, "a pipe that nobody reads", path) from None
        raise
    if hasattr(os, "set_blocking"):
        os.set_blocking(descriptor, True)
    return descriptor


# ---------------------------------------------------------------- writing


def write_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Put `content` at `path`: a file gets it whole or not at all; a device, or a pipe that is read, takes it, too."""
    if special_file(path) is None:
        replace_file(path, content)
        return
    try:
        with open(path, "wb", buffering=0, opener=without_waiting) as file:
            _write(file.fileno(), content)
    except OSError as error:  # with its name: or it would be taken for our own output's, whose reader may go
        error.filename = os.fspath(path)
        raise


def _write(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def replace_file(path: str | os.PathLike[str], content: bytes, new: bool = False, held: Held | None = None) -> None:
    """Put `content` at `path`, whole or not at all: through a file beside it, synced and then renamed.

    What is no ordinary file is never replaced by one. With `new`, nothing is: FileExistsError. Who may read the file
    stays as it was. `held` then holds it.
    """
    try:
        target = os.path.realpath(path)  # what a link points to is replaced, not the link
        partial, descriptor = _partial_file(target, _permissions(target))
        try:
            _write(descriptor, content)
            os.fsync(descriptor)
            # still open, and so still locked: nobody takes it for the leftover of a killed run
            if new:
                _take_name(partial, target)
            else:
                os.replace(partial, target)
        except BaseException:
            _close(descriptor)
            with suppress(OSError):
                os.unlink(partial)
            raise
    except OSError as error:
        error.filename, error.filename2 = os.fspath(path), None  # whoever asked knows nothing of the partial file
        raise
    if held is None:
        _close(descriptor)
    else:
        held.keep(descriptor)
    _sync_name(target)


def _permissions(target: str) -> int | None:
    """Those of the file that is to be replaced; None: there is no file."""
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if kind := _special(mode):
        raise OSError(errno.EINVAL, f"{kind}, expected a file", target)
    return stat.S_IMODE(mode) if stat.S_ISREG(mode) else None


def _sync_name(target: str) -> None:
    """The new name itself onto the disk. The file is there already: what does not know how is no failure."""
    if os.name == "nt":  # a folder cannot be opened there
        return
    with suppress(OSError):
        folder = os.open(os.path.dirname(target), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _close(descriptor: int) -> None:
    """What was written is on the disk already, or given up."""
    with suppress(OSError):
        os.close(descriptor)


def _partial_file(target: str, permissions: int | None) -> tuple[str, int]:
    """A new file beside the target, locked as long as it is open. Its name is nobody else's: processes of containers
    that share a folder may have the same number."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN
    while True:
        partial = f"{target}.{os.getpid()}-{os.urandom(4).hex()}.partial"
        descriptor = os.open(partial, flags, 0o666 if permissions is None else permissions)
        try:
            if permissions is not None and hasattr(os, "fchmod"):
                with suppress(OSError):  # a file system that has none
                    os.fchmod(descriptor, permissions)  # also what the umask has taken away
            if locked(descriptor) and os.path.exists(partial):
                return partial, descriptor
        except BaseException:
            _close(descriptor)
            with suppress(OSError):
                os.unlink(partial)
            raise
        _close(descriptor)  # somebody took it for a leftover before it was locked
        with suppress(OSError):
            os.unlink(partial)


def _take_name(partial: str, target: str) -> None:
    """Give the file its name, which nobody may have: of several processes at once, one gets it."""
    try:
        os.link(partial, target)
    except FileExistsError:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from None
    except OSError:  # a file system without links: an empty file holds the name for a moment
        holder = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            _close(holder)
            os.replace(partial, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(target)
            raise
        return
    with suppress(OSError):  # it has its name
        os.unlink(partial)


# ---------------------------------------------------------------- one process at a time


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


class Held:
    """A name that one process has to itself, until it closes it or ends, however that comes.

    Locked is the file that has the name, then the one that replaces it: nothing lies beside it, nothing stays behind.
    """

    def __init__(self) -> None:
        self._descriptor: int | None = None

    def take(self, path: str | os.PathLike[str]) -> bool:
        """Hold the file that is there; whether nobody else does. What is not there, or is no file, nobody holds."""
        while fcntl is not None and special_file(path) is None:
            try:
                descriptor = _to_lock(path)
            except (OSError, ValueError):  # whoever reads it says so
                return True
            try:
                if not locked(descriptor):
                    _close(descriptor)
                    return False
                if _is_at(descriptor, path):
                    self.keep(descriptor)
                    return True
            except BaseException:
                _close(descriptor)
                raise
            _close(descriptor)  # it was replaced meanwhile, by who held it
        return True

    def keep(self, descriptor: int) -> None:
        """Hold this file, which is open and locked, instead."""
        before, self._descriptor = self._descriptor, descriptor
        if before is not None:
            _close(before)
        if fcntl is None:  # where there are no locks, what is open cannot be replaced
            self.close()

    def close(self) -> None:
        if self._descriptor is not None:
            _close(self._descriptor)
            self._descriptor = None


def _to_lock(path: str | os.PathLike[str]) -> int:
    """The file, open for writing where that is possible: some file systems lock no other."""
    try:
        return os.open(path, os.O_RDWR | _PLAIN | _NOT_WAITING)
    except OSError:
        return os.open(path, os.O_RDONLY | _PLAIN | _NOT_WAITING)


def _is_at(descriptor: int, path: str | os.PathLike[str]) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError as error:
        return not isinstance(error, FileNotFoundError)  # or nobody can tell: as where there are no locks


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Delete the partial files beside `path` that killed runs have left there: those that nobody holds locked.

    Without locks they stay: somebody may be writing them.
    """
    with suppress(OSError):
        target = Path(os.path.realpath(path))
        for partial in target.parent.glob(f"{_glob_escaped(target.name)}.*.partial") if fcntl else ():
            inner = partial.name[len(target.name) + 1 : -len(".partial")]
            if re.fullmatch(r"\d+(-[0-9a-f]{8})?", inner) and not special_file(partial):
                _remove_leftover(partial)


def _remove_leftover(partial: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(partial, os.O_RDONLY | os.O_NONBLOCK)
        try:
            if locked(descriptor, without_locks=False):
                partial.unlink()
        finally:
            os.close(descriptor)


def _glob_escaped(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)
