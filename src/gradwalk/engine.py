"""Picks the engine and exports its Value: `from gradwalk.engine import Value`, as with micrograd.

`GRADWALK_ENGINE=native` or `=reference` in the environment decides; otherwise the native engine is used where
it was built, and its absence is said once. `GRADWALK_KERNELS` decides which of its kernels compiled functions run on.
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from contextlib import AbstractContextManager, nullcontext, suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gradwalk.errors import GradwalkWarning
from gradwalk.passes import THE_PASS

__all__ = ["ENGINES", "FUNCTIONS", "NAME", "REASON", "Value", "available", "load", "topological_order"]

ENGINES = ("native", "reference")
REINSTALL = "pip install --force-reinstall --no-cache-dir --no-binary gradwalk gradwalk"  # --no-binary: builds it


def _chosen() -> tuple[str, str]:
    """The engine's name, and why it was chosen."""
    wanted = os.environ.get("GRADWALK_ENGINE", "")
    if wanted:
        if wanted not in ENGINES:
            message = f"GRADWALK_ENGINE: expected one of {', '.join(ENGINES)}, got {wanted!r}"
            raise ImportError(message, name="gradwalk")
        try:
            load(wanted)
        except ImportError as error:
            if _is_refused(error):
                raise
            raise ImportError(
                f"GRADWALK_ENGINE={wanted} is set, but that engine could not be imported ({why_not_built() or error}); "
                f"{_what_to_do()}, or unset it",
                name="gradwalk",
            ) from error
        return wanted, f"GRADWALK_ENGINE={wanted} is set"
    try:
        load("native")
    except ImportError as error:
        if _is_refused(error):
            raise
        if sys.platform == "emscripten":  # in a browser nobody can build it
            return "reference", "there is no native engine in a browser"
        warnings.warn(
            f"gradwalk runs on its slow reference engine, the native one was not built ({why_not_built() or error}); "
            f"{_what_to_do()}, or set GRADWALK_ENGINE=reference to silence this",
            GradwalkWarning,
            stacklevel=2,
        )
        return "reference", f"the native engine could not be imported ({error})"
    return "native", "it was built with the package"


def _is_refused(error: ImportError) -> bool:
    """Whether the native engine is there, but not what the environment asks of it."""
    return str(error).startswith("GRADWALK_KERNELS")


def build_failure() -> str:
    """What the compiler said when it failed to build the native engine; setup.py keeps it. Empty where it did not."""
    try:
        with open(os.path.join(os.path.dirname(__file__), "build_failure.txt"), encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def why_not_built() -> str:
    """Its first line with an error."""
    lines = build_failure().splitlines()
    return next((line.strip() for line in lines if "error" in line.lower()), lines[-1] if lines else "")


def _what_to_do() -> str:
    """Nobody is to install a compiler that they have: it said what is wrong."""
    if ": error" in why_not_built():
        return "see what the compiler said: gradwalk doctor"
    return f"install a C compiler and run: {REINSTALL}"


def load(name: str) -> ModuleType:
    """An engine's module by name: it has Value and FUNCTIONS."""
    with warnings.catch_warnings():
        # of a free-threaded Python, in which the native engine turns the lock on; `gradwalk doctor` says so, and why
        warnings.filterwarnings("ignore", "The global interpreter lock")
        return importlib.import_module({"native": "gradwalk._native", "reference": "gradwalk.reference"}[name])


def available() -> list[Any]:
    """The modules of the engines that can be imported here; what all of them are to have is given to each."""
    modules = []
    for name in ENGINES:
        with suppress(ImportError):
            modules.append(load(name))
    return modules


def set_equality_is_identity(wanted: bool) -> None:
    """Whether ==, != and truth of Values are those of a class that defines neither, in this process.

    A script's own class Value has these unless it says otherwise, and keeps them when `gradwalk run` replaces it.
    """
    for module in available():
        module.set_equality_is_identity(wanted)


def _is_the_command() -> bool:
    """Whether this process is `gradwalk …` or `python -m gradwalk …`: a mistake of its user's is one line."""
    return os.path.splitext(os.path.basename(sys.argv[0]))[0] == "gradwalk" or sys.orig_argv[1:3] == ["-m", "gradwalk"]


try:
    NAME, REASON = _chosen()
except ImportError as error:
    if not _is_the_command():
        raise
    print(f"gradwalk: {error}", file=sys.stderr)
    sys.exit(2)
_module: Any = load(NAME)

if TYPE_CHECKING:
    from gradwalk._native import Value
else:
    Value = _module.Value

FUNCTIONS: dict[str, Any] = _module.FUNCTIONS
_counted: Any = available()[0].Value  # the native engine counts its nodes that have a _backward of their own


def topological_order(root: Value) -> list[Value]:
    """Every node reachable from `root`, each after all of its children: the order backward() walks in reverse."""
    return root._topological_order()


def taking_turns() -> AbstractContextManager[Any]:
    """Inside, the native engine takes THE_PASS.lock for whatever it does to gradients, as others always do.

    With the lock besides, gradients can be lent out and put back: other threads wait.
    """
    by_hand = _counted(0.0)
    by_hand._backward = taking_turns  # while there is a node like this
    return nullcontext(by_hand)


def gradients_of(root: Value, leaves: list[Any]) -> list[float]:
    """The gradient of the root by each of these leaves: a pass of backward() that changes no `grad` anywhere."""
    if hasattr(root, "_gradients"):  # the native engine's own; None for what only backward() can do
        gradients: list[float] | None = root._gradients(leaves)
        if gradients is not None:
            return gradients
    with taking_turns(), THE_PASS.lock:
        kept = [(node, node.grad) for node in (*topological_order(root), *leaves)]
        try:
            for node, _ in kept:
                node.grad = 0.0
            root.backward()
            return [float(leaf.grad) for leaf in leaves]
        finally:
            for node, grad in kept:
                node.grad = grad
