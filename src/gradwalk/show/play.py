"""The page: one HTML file with everything in it, written by `page(...)`, opened by `play(...)` and the command.

The modules in `page/` are plain ES modules; here they are put into one script, each in a function of its own, and
the program becomes data in the file. Nothing in the file reaches for the network, and its own policy forbids it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from gradwalk.bundled import texts
from gradwalk.expression import Expression, parsed, printable
from gradwalk.files import write_file
from gradwalk.show.program import program_of
from gradwalk.show.remarks import tight, without_remarks

PAGE = Path(__file__).resolve().parent / "page"

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([a-z_]+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?:async )?(?:function|class|const) ([A-Za-z_]\w*)", re.MULTILINE)


# ---------------------------------------------------------------- the modules as one script


@lru_cache(maxsize=1)
def files() -> dict[str, str]:
    """What the page is made of, by name."""
    return texts(PAGE, "*")


@lru_cache(maxsize=8)
def script(*entries: str) -> str:
    """These modules and all they import, as one module without imports."""
    written: list[str] = []
    done: set[str] = set()
    for entry in entries:
        _add(entry, written, done)
    return without_remarks("\n".join(written))


def _add(name: str, written: list[str], done: set[str]) -> None:
    if name in done:
        return
    done.add(name)
    text = files()[f"{name}.js"]
    imports = ""
    for names, source in _IMPORT.findall(text):
        _add(source, written, done)
        imports += f"const {{{names.replace(' as ', ': ')}}} = {_variable(source)};\n"
    body = _IMPORT.sub("", text)
    exported = ", ".join(_EXPORT.findall(body))
    default = "export default " in body
    body = body.replace("export default ", "return ") if default else re.sub(r"^export ", "", body, flags=re.MULTILINE)
    ending = "" if default else f"return {{ {exported} }};\n"
    written.append(f"const {_variable(name)} = (() => {{\n{imports}{body}{ending}}})();\n")


def _variable(name: str) -> str:
    return f"module_{name}"


@lru_cache(maxsize=1)
def style() -> str:
    """The page's style sheet."""
    return tight(files()["style.css"])


# ---------------------------------------------------------------- the file


def page(shown: Any = None, values: Mapping[str, float] | None = None, *, site: str = "") -> str:
    """The whole file as text: `shown` is an expression, a Value, or None for the first example.

    `site` is the way to the root of a site that has Python beside the page: then functions can be typed in, too.

    >>> "https:" in page("relu(a*b + d)")
    False
    """
    parts = {
        "style": style(),
        "script": script("main"),
        "start": embedded(start_of(shown, values) | ({"site": site} if site else {})),
    }
    parts["site_scripts"] = " 'self'; worker-src 'self'" if site else ""
    parts |= {f"{name}_hash": _hash(parts[name]) for name in ("style", "script")}
    return re.sub(r"\{(\w+)\}", lambda match: parts[match[1]], files()["page.html"])


def start_of(shown: Any, values: Mapping[str, float] | None = None) -> dict[str, Any]:
    """What the page begins with, as JSON can carry it."""
    if shown is None:
        return {}
    if isinstance(shown, str | Expression):
        text = shown if isinstance(shown, str) else shown.text
        parsed(text)
        return {"text": text, "values": {name: float(value) for name, value in (values or {}).items()}}
    return {"program": program_of(shown)}


def embedded(start: Mapping[str, Any]) -> str:
    """JSON that is safe inside a script element: no character of it can end the element or open a comment."""
    text = json.dumps(start, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def write(path: Path, shown: Any = None, values: Mapping[str, float] | None = None) -> Path:
    """Write the file and return where it is."""
    write_file(path, page(shown, values).encode())
    return path


# ---------------------------------------------------------------- showing it


def play(shown: Any = None, *, html: str | Path | None = None, **values: float) -> Any:
    """Show the walk of a Value, or of an expression with `values`, in a notebook or in the browser.

    In a notebook this returns a widget that is live with the kernel; elsewhere it writes a file, opens it and
    returns its path. With `html` the file is kept there and nothing is opened.
    """
    if html is not None:
        return write(Path(html), shown, values)
    if in_notebook():
        try:
            from gradwalk.show.widget import Player
        except ImportError as error:
            raise ImportError(f"play: a notebook needs anywidget ({error}); pip install 'gradwalk[notebook]'") from None
        return Player(shown, values)
    path = write(temporary_file(), shown, values)
    opened(path.as_uri())
    return path


def in_notebook() -> bool:
    """Whether this runs in a kernel that can show widgets."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and shell.has_trait("kernel")


def temporary_file() -> Path:
    """A new file for the browser; it stays until the system cleans up, because the browser may read it later."""
    with tempfile.NamedTemporaryFile(prefix="gradwalk-", suffix=".html", delete=False) as file:
        return Path(file.name)


def opened(address: str) -> bool:
    """Open the user's browser; False if there is none."""
    import webbrowser

    return webbrowser.open(address)


# ---------------------------------------------------------------- the command


def command(expression: str | None, assignments: Sequence[str], html: str | None, serve: bool) -> None:
    """The body of `gradwalk play`."""
    import click

    try:
        values = dict(map(number_assigned, assignments))
        text = page(expression, _of_inputs(expression, values))
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    if serve:
        from gradwalk.show.serve import serve as hand_out

        return hand_out(text)
    path = Path(html) if html else temporary_file()
    try:
        write_file(path, text.encode())
    except OSError as error:
        raise click.ClickException(f"play: cannot write {str(path)!r}: {error.strerror}") from None
    click.echo(path)
    if not html and not opened(path.resolve().as_uri()):
        click.echo("play: no browser was found here; open the file above, or use --serve on a remote machine", err=True)
    return None


def _of_inputs(expression: str | None, values: dict[str, float]) -> dict[str, float]:
    known = parsed(expression).inputs if expression else ()
    unknown = [name for name in values if name not in known]
    if unknown:
        named = f"its inputs are {', '.join(known[:8])}" if known else "give an expression first"
        raise ValueError(f"play: {unknown[0]} is no input of the expression; {named}")
    return values


def number_assigned(text: str) -> tuple[str, float]:
    """`a=2.5` as a name and a number.

    >>> number_assigned("a=2.5")
    ('a', 2.5)
    """
    name, _, number = text.partition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not name.strip().isidentifier() or not math.isfinite(value):
        raise ValueError(f"play: expected NAME=NUMBER, got {printable(text)!r}")
    return name.strip(), value
