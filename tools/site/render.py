"""A page's parts as HTML: Markdown, formulas, highlighted code, live cells and embedded walks."""

from __future__ import annotations

import base64
import html
import json
import re
from pathlib import Path
from urllib.parse import urlencode

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mathml import mathml
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from gradwalk.lessons import cells, source

_FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\w$])\$(?! )([^$\n]+?)(?<! )\$(?![\w$])(\.?)", re.DOTALL)
_QUANTITY = re.compile(
    r"(?<=[≤≥·]) (?=[\d∞])|(?<=\d) (?=·)|(?<=\d) (?=(?:[nµm]s|s|[kMG]B?|bytes|×)(?!\w))"
)  # spaces at which no line ends
QUICK = 10  # seconds: a cell that may take longer is not run by the build
_LONGEST_IN_TEXT = 60  # letters of LaTeX
_SHORT = 12  # letters of code in a sentence that stay on one line
_ASSETS = Path(__file__).resolve().parents[2] / "docs" / "assets"
_ELSEWHERE = 'Not live: it needs NumPy, which Python in the page lacks. It runs <a href="{up}#install">in your own</a>.'
_SIDEWAYS = 'tabindex="0" role="group" aria-label'  # what can be wider than the page has to be reached with keys


def slug(text: str) -> str:
    """A heading as an anchor."""
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"<[^>]+>", "", text).lower()).strip("-")


def walk_address(walk: source.Embedded) -> str:
    """Where the walk of an expression is shown, below the site's root: the one place that knows the scheme."""
    parts = {"e": walk.expression}
    if walk.values:
        parts["v"] = ",".join(f"{name}:{value:g}" for name, value in walk.values.items())
    parts |= {{"mode": "m"}.get(name, name): value for name, value in walk.settings.items()}
    return f"walk/#{urlencode(parts)}"


def titled(text: str) -> str:
    """A title as HTML: what stands in backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


class Renderer:
    """Renders the parts of one page; `link(target)` says where a link leads, `headings` collects what it saw."""

    def __init__(self, up: str, link) -> None:
        self.up, self.link = up, link
        self.headings: list[tuple[int, str, str]] = []
        self.words: list[tuple[str, str]] = []  # anchor and text below it, for the search
        self.cells: list[dict[str, object]] = []
        self.namespace: dict[str, object] = {}
        self.is_trained = False
        self.markdown = MarkdownIt("commonmark", {"html": True, "highlight": highlighted}).enable("table")
        self.markdown.add_render_rule("code_inline", lambda _, tokens, place, *rest: in_sentence(tokens[place].content))

    def rendered(self, parts: list[source.Part]) -> str:
        return "\n".join(self.part(part) for part in parts)

    def part(self, part: source.Part) -> str:
        if isinstance(part, source.Cell):
            return self.cell(part)
        if isinstance(part, source.Exercise):
            return self.exercise(part)
        if isinstance(part, source.Embedded):
            return self.walk(part)
        return self.text(part.markdown)

    # ---------------------------------------------------------------- text

    def text(self, markdown: str) -> str:
        formulas: list[str] = []

        def kept(found: re.Match[str]) -> str:
            # a long one needs a line of its own, which can be moved sideways on a phone
            display = bool(found[1]) or len(found[2]) > _LONGEST_IN_TEXT
            formula = mathml(found[1] or found[2], display)
            formulas.append(f'<span class="wide" {_SIDEWAYS}="Formula">{formula}</span>' if display else formula)
            end = "" if display else found[3]  # a line with nothing but a full stop
            return f"\x02{len(formulas) - 1}\x03{end}"

        pieces = re.split(r"(^```.*?^```$|`[^`\n]+`)", markdown, flags=re.DOTALL | re.MULTILINE)
        pieces[::2] = [_FORMULA.sub(kept, piece) for piece in pieces[::2]]
        tokens = self.markdown.parse("".join(pieces))
        self.prepared(tokens)
        text = self.markdown.renderer.render(tokens, self.markdown.options, {})
        text = text.replace("<table>", f'<div class="wide" {_SIDEWAYS}="Table"><table>')
        text = text.replace("</table>", "</table></div>").replace("<th></th>", "<td></td>")
        text = text.replace("<pre><code>", '<pre tabindex="0"><code>')
        text = re.sub(r'<img src="([^"]+)\.svg"[^>]*>', framed, text)
        return re.sub("\x02(\\d+)\x03", lambda found: formulas[int(found[1])], text)

    def prepared(self, tokens: list[Token]) -> None:
        """Anchors for headings, links to where the pages are, words for the search."""
        for place, token in enumerate(tokens):
            if token.type == "heading_open":
                said = "".join(child.content for child in tokens[place + 1].children or [])
                anchor = slug(said)
                while any(anchor == known for _, _, known in self.headings):
                    anchor += "-2"
                token.attrSet("id", anchor)
                self.headings.append((int(token.tag[1]), said, anchor))
                self.words.append((anchor, ""))
            elif token.type == "inline":
                for child in token.children or []:
                    if child.type == "link_open":
                        child.attrSet("href", self.link(str(child.attrGet("href"))))
                    if child.type == "text":
                        child.content = _QUANTITY.sub("\xa0", child.content)
                    if child.type == "image":
                        child.attrSet("src", self.link(str(child.attrGet("src"))))
                words = (" " if "break" in child.type else child.content for child in token.children or [])
                if tokens[place - 1].type != "heading_open":
                    self.heard("".join(words))
            elif token.type == "fence":
                self.heard(token.content)
            elif token.type in ("th_open", "td_open") and "right" in str(token.attrs.pop("style", "")):
                token.attrSet("class", "number")  # the page's policy allows no style in an element

    def heard(self, text: str) -> None:
        anchor, so_far = self.words[-1] if self.words else ("", "")
        self.words[-1:] = [(anchor, f"{so_far} {text}")]

    # ---------------------------------------------------------------- what is live

    def cell(self, cell: source.Cell) -> str:
        if not cell.is_live:
            shown = self.text(f"```python\n{cell.code}```\n```text\n{cell.output}```\n")
            return f'<div class="elsewhere">{shown}<p>{_ELSEWHERE.format(up=self.up or "./")}</p></div>'
        self.cells.append({"code": cell.code, "seconds": cell.seconds})
        self.heard(cell.code)
        recorded = self.recorded(cell)
        output = f'<div class="output recorded">{recorded}</div>' if cell.output else ""
        return self.section("cell", "Python", highlighted(cell.code, "python", ""), output)

    def recorded(self, cell: source.Cell) -> str:
        """What the cell shows: the recorded text, with tables and pictures as it makes them here."""
        text = printed(cell.output)
        self.is_trained |= cell.seconds > QUICK
        if self.is_trained:  # the build trains nothing, and what comes after it depends on that
            return text
        outcome = cells.run(cell.code, self.namespace)
        if (outcome.error, outcome.text) != ("", cell.output):
            raise ValueError(f"{outcome.error or outcome.text}: not what is recorded for\n{cell.code}")
        return "".join(map(drawn, outcome.shown)) if any(len(part) > 1 for part in outcome.shown) else text

    def exercise(self, exercise: source.Exercise) -> str:
        self.cells.append({"code": exercise.start, "seconds": 10, "checks": exercise.checks})
        answer = highlighted(exercise.answers[0], "python", "")
        task = f'<p class="task">{html.escape(asked(exercise.start))}</p>'
        solution = f'<details class="answer"><summary>One answer</summary>{answer}</details>'
        return self.section("cell exercise", "Exercise", task + highlighted(exercise.start, "python", ""), solution)

    def section(self, kind: str, title: str, code: str, below: str) -> str:
        number = len(self.cells)
        return f'<section class="{kind}" id="cell-{number}" aria-label="{title} cell {number}">{code}{below}</section>'

    def walk(self, walk: source.Embedded) -> str:
        address = html.escape(self.up + walk_address(walk))
        said = html.escape(walk.expression.splitlines()[-1])
        kind = "walk wrong" if "mode" in walk.settings else "walk"  # it says more, and needs more room on a phone
        return (
            f'<figure class="{kind}" data-said="The walk of {said}"><figcaption><a href="{address}">'
            f"Open the walk of <code>{said}</code> on a page of its own</a></figcaption></figure>"
        )

    def data(self) -> str:
        """The page's cells for its script, as JSON that nothing in it can end."""
        text = json.dumps(self.cells, separators=(",", ":"))
        return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def asked(start: str) -> str:
    """What an exercise asks for, as its code says, too, but there too wide for a phone: a docstring, or remarks."""
    remarks = [line.split("#")[1].strip() for line in start.splitlines() if line.lstrip().startswith("#")]
    docstring = re.search('"""(.+?)"""', start, re.DOTALL)
    return " ".join((docstring[1] if docstring else " ".join(remarks)).split())


def in_sentence(code: str) -> str:
    """Code within a text: what is short is not broken in two, nor is an option after its dashes."""
    said = html.escape(code)
    if len(code) <= _SHORT:
        return f'<code class="whole">{said}</code>'
    return "<code>" + re.sub(r"(?<!\S)-\S+", r'<span class="whole">\g<0></span>', said) + "</code>"


def framed(found: re.Match[str]) -> str:
    """A picture that can be moved sideways, or where there is one for phones, both."""
    image, name = found[0], found[1]
    if (_ASSETS / f"{Path(name).name}-tall.svg").is_file():
        image = f'<picture><source media="(max-width: 820px)" srcset="{name}-tall.svg">{image}</picture>'
    return f'<span class="picture" {_SIDEWAYS}="Picture">{image}</span>'


def drawn(part: dict[str, str]) -> str:
    """One thing that a cell showed."""
    if "image/svg+xml" in part:
        picture = base64.b64encode(part["image/svg+xml"].encode()).decode()
        image = f'<img alt="{html.escape(part["text/plain"].strip())}" src="data:image/svg+xml;base64,{picture}">'
        return f'<div class="picture" {_SIDEWAYS}="Picture">{image}</div>'
    if "text/html" in part:
        return f'<div class="wide" {_SIDEWAYS}="Table">{part["text/html"]}</div>'
    return printed(part["text/plain"])


def printed(text: str) -> str:
    """Text that a cell shows, as output.js does it: lines of columns are moved sideways on a phone, others broken."""
    columns = f' class="columns" {_SIDEWAYS}="Text"' if re.search(r"\S {2,}\S", text) else ""
    return f"<pre{columns}>{html.escape(text)}</pre>"


def highlighted(code: str, language: str, _: object) -> str:
    """Code with Pygments' classes."""
    try:
        lexer = get_lexer_by_name({"py": "python", "signature": "python"}.get(language, language or "text"))
    except ClassNotFound:
        lexer = get_lexer_by_name("text")
    body = highlight(code, lexer, HtmlFormatter(nowrap=True))
    return f'<pre class="code language-{html.escape(language or "text")}" tabindex="0"><code>{body}</code></pre>'
