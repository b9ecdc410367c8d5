"""`gradwalk run notebook.ipynb`: the code cells in order, in one interpreter, without Jupyter.

What a cell ends with is printed, or saved beside the working directory's files if it is a picture; a line that is not
Python (`%matplotlib inline`, `!pip install ...`) is left out, and said.
"""

from __future__ import annotations

import ast
import json
import linecache
import os
import re
import sys
import traceback
from typing import Any, NoReturn

from gradwalk.files import read_file, write_file
from gradwalk.run.modules import offering, say

LARGEST_FILE = 2**30  # bytes, with all pictures in it


class Notebook:
    def __init__(self, path: str, variables: dict[str, Any], keep_class: bool) -> None:
        self.path, self.variables, self.keep_class = path, variables, keep_class
        self.name = os.path.splitext(os.path.basename(path))[0]
        self.saved = 0
        try:
            cells = json.loads(read_file(path, LARGEST_FILE, "a notebook"))["cells"]
            self.cells = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
            if b"\0" in "".join(self.cells).encode():  # an error for half a character
                raise ValueError("a cell with a null character")
        except OSError as error:
            stop(f"{path}: {error.strerror}")
        except (ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
            stop(f"{path}: expected a notebook, got {type(error).__name__}: {error}")

    def run(self) -> None:
        os.environ.setdefault("MPLBACKEND", "Agg")  # nobody is there to close a window
        sys.excepthook = traceback.print_exception  # the interpreter's own does not know the cells' lines
        self.variables.update(__name__="__main__", display=self.display, get_ipython=lambda: None)
        for number, cell in enumerate(self.cells, 1):
            self.run_cell(f"{self.path}[{number}]", self.python_only(cell))
            self.save_figures()

    def python_only(self, cell: str) -> str:
        """The cell without what only Jupyter understands; every line stays where it is."""
        if cell.lstrip().startswith("%%"):
            first, _, rest = cell.lstrip().partition("\n")
            if first.split()[0] not in ("%%time", "%%timeit", "%%capture"):
                say(f"{self.name}: left out a cell with {first}")
                return ""
            cell = f"\n{rest}"
        lines = cell.split("\n")
        for i, line in enumerate(lines):
            if re.match(r"\s*([%!]|\w+\?{1,2}$|\?{1,2}\w)", line) and not continues(lines[:i]):
                say(f"{self.name}: left out {line.strip()}")
                lines[i] = re.match(r"\s*", line)[0] + "pass"  # type: ignore[index]
        return "\n".join(lines)

    def run_cell(self, name: str, source: str) -> None:
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        tree = ast.parse(source, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        if not self.keep_class:
            tree = offering(tree)
        exec(compile(tree, name, "exec", dont_inherit=True), self.variables)
        if last is not None:
            code = compile(ast.Expression(last.value), name, "eval")  # type: ignore[attr-defined]
            shown = eval(code, self.variables)
            if shown is not None and not source.rstrip().endswith(";"):
                self.variables["_"] = shown
                self.display(shown)

    # ---------------------------------------------------------------- what is shown

    def display(self, *shown: Any, **_: Any) -> None:
        for one in shown:
            if not self.save_picture(one):
                print(repr(one))

    def save_picture(self, shown: Any) -> bool:
        for method, ending in (("_repr_svg_", "svg"), ("_repr_png_", "png"), ("_repr_image_svg_xml", "svg")):
            try:
                content = getattr(shown, method)()
            except Exception:  # it has none, or what draws it is not installed
                continue
            if content:
                self.save(ending, content)
                return True
        return False

    def save(self, ending: str, content: str | bytes) -> None:
        self.saved += 1
        path = f"{self.name}-{self.saved}.{ending}"
        try:
            write_file(path, content.encode() if isinstance(content, str) else content)
        except OSError as error:  # what the cells compute does not need it
            say(f"{path}: {error.strerror}; the picture is not saved")
        else:
            say(f"saved {path}")

    def save_figures(self) -> None:
        pyplot: Any = sys.modules.get("matplotlib.pyplot")
        for number in pyplot.get_fignums() if pyplot else ():
            import io

            content = io.BytesIO()
            pyplot.figure(number).savefig(content, format="png")
            pyplot.close(number)
            self.save("png", content.getvalue())


def stop(line: str) -> NoReturn:
    print(f"gradwalk: {' '.join(line.split())}", file=sys.stderr)
    sys.exit(2)


def continues(lines: list[str]) -> bool:
    """Whether a line after these is the inside of a bracket or a string, and no command."""
    try:
        ast.parse("\n".join(lines))
    except SyntaxError as error:
        return "was never closed" in str(error) or "unterminated triple" in str(error)
    return False
