"""What a release is made of: the metadata, a failed build that is explained, documents that agree with the package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gradwalk
from gradwalk import doctor, engine
from gradwalk.lessons import notebooks, source
from gradwalk.show import play

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("file", ["CHANGELOG.md", "CITATION.cff"])
def test_version_is_named(file: str) -> None:
    """The changelog and the citation are about this version."""
    assert gradwalk.__version__ in (ROOT / file).read_text(encoding="utf-8")


def test_links_of_the_documents_lead_somewhere() -> None:
    """What README and CONTRIBUTING link to in the repository is there; setup.py makes these links absolute for PyPI."""
    for file in ("README.md", "CONTRIBUTING.md"):
        links = re.findall(r"\]\((?!https?:|#)([^)#]*)", (ROOT / file).read_text(encoding="utf-8"))
        assert links
        assert [link for link in links if not (ROOT / link).exists()] == []


def test_links_on_pypi_are_absolute(tmp_path: Path) -> None:
    """A link leads to the repository's page of a file, and a picture is the file itself."""
    command = [sys.executable, "setup.py", "--quiet", "egg_info", "--egg-base", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    shown = (tmp_path / "gradwalk.egg-info/PKG-INFO").read_text(encoding="utf-8")
    links = re.findall(r"(!?)\[[^]]*\]\(([^)#][^)]*)\)", shown)
    assert {bool(picture) for picture, _ in links} == {True, False}
    for picture, link in links:
        assert re.match(
            rf"https://[^/]+/[^/]+/gradwalk/{'raw' if picture else 'blob'}/main/\w|https://(?!github)", link
        )


def built_with(compiler: Path, tmp_path: Path, *where: str) -> subprocess.CompletedProcess[str]:
    """A build of an extension with this compiler, in a small copy of the tree."""
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "src/gradwalk/_version.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "src/gradwalk/native").mkdir(exist_ok=True)
    (tmp_path / "src/gradwalk/native/one_unit.c").write_text("int x;\n")
    done = subprocess.run(
        [sys.executable, "setup.py", "build_ext", *where],
        cwd=tmp_path,
        env={**os.environ, "CC": str(compiler)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


WAYS = {"out": ["--build-lib", "out"], "src": ["--inplace"]}  # the second is an editable install's


@pytest.mark.skipif(os.name == "nt", reason="the compiler is a shell script")
@pytest.mark.parametrize("place", WAYS)
def test_failed_build_keeps_what_the_compiler_said(place: str, tmp_path: Path) -> None:
    """The package installs all the same, and the message lies beside it until a build succeeds."""
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho 'one_unit.c:7:1: error: conflicting types for call_once' >&2\nexit 1\n")
    compiler.chmod(0o755)
    done, kept = built_with(compiler, tmp_path, *WAYS[place]), tmp_path / place / "gradwalk/build_failure.txt"
    assert "conflicting types for call_once" in kept.read_text(encoding="utf-8")
    assert "conflicting types for call_once" in done.stderr
    built_with(Path("cc"), tmp_path, *WAYS[place])
    assert not kept.exists()
    assert len([*kept.parent.glob("_native*")]) == 1
    os.utime(tmp_path / "src/gradwalk/native/one_unit.c", (2e9, 2e9))  # changed since
    built_with(compiler, tmp_path, *WAYS[place])
    assert [*kept.parent.glob("_native*")] == []  # nor would a library of other sources be taken for this one


def test_missing_compiler_is_named(tmp_path: Path) -> None:
    """Where there is none, the message says so."""
    built_with(tmp_path / "no-such-compiler", tmp_path, *WAYS["out"])
    assert "no-such-compiler" in (tmp_path / "out/gradwalk/build_failure.txt").read_text(encoding="utf-8")


def test_installed_texts_are_the_repositorys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is installed as one file makes the same page, widget and notebooks, to the character."""
    command = [sys.executable, "setup.py", "--quiet", "build_py", "--build-lib", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    assert not (tmp_path / "gradwalk/show/page").exists()
    made = []
    for folder in (ROOT / "src", tmp_path):
        monkeypatch.setattr(play, "PAGE", folder / "gradwalk/show/page")
        monkeypatch.setattr(source, "FOLDER", folder / "gradwalk/lessons")
        for cached in (play.files, play.script, play.style, source.files):
            cached.cache_clear()
        written = [notebooks.notebook(lesson) for lesson in source.lessons()]
        made.append((play.page("relu(a*b + d)"), play.script("widget"), written))
    assert made[0] == made[1]


def test_failure_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the doctor in a few lines, and by the warning in one."""
    said = "gcc -O3 one_unit.c\none_unit.c: In function\none_unit.c:7:1: error: conflicting types for call_once\nmore\n"
    monkeypatch.setattr(engine, "build_failure", lambda: said)
    assert engine.why_not_built() == "one_unit.c:7:1: error: conflicting types for call_once"
    assert engine._what_to_do() == "see what the compiler said: gradwalk doctor"
    found = doctor.report()
    found["native"] = {"available": False, "file": None, "error": "No module", "build_failure": said}
    rows = {what: finding for what, finding, _ in doctor.lines(found)}
    assert rows["the compiler said"] == "one_unit.c:7:1: error: conflicting types for call_once"
