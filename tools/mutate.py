"""`make mutate`: does a test notice when one line of src is wrong? Random small changes, one at a time.

Each is made in a copy of the tree (the checkout is never touched), built if it is in C, and tried on the folders of
tests that are about its room; first on those files that speak of what the line does, because most changes are noticed
there at once. What no test notices is printed, with the score; some survivors change nothing that anybody could see, so
each is worth a look.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GENERATED = "made by tools/generate.py"

# the first pattern a path starts with says which tests are about it
ROOMS = {
    "native/value/stand_in": "cli",
    "native/value/formula": "cli",
    "native/value/flatten": "compiler engine",
    "native/value/structure": "engine functional compiler",
    "native/value/optim": "optim engine nn compiler training",
    "native/value/backward": "engine control cli compiler",
    "native/value/": "engine control graph walk nn optim",
    "native": "compiler proof functional engine/test_hostile_calls.py engine/test_no_memory.py",
    "compiler": "compiler proof functional",
    "show/page": "show table",
    "show": "show cli walk graph lessons training",
    "training": "training test_without_numpy.py",
    "nn": "nn training",
    "optim": "optim compiler training",
    "run": "cli",
    "lessons": "lessons cli",
    "workers": "compiler training",
    "cli": "cli show training",
    "__main__": "cli",
    "engine": "engine cli",
    "bundled": "training lessons show",
    "files": "training cli show lessons",
    "doctor": "cli",
    "blame": "control",
    "custom": "control compiler functional test_habits.py",
    "control": "control engine compiler",
    "functional": "functional compiler proof test_habits.py",
    "structure": "functional compiler test_without_numpy.py",
    "gradient_check": "functional control",
    "math": "functional",
    "numpy": "functional engine",
    "scipy": "functional",
    "higher_order": "engine functional",
    "copies": "engine functional nn",
    "expression": "show",
    "graph": "graph show",
    "walk": "walk show",
    "finite_differences": "walk show",
    "": "table engine walk graph functional control compiler test_habits.py test_without_numpy.py",
}

ELSEWHERE = (
    "compiler/to_jax.py",
    "compiler/jax_models.py",
)  # their tests need jax, which is in make scale's environment
FIRST = 4  # files of tests that are tried by themselves, without the time it takes to start other processes

# what stands there, and what could stand there by mistake
_SWAPS = [
    (r"<=", ["<", ">="]), (r">=", [">", "<="]), (r"(?<!!)==", ["!="]), (r"!=", ["=="]),  # !!= is no JavaScript
    (r"(?<=\s)<(?=\s)", ["<=", ">"]), (r"(?<=\s)>(?=\s)", [">=", "<"]),
    (r"(?<=\s)\+(?=\s)", ["-"]), (r"(?<=\s)-(?=\s)", ["+"]), (r"(?<=\s)\*(?=\s)", ["/"]), (r"(?<=\s)/(?=\s)", ["*"]),
    (r"\+=", ["=", "-="]), (r"-=", ["+="]), (r"\+\+", ["--"]),
    (r"&&", ["||"]), (r"\|\|", ["&&"]), (r"\band\b", ["or"]), (r"\bor\b", ["and"]), (r"\bnot (?!in\b)", [""]),
    (r"(?<!strict=)\bTrue\b", ["False"]), (r"\bFalse\b", ["True"]), (r"\btrue\b", ["false"]), (r"\bfalse\b", ["true"]),
    (r"\bis not\b", ["is"]), (r"\bmin\(", ["max("]), (r"\bmax\(", ["min("]), (r"\ball\(", ["any("]),
    (r"\bany\(", ["all("]), (r"\bcontinue\b", ["break"]), (r"\bbreak\b", ["continue"]),
    (r"(?<![\w.])0(?![\w.])", ["1"]), (r"(?<!return )(?<![\w.-])1(?![\w.])", ["0", "2"]),
    (r"(?<=return )1(?![\w.])", ["0"]), (r"(?<![\w.])2(?![\w.])", ["3"]),
    (r"(?<![\w.])0\.0(?![\w.])", ["1.0"]), (r"(?<![\w.])1\.0(?![\w.])", ["2.0"]),
    (r"(?<![\w.])0\.5(?![\w.])", ["0.25"]),
]  # fmt: skip
# a row's samples are where tests try it, and nobody else reads them
_NO_CODE = re.compile(r"\s*((from|import|export|assert|def|class|static_assert|@)\b|samples=)")
# what only type checkers read, so that they are who notices: coverage leaves the first two out, too
_FOR_TYPE_CHECKERS = r"@overload\n(?:.*\n)*?.*: \.\.\.(?=\n)|if TYPE_CHECKING:\n(?:(?: .*)?\n)*"
_TYPE = re.compile(
    r"[A-Z]\w*[a-z]\w* = (npt\.|(Any|TypeVar)\b|(Callable|Sequence|tuple|dict|list|Compiled)\[|[\w.]+ \| )"
)
_CALL = re.compile(r"^\s*[\w.>\[\]*()-]+(\(.*\)| [-+*]?= .*);?$")  # a line that could be left out


@dataclass(frozen=True)
class Mutation:
    """One line of one file, changed."""

    path: str  # from src/gradwalk on
    line: int
    before: str
    after: str

    @property
    def folders(self) -> list[str]:
        room = next(room for room in ROOMS if self.path.startswith(room))
        examples = ["engine/test_documented.py"] if self.path.endswith(".py") else []  # those in its own docstrings
        return list(dict.fromkeys(f"tests/{folder}" for folder in [*ROOMS[room].split(), *examples]))

    def words(self, lines: list[str]) -> set[str]:
        """What a test of the line may speak of: its file, its function, and the names in it and around it."""
        above = range(self.line - 1, -1, -1)
        names = (re.match(r"\s*(?:async )?def (\w+)|\w[\w *]*?(\w+)\(|export function (\w+)", lines[i]) for i in above)
        function = next((next(filter(None, found.groups())) for found in names if found), "")
        near = " ".join([Path(self.path).stem, function, *lines[max(self.line - 3, 0) : self.line + 2]])
        return {
            word for name in re.findall(r"[A-Za-z_]{3,}", near) for word in (name, *name.split("_")) if len(word) > 2
        }

    def __str__(self) -> str:
        return f"src/gradwalk/{self.path}:{self.line}\n    - {self.before.strip()}\n    + {self.after.strip()}"


# ---------------------------------------------------------------- what could be changed


def lines_of_code(path: Path) -> Iterator[tuple[int, str]]:
    """The number and the text of each line that is code: comments and texts are blanked out, and keep their width."""
    text = path.read_text()
    if path.suffix == ".py":
        texts = r'[rbfRBF]*"""(?:\\(?s:.)|(?s:.))*?"""|[rbfRBF]*"(?:\\(?s:.)|[^"\\\n])*"|#[^\n]*'
        blanked = re.compile(f"{texts}|{_FOR_TYPE_CHECKERS}")
    else:
        blanked = re.compile(r"(?s)/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|`(?:\\.|[^`\\])*`|^#[^\n]*", re.M)
    code = blanked.sub(lambda found: re.sub(r"[^\n]", "\0", found[0]), text)
    for number, (line, kept) in enumerate(zip(text.split("\n"), code.split("\n"), strict=True), 1):
        is_sentinel = kept.strip().startswith("{NULL")
        if kept.strip("\0 ") and not (is_sentinel or _NO_CODE.match(kept) or _TYPE.match(kept)):
            yield number, line if "\0" not in kept else kept


def lines_that_tell_failure(text: str) -> set[int]:
    """Those of the C functions that return -1 where they fail: whether they return 0 or 1 else, nobody asks.

    >>> sorted(lines_that_tell_failure("int f()\\n{\\nreturn 0;\\n}\\nint g()\\n{\\nreturn -1;\\n}\\n"))
    [5, 6, 7, 8]
    """
    first, found = 1, set[int]()
    for function in text.split("\n}\n"):
        after = first + function.count("\n") + 2
        found |= set(range(first, after)) if re.search(r"return (.*\? )?-1", function) else set()
        first = after
    return found


def mutations_of(path: Path, base: Path) -> Iterator[Mutation]:
    text = path.read_text()
    lines = text.split("\n")
    failing = lines_that_tell_failure(text)
    for number, code in lines_of_code(path):
        line = lines[number - 1]
        for pattern, others in _SWAPS:
            for found in re.finditer(pattern, code):
                result = number in failing and code[: found.start()].endswith(("return ", "-1 : "))
                for other in ["-1"] if result and found[0] == "0" else others:
                    changed = line[: found.start()] + other + line[found.end() :]
                    yield Mutation(str(path.relative_to(base)), number, line, changed)
        if _CALL.match(code) and code.count("(") == code.count(")"):
            left = re.match(r"\s*", line)[0] + ("pass" if path.suffix == ".py" else ";")  # type: ignore[index]
            yield Mutation(str(path.relative_to(base)), number, line, left)


def chosen(base: Path, count: int, seed: int, only: str) -> list[Mutation]:
    """At random: every file by its length, then a line, then a change."""
    rng = random.Random(seed)
    files = [path for kind in ("py", "c", "h", "js") for path in sorted(base.rglob(f"*.{kind}"))]
    files = [path for path in files if GENERATED not in path.read_text()[:400] and only in str(path.relative_to(base))]
    files = [path for path in files if not str(path).endswith(ELSEWHERE)]
    possible = {path: list(mutations_of(path, base)) for path in files}
    files = [path for path in files if possible[path]]
    lines = [len({mutation.line for mutation in possible[path]}) for path in files]
    made: dict[tuple[str, int], Mutation] = {}
    while len(made) < min(count, sum(lines)):
        (path,) = rng.choices(files, lines)
        line = rng.choice(sorted({mutation.line for mutation in possible[path]}))
        mutation = rng.choice([each for each in possible[path] if each.line == line])
        made.setdefault((mutation.path, mutation.line), mutation)
    return list(made.values())


# ---------------------------------------------------------------- trying one


class Copy:
    """A copy of the tree with its own build."""

    def __init__(self, where: Path) -> None:
        self.where, self.base = where, where / "src" / "gradwalk"
        tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
        for name in filter(None, tracked.split("\0")):
            if (ROOT / name).exists():
                (where / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, where / name)
        self.environment = {**os.environ, "PYTHONPATH": str(where / "src"), "GRADWALK_ENGINE": "native"}
        if not self.build():
            raise SystemExit("mutate: the tree as it is cannot be built")
        self.built = self.library().read_bytes()

    def library(self) -> Path:
        return next(self.base.glob("_native*.so"), self.base / "_native.so")

    def build(self) -> bool:
        self.library().unlink(missing_ok=True)
        command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace", "--force"]
        subprocess.run(command, cwd=self.where, env=self.environment, capture_output=True)
        return self.library().exists()

    def tests_of(self, mutation: Mutation, lines: list[str]) -> list[str]:
        """The files of tests in its folders, those first that share the rarest words with it."""
        folders = [self.where / folder for folder in mutation.folders]
        files = [path for it in folders for path in ([it] if it.is_file() else sorted(it.glob("test_*.py")))]
        words = mutation.words(lines)
        spoken = {path: words & set(re.findall(r"[A-Za-z]{3,}|[A-Za-z_]{3,}", path.read_text())) for path in files}
        rarity = {word: 1 / sum(word in found for found in spoken.values()) for word in set().union(*spoken.values())}
        files.sort(key=lambda path: -sum(rarity[word] for word in spoken[path]))
        return [str(path.relative_to(self.where)) for path in files]

    def failures(self, tests: list[str], limit: float, jobs: int) -> list[str]:
        """The tests, or files of tests, that fail first; `tests` themselves where nothing more is known."""
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-rfE",
            "-n",
            str(jobs),
            "-p",
            "no:cacheprovider",
            *tests,
        ]
        try:
            run = subprocess.run(
                command, cwd=self.where, env=self.environment, capture_output=True, timeout=limit, text=True
            )
        except subprocess.TimeoutExpired:
            return tests
        if run.returncode == 0:
            return []
        named = re.findall(r"^(?:FAILED|ERROR) (tests/\S+?\.py(?:::[^\n]*?)?)(?: - |$)", run.stdout, re.M)
        return named or tests

    def is_caught(self, mutation: Mutation, limit: float, jobs: int) -> bool | str:
        """Or why it cannot be told."""
        path = self.base / mutation.path
        text = path.read_text()
        lines = text.split("\n")
        tests = self.tests_of(mutation, lines)
        lines[mutation.line - 1] = mutation.after
        path.write_text("\n".join(lines))
        in_c = path.suffix in (".c", ".h")
        library = self.library()
        try:
            if in_c and not self.build():
                return True
            if in_c and library.read_bytes() == self.built:  # of another platform, say: there is nothing to notice
                return "left out, the library is the same to the byte"
            for some, seconds, processes in (tests[:FIRST], limit / 4, 0), (tests[FIRST:], limit, jobs):
                if failed := self.failures(some, seconds, processes):
                    break
        finally:
            path.write_text(text)
            if in_c:
                library.write_bytes(self.built)
        if not failed:
            return False
        if again := self.failures(failed, seconds, processes):  # as long: what is slow by itself has noticed nothing
            print("fails without it, too:", *again)
        return "cannot tell, its tests fail without it" if again else True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, nargs="?", default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", default="", help="part of the path of the files to change")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for the tests of one change")
    parser.add_argument("--jobs", type=int, default=2, help="processes that run the tests")
    parser.add_argument("--list", action="store_true", help="show the changes, and try none")
    options = parser.parse_args()
    mutations = chosen(ROOT / "src" / "gradwalk", options.count, options.seed, options.only)
    if options.list:
        print(*mutations, sep="\n")
        return
    survivors, caught = [], 0
    with tempfile.TemporaryDirectory(prefix="mutate-") as where:
        copy = Copy(Path(where))
        print(f"{len(mutations)} changes, seed {options.seed}", flush=True)
        for mutation in mutations:
            verdict = copy.is_caught(mutation, options.limit, options.jobs)
            caught += verdict is True
            survivors += [mutation] if verdict is False else []
            said = verdict if isinstance(verdict, str) else "caught" if verdict else "SURVIVED"
            print(f"{said}: {mutation}", flush=True)
    tried = caught + len(survivors)
    print(f"{caught} of {tried} caught ({caught / max(tried, 1):.0%})", *survivors, sep="\n")


if __name__ == "__main__":
    main()
