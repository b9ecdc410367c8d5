"""The loop of a peer's process: a request from benchmarks/compiled.py on each line of stdin, its reply on stdout.

Both are JSON. Not for people: benchmarks/compiled.py starts the peers and gives them their turns.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from workloads import Workload

Workloads = dict[str, dict[str, Callable[[], Workload]]]  # by the work, then by the peer's way of doing it


class _Peer:
    """What can be asked for; each method is a request."""

    def __init__(self, version: str, workloads: Workloads) -> None:
        self._version, self._workloads = version, workloads
        self._made: dict[tuple[str, str], Workload] = {}

    def about(self) -> dict[str, Any]:
        return {"version": self._version, "ways": {work: list(ways) for work, ways in self._workloads.items()}}

    def compile(self, work: str, way: str) -> float | None:
        """The seconds it took to make the workload ready for its first call; None where nothing is compiled."""
        workload = self._made[work, way] = self._made.get((work, way)) or self._workloads[work][way]()
        return workload.compile_seconds()

    def answer(self, work: str, way: str) -> dict[str, list[float]]:
        return self._made[work, way].answer()

    def facts(self, work: str, way: str) -> dict[str, int]:
        return self._made[work, way].facts()

    def seconds(self, work: str, way: str, calls: int) -> float:
        return self._made[work, way].seconds(calls)


def serve(version: str, workloads: Workloads) -> None:
    """Answer until the other side closes the pipe."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints goes to stderr, not between the replies
    peer = _Peer(version, workloads)
    for line in sys.stdin:
        request, *arguments = json.loads(line)
        try:
            reply = {"reply": getattr(peer, request)(*arguments)}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=replies, flush=True)
