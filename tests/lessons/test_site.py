"""The site's pages as `make docs` builds them, without Python in them: links, formulas, anchors, the search's list."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from gradwalk import printing, row_formula
from gradwalk.cli import main
from gradwalk.lessons import source

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "site"))

import builder  # noqa: E402
import mathml  # noqa: E402
import packages  # noqa: E402
import reference  # noqa: E402
import render  # noqa: E402


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = builder.Site(tmp_path_factory.mktemp("site"))
    made.write_pages()
    return made


def test_every_document_is_a_page(site: Any) -> None:
    """No Markdown file of docs/ is left out of the navigation."""
    assert {page.path for page in site.pages} >= set((ROOT / "docs").glob("*.md"))


WIDEST = 83  # letters in a line of code that fit beside the navigation


def test_code_fits(site: Any) -> None:
    """Nobody has to move code sideways on a desk; what it prints may be wider."""
    for page in site.pages:
        text = page.path.read_text(encoding="utf-8") if page.path.is_file() else ""  # the reference has no file
        for block in re.findall(
            r"^```(?:py|python|sh)\b(?! check| wrong)[^\n]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE
        ):
            assert [line for line in block.splitlines() if len(line) > WIDEST] == [], page.path


def test_the_lessons_are_listed() -> None:
    """docs/lessons.md leads to each, in their order."""
    listed = re.findall(r"lessons/(\d\d-[\w-]+)\.md", (ROOT / "docs" / "lessons.md").read_text(encoding="utf-8"))
    assert listed == [lesson.name for lesson in source.lessons()]


@pytest.mark.parametrize("name", ["coming-from", "from-micrograd"])
def test_every_difference_has_its_reason(name: str) -> None:
    """No cell of the tables that compare is empty but the first."""
    rows = re.findall(
        r"^\|.*\| why \|\n(?:\|.*\|\n)+", (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(rows) == {"coming-from": 4, "from-micrograd": 1}[name]
    cells = [line.strip("|\n").split("|") for table in rows for line in table.splitlines()[2:]]
    assert [line for line in cells if len(line) != 4 or not all(map(str.strip, line))] == []


def commands_in(text: str) -> list[str]:
    """Lines that begin with `gradwalk`, of blocks for a shell, without what is said beside them."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    blocks += re.findall(r"^    (.*\n)", text, re.MULTILINE)
    return re.findall(r"^gradwalk (.*?)(?: +#.*)?$", "".join(blocks), re.MULTILINE)


PAGES = (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
COMMANDS = sorted({command for path in PAGES for command in commands_in(path.read_text(encoding="utf-8"))})


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_that_are_shown_are_understood(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is one, and so are its options; files that it names may be missing here."""
    monkeypatch.chdir(tmp_path)
    name, *arguments = shlex.split(command)
    with contextlib.suppress(click.BadParameter):
        main.commands[name].make_context(name, arguments)


def test_there_are_commands() -> None:
    """The test above is about something."""
    assert len({command.split()[0] for command in COMMANDS}) > 5


def test_columns_of_words_are_not_columns_of_numbers(tmp_path: Path) -> None:
    """What Markdown aligns to the right is, and what it aligns to the left is not."""
    made = builder.Site(tmp_path)
    made.pages[0].parts = [source.Text("# Title\n\n| a | b |\n|:--|--:|\n| word | 1 |\n")]
    made.write_page(0)
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "<td>word</td>" in text
    assert '<td class="number">1</td>' in text


def test_every_page_is_written_and_found(site: Any) -> None:
    """Each has a file with a title, and each of its headings is in the search's list."""
    for page in site.pages:
        text = (site.folder / page.address / "index.html").read_text(encoding="utf-8")
        assert "<h1" in text, page.path
        assert re.findall(r"<[a-z][^>]* (?:style|onclick)=", text) == [], page.path  # the page's policy forbids them
        assert "{{" not in re.sub(r"<pre.*?</pre>|<script.*?</script>|<code.*?</code>", "", text, flags=re.DOTALL)
        assert any(entry[0].partition("#")[0] == page.address for entry in site.index)
    [rule] = [text for _, page, heading, text in site.index if page == heading == "The chain rule"]
    assert rule.startswith("A computation is a chain of small steps, and slopes along a chain multiply. That is")


@pytest.mark.parametrize("target", ["nowhere.md", "ops.md#no-such-operation", "#nothing", "../setup.py"])
def test_a_link_that_leads_nowhere_ends_the_build(target: str, tmp_path: Path) -> None:
    """To a page, to a heading of another or of the same page, and to a file that is not part of the site."""
    made = builder.Site(tmp_path)
    page = made.pages[0]
    page.parts = [source.Text(f"# Title\n\n[here]({target})\n")]
    with pytest.raises(builder.BrokenLinkError):
        made.write_pages()


@pytest.mark.parametrize("name", [name for names in reference.SECTIONS.values() for name in names])
def test_examples_of_the_reference_run_where_they_are_copied_to(name: str) -> None:
    """Each knows the name it is about, and imports the rest: no other name of the module it was written in."""
    module, _, short = name.rpartition(".")
    about = getattr(importlib.import_module(module), short)
    for block in re.findall(r"^```pycon\n(.*?)^```", "\n\n".join(reference.described(name)), re.DOTALL | re.MULTILINE):
        called = f"{about.__module__}.{short}"
        example = doctest.DocTestParser().get_doctest(block, {short: about}, called, None, None)
        told: list[str] = []
        doctest.DocTestRunner().run(example, out=told.append)
        assert "".join(told) == ""


def test_the_links_of_the_readme(site: Any) -> None:
    """Each leads to a file, and to a heading of it where it says so."""
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", (ROOT / "README.md").read_text(encoding="utf-8")):
        assert (ROOT / target).is_file(), target
    for target, anchor in re.findall(r"\]\(([^)#]+)#([^)]*)\)", (ROOT / "README.md").read_text(encoding="utf-8")):
        assert anchor in site.anchors[site.at[(ROOT / target).resolve()].address]


def test_formulas() -> None:
    """What the table prints becomes MathML; what is not known is an error."""
    assert (
        mathml.mathml(r"\frac{1}{x}")
        == "<math><mrow><mfrac><mrow><mn>1</mn></mrow><mrow><mi>x</mi></mrow></mfrac></mrow></math>"
    )
    with pytest.raises(mathml.FormulaError):
        mathml.mathml(r"\unheard")
    assert mathml.mathml(r"y = -1").count('<mo form="prefix">−</mo>') == 1  # a sign, and no difference
    assert "form=" not in mathml.mathml(r"x - 1")
    bars = mathml.mathml(r"\left|x\right| = 0")
    assert bars.index('<mo form="prefix">|') < bars.index("<mi>x</mi>") < bars.index('<mo form="postfix">|')
    brackets = mathml.mathml(r"[i = j] - \frac{1}{n}")  # no higher than what is in them, and then a difference
    assert '<mi>j</mi></mrow><mo form="postfix">]</mo></mrow><mo>−</mo>' in brackets
    assert "<mtext>&nbsp;is&nbsp;</mtext>" in mathml.mathml(r"a\text{ is }b")


def test_every_sign_of_a_row_can_be_drawn() -> None:
    """Also those that no row has yet."""
    tables = (printing._LATEX_OPERATORS, printing._LATEX_FUNCTIONS, printing._LATEX_AROUND, row_formula._OVER)
    signs = [sign for table in tables for sign in table.values()]
    signs += [sign for _, sign in printing.NAMED_NUMBERS.values()] + [rf"\{name}" for name in printing._LATEX_KNOWN]
    for sign in signs:
        mathml.mathml(sign.replace("%s", "x"))


def test_code_in_a_sentence_stays_whole() -> None:
    """What is short is on one line, and an option is not parted from its dashes."""
    assert render.in_sentence("a - b") == '<code class="whole">a - b</code>'
    assert '<span class="whole">--dask</span> ADDRESS' in render.in_sentence("gradwalk train --dask ADDRESS")
    assert render.in_sentence("f(x) < g(x) - h(x)") == "<code>f(x) &lt; g(x) - h(x)</code>"


def test_lines_end_where_they_may(site: Any) -> None:
    """A bar stays with its number and a number with its unit; no line has nothing but a full stop."""
    text = (site.folder / "benchmarks" / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"[≤≥] |\d (?:ms|µs|×)", re.sub(r"<(pre|code).*?</\1>", "", text, flags=re.DOTALL)) == []
    operations = (site.folder / "ops" / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"</math></span>\s*\.", operations) == []


def test_a_package_with_another_hash_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What npm gives is compared before it is opened."""
    archive = tmp_path / "pyodide.tgz"
    archive.write_bytes(b"something else")
    monkeypatch.setattr(packages, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(packages, "fetched", lambda wanted: archive)
    with pytest.raises(SystemExit, match="the hash is"):
        packages.package("pyodide")
    assert list((tmp_path / "kept").iterdir()) == []
