"""Documents for a character model: one per line of a text file, split and ordered by a seed.

The whole file is kept in memory, so its size has a limit. Turning documents into tokens is in `tokenizer.py`.
"""

from __future__ import annotations

import hashlib
import io
import os
import random
import re
import stat
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gradwalk.files import without_waiting

BUNDLED_NAMES = Path(__file__).with_name("names.txt")  # their origin is in NAMES.md
LARGEST_FILE = 16 * 1024 * 1024  # bytes; some two million names, and a second to read
PATIENCE = 2.0  # seconds, with a pipe that nobody writes to


class DataError(ValueError):
    """A file that cannot be trained on; the text says why, in one line."""


def read_documents(path: str | os.PathLike[str]) -> list[str]:
    """The lines of a UTF-8 file, without blank ones and without white space at their ends.

    >>> read_documents(BUNDLED_NAMES)[:3]
    ['james', 'john', 'robert']
    """
    documents = documents_in(_content(path), os.fspath(path))
    if not documents:
        raise DataError(f"{os.fspath(path)}: no documents in it; expected text, one document per line")
    return documents


def documents_in(content: bytes, name: str) -> list[str]:
    """The documents of a file's content; `name` is for the error message.

    >>> documents_in("\\ufeffemma\\r\\n\\r\\n  zoé \\n".encode(), "names.txt")
    ['emma', 'zoé']
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{name}: not UTF-8 text at byte {error.start} (line {line}); convert it first, with iconv for instance"
        ) from None
    # not str.splitlines: it also breaks lines at characters that may be part of a document
    return [document for line in re.split(r"\r\n|\n|\r", text) if (document := line.strip())]


def _content(path: str | os.PathLike[str]) -> bytes:
    """What is in the file, if it is not too large; a pipe or a device, whose size is not known, is read up to there."""
    name = os.fspath(path)
    try:
        with open(path, "rb", buffering=0, opener=without_waiting) as file:
            size = os.fstat(file.fileno()).st_size
            content = b"" if size > LARGEST_FILE else _read_up_to(file, LARGEST_FILE + 1)
    except OSError as error:
        raise DataError(f"{name}: {error.strerror or error}") from None
    except ValueError as error:  # a null character in the name
        raise DataError(f"{name}: {error}") from None
    if max(size, len(content)) > LARGEST_FILE:
        shown = f"{size:,} bytes" if size else "more"
        raise DataError(
            f"{name}: expected at most {LARGEST_FILE:,} bytes (documents are kept in memory), got {shown}; "
            f"train on a part of it: head -c {LARGEST_FILE} {name} > part.txt"
        )
    return content


def _read_up_to(file: io.FileIO, limit: int) -> bytes:
    parts = bytearray()
    while len(parts) < limit and (part := file.read(min(1 << 20, limit - len(parts)))):
        parts += part
    waited = 0.0
    while not parts and waited < PATIENCE and stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
        time.sleep(0.02)  # whoever writes to the pipe may be about to open it
        waited += 0.02
        if part := file.read(1 << 20):
            return part + _read_up_to(file, limit - len(part))
    return bytes(parts)


def digest(documents: Sequence[str]) -> str:
    """A fingerprint of the documents and their order: a resumed run must see the same ones.

    >>> digest(["emma", "zoé"]) == digest(["zoé", "emma"])
    False
    """
    return hashlib.sha256("\n".join(documents).encode("utf-8", "surrogatepass")).hexdigest()


def split(documents: Sequence[str], validation_share: float, seed: int) -> tuple[list[str], list[str]]:
    """Documents to train on, and documents to validate on; the same for the same seed.

    >>> train, validation = split([str(i) for i in range(10)], 0.2, seed=1)
    >>> len(train), len(validation), set(train) & set(validation)
    (8, 2, set())
    """
    if not 0.0 <= validation_share < 1.0:
        raise ValueError(f"validation share: expected a number from 0 to below 1, got {validation_share:g}")
    if validation_share == 0.0:
        return list(documents), []
    if len(documents) < 2:
        raise DataError(
            "only one document: expected at least two, one to train on and one to validate on; "
            "to train on it all the same, set the validation share to 0"
        )
    count = min(max(1, round(len(documents) * validation_share)), len(documents) - 1)
    shuffled = list(range(len(documents)))
    random.Random(f"split {seed}").shuffle(shuffled)
    chosen = set(shuffled[:count])
    # validation in shuffled order: its first few are then a fair sample of it
    return [documents[i] for i in range(len(documents)) if i not in chosen], [documents[i] for i in shuffled[:count]]


class Order:
    """Which documents come next: all of them in a shuffled order, then all of them in another one, and so on.

    >>> order = Order(count=3, seed=1)
    >>> sorted(order.take(3))
    [0, 1, 2]
    """

    def __init__(self, count: int, seed: int) -> None:
        self._count = count
        self._random = random.Random(f"order {seed}")
        self._start_epoch()

    def _start_epoch(self) -> None:
        # the state from which this epoch's order follows: all that a checkpoint needs to keep of it
        self._state_at_start = self._random.getstate()
        self._order = list(range(self._count))
        self._random.shuffle(self._order)
        self._position = 0

    def take(self, count: int) -> list[int]:
        """The next `count` documents, by their numbers; a batch may reach into the next epoch."""
        taken = []
        for _ in range(count):
            if self._position == self._count:
                self._start_epoch()
            taken.append(self._order[self._position])
            self._position += 1
        return taken

    def mark(self) -> tuple[Any, int]:
        """Where it stands, for `go_back`."""
        return self._state_at_start, self._position

    def go_back(self, mark: tuple[Any, int]) -> None:
        """As if nothing had been taken since."""
        state, self._position = mark
        if state is not self._state_at_start:  # into the epoch before
            self._random.setstate(state)
            self._start_epoch()
            self._position = mark[1]

    def state(self) -> dict[str, Any]:
        """Where the order stands, as plain numbers: the words of the generator's state, and the position."""
        _, words, _ = self._state_at_start
        return {"words": list(words), "position": self._position}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from where `state()` was taken."""
        position = state["position"]
        if not isinstance(position, int) or not 0 <= position <= self._count:
            raise ValueError(f"order: expected a position from 0 to {self._count}, got {position!r}")
        self._random.setstate((random.Random.VERSION, tuple(int(word) for word in state["words"]), None))
        self._start_epoch()
        self._position = position
