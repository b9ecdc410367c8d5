"""The reference, from the docstrings as they stand in the sources: nothing is imported, nothing has to be installed."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "gradwalk"

# the names as users import them
SECTIONS = {
    "Looking at a Value": ("gradwalk.walk.Walk", "gradwalk.graph.Graph", "gradwalk.graph.GraphView", "gradwalk.scope"),
    "Derivatives of functions": (
        "gradwalk.grad", "gradwalk.value_and_grad", "gradwalk.jacobian", "gradwalk.jacfwd", "gradwalk.jacrev",
        "gradwalk.hessian", "gradwalk.hvp", "gradwalk.jvp", "gradwalk.vjp", "gradwalk.vmap", "gradwalk.sparse_jacobian",
        "gradwalk.sparse_hessian", "gradwalk.implicit_root", "gradwalk.fixed_point",
    ),
    "Control": (
        "gradwalk.no_grad", "gradwalk.ieee", "gradwalk.stop_gradient", "gradwalk.custom_op", "gradwalk.checkpoint",
    ),
    "Is it right": (
        "gradwalk.gradcheck", "gradwalk.assert_gradients", "gradwalk.detect_nonfinite", "gradwalk.gradient_report",
    ),
    "Compiled functions": ("gradwalk.compile",),
    "Models": (
        "gradwalk.nn.Module", "gradwalk.nn.Neuron", "gradwalk.nn.Layer", "gradwalk.nn.MLP", "gradwalk.nn.Linear",
        "gradwalk.nn.Embedding", "gradwalk.nn.RMSNorm", "gradwalk.nn.LayerNorm", "gradwalk.nn.CausalSelfAttention",
        "gradwalk.nn.Block", "gradwalk.nn.GPT",
    ),
    "Optimisers": (
        "gradwalk.optim.SGD", "gradwalk.optim.Adam", "gradwalk.optim.AdamW", "gradwalk.optim.clip_gradients",
        "gradwalk.optim.constant", "gradwalk.optim.linear", "gradwalk.optim.cosine",
    ),
    "Pictures": (
        "gradwalk.play", "gradwalk.show.dot.draw", "gradwalk.show.svg.picture", "gradwalk.show.svg.moving_picture",
    ),
}  # fmt: skip


class UndocumentedError(LookupError):
    """A name of the list above that is not in its module, or has no docstring."""


def markdown() -> str:
    """The whole page."""
    parts = [
        "# Reference",
        "From the docstrings; their examples are run by the tests. Every operation, as a method of a Value and as a "
        "function of the same name, is in [the table of operations](ops.md); what a Value itself promises is said in "
        "[coming from micrograd](from-micrograd.md) and in `help(gradwalk.Value)`.",
    ]
    for title, names in SECTIONS.items():
        parts.append(f"## {title}")
        parts += [text for name in names for text in described(name)]
    return "\n\n".join(parts) + "\n"


def module_of(name: str) -> Path:
    """The file in which a name is defined: its module's, or the one that its package imports it from."""
    package, _, short = name.rpartition(".")
    path = PACKAGE.parent / package.replace(".", "/")
    if not path.is_dir():
        return path.with_suffix(".py")
    for node in ast.walk(ast.parse((path / "__init__.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and any(alias.name == short for alias in node.names):
            return PACKAGE.parent / f"{(node.module or '').replace('.', '/')}.py"
    raise UndocumentedError(f"reference: {package} does not import {short}")


def described(name: str) -> Iterator[str]:
    """One function or class: a heading, how it is called, what it says of itself, and its methods."""
    short = name.rpartition(".")[2]
    tree = ast.parse(module_of(name).read_text(encoding="utf-8"))
    found = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == short and ast.get_docstring(node)
    ]
    if not found:
        raise UndocumentedError(f"reference: {name} has no docstring, or is not there")
    node = found[-1]  # overloads come first
    yield f"### {short}"
    yield f"```signature\n{name.removesuffix(short)}{called(node)}\n```"
    yield prose(ast.get_docstring(node) or "")
    if isinstance(node, ast.ClassDef):
        methods = [method for method in node.body if isinstance(method, ast.FunctionDef)]
        for method in methods:
            if not method.name.startswith("_") and ast.get_docstring(method):
                yield f"`.{called(method)}`: {prose(ast.get_docstring(method) or '')}"


def called(node: ast.FunctionDef | ast.ClassDef) -> str:
    """The name with its parameters; their types are in the stubs and in an editor."""
    if isinstance(node, ast.ClassDef):
        makers = [part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"]
        if not makers:
            return f"{node.name}()"
        return f"{node.name}({parameters(makers[0].args)})"
    if any("property" in ast.unparse(decorator) for decorator in node.decorator_list):
        return node.name
    return f"{node.name}({parameters(node.args)})"


def parameters(arguments: ast.arguments) -> str:
    plain = ast.parse(f"def f({ast.unparse(arguments)}): pass").body[0]
    assert isinstance(plain, ast.FunctionDef)
    every = [*plain.args.posonlyargs, *plain.args.args, *plain.args.kwonlyargs, plain.args.vararg, plain.args.kwarg]
    for argument in every:
        if argument is not None:
            argument.annotation = None
    return re.sub(r"^(self|cls)(, )?", "", ast.unparse(plain.args))


def prose(docstring: str) -> str:
    """A docstring as Markdown: its examples as code, the rest as it is."""
    blocks = []
    for block in re.split(r"\n\s*\n", textwrap.dedent(docstring).strip()):
        if block.lstrip().startswith(">>>"):
            blocks.append(f"```pycon\n{block}\n```")
        else:
            blocks.append(re.sub(r"<(?=[^`]*(?:`[^`]*`[^`]*)*$)", "&lt;", block))
    return "\n\n".join(blocks)
