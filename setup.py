"""The C extension, the page as one file, and the README as PyPI shows it; all else is in pyproject.toml.

GRADWALK_SANITIZE=address or thread builds it with those sanitizers, GRADWALK_COVERAGE=1 so that gcov counts its lines;
GRADWALK_PURE=1 leaves it out: a wheel for every platform, on the reference engine.
"""

import os
import re
import runpy
import sys
import tempfile
import zlib
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.errors import CompileError, ExecError

# -ffp-contract=off: a fused multiply-add would round once where the reference engine rounds twice
FLAGS = {
    "msvc": ["/O2", "/std:c11", "/fp:precise"],
    "unix": ["-std=c11", "-O3", "-g0", "-Wall", "-Wextra", "-ffp-contract=off", "-fno-math-errno",
             "-fvisibility=hidden"],
}  # fmt: skip
# for compilers that know them: no jump across 32 bytes, at which Intel's processors of 2015 to 2020 are slow since they
# were repaired (gcc and clang spell it their own way); calls go straight; no tables for exceptions, which C does not
# have; and less of what makes the library larger and nothing faster: gaps, copies of loops, and of functions that do
# not ask for it, vectors where there is no loop, arguments taken apart, an order of instructions that the processor
# finds by itself
MAYBE = ["-Wa,-mbranches-within-32B-boundaries", "-mbranches-within-32B-boundaries", "-fno-plt",
         "-fno-semantic-interposition", "-fno-asynchronous-unwind-tables", "-fno-align-functions",
         "-fno-align-jumps", "-fno-align-labels", "-fno-align-loops", "-fno-unswitch-loops", "-fno-peel-loops",
         "-fno-split-loops", "-fno-split-paths", "-fno-version-loops-for-strides", "-fno-tree-slp-vectorize",
         "-fno-ipa-sra", "-fno-schedule-insns2", "--param=max-inline-insns-auto=10",
         "--param=max-completely-peeled-insns=60"]  # fmt: skip
SANITIZERS = {
    "address": ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"],
    "thread": ["-fsanitize=thread", "-fno-omit-frame-pointer"],
}
more, kind = [], os.environ.get("GRADWALK_SANITIZE", "")
if kind:
    more = ["-g", "-O1", *SANITIZERS[kind]]
elif os.environ.get("GRADWALK_COVERAGE"):
    more, kind = ["-O1", "--coverage"], "coverage"


class Build(build_ext):
    """Chooses flags by the compiler; where it fails, what it said is kept beside the package, for `gradwalk doctor`."""

    def build_extension(self, ext):
        kept = Path(self.get_ext_fullpath(ext.name)).with_name("build_failure.txt")
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.unlink(missing_ok=True)
        ext.extra_compile_args = self.flags() + more
        ext.extra_link_args = more
        with tempfile.TemporaryFile() as said:
            try:
                printing_to(said, super().build_extension, ext)
            except Exception as error:
                kept.write_text(text_of(said) + f"{error}\n", encoding="utf-8")
                Path(self.get_ext_fullpath(ext.name)).unlink(missing_ok=True)  # built before, and of other sources
                raise  # the extension is optional: setuptools warns, and goes on
            finally:
                print(text_of(said), file=sys.stderr)

    def copy_extensions_to_source(self):
        """For an editable install: what was kept belongs beside the sources, too, or nobody finds it there."""
        super().copy_extensions_to_source()
        for ext in self.extensions:
            there, built = map(Path, self._get_inplace_equivalent(self.get_finalized_command("build_py"), ext))
            kept, beside = built.with_name("build_failure.txt"), there.with_name("build_failure.txt")
            beside.unlink(missing_ok=True)
            if kept.exists():
                kept.replace(beside)
                there.unlink(missing_ok=True)

    def flags(self):
        if self.compiler.compiler_type == "msvc":
            return FLAGS["msvc"]
        return FLAGS["unix"] + [flag for flag in MAYBE if self.takes("int x;", "-Werror", flag)]

    def takes(self, source, *flags):
        """Whether the compiler takes this source with these flags."""
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as said:
            file = Path(folder, "try.c")
            file.write_text(source)
            try:
                printing_to(said, self.compiler.compile, [str(file)], output_dir=folder, extra_postargs=[*flags])
            except (CompileError, ExecError):
                return False
        return True


def printing_to(file, function, *arguments, **named):
    """Call the function; what it and the processes that it starts print goes to the file."""
    kept = os.dup(1), os.dup(2)
    try:
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
        function(*arguments, **named)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for descriptor, before in enumerate(kept, 1):
            os.dup2(before, descriptor)
            os.close(before)


def text_of(file):
    file.seek(0)
    return file.read().decode(errors="replace")


BUNDLED = {"show/page": ["*"], "lessons": ["*.md", "figures.json"]}
FOR_TESTS = re.compile(r"^```python (?:right|wrong)\n.*?^```\n", re.DOTALL | re.MULTILINE)  # answers nobody is shown


class Modules(build_py):
    """Texts of a folder are installed as one file: people read them in the repository; together they are smaller."""

    def run(self):
        super().run()
        if self.editable_mode:
            return
        remarks = runpy.run_path("src/gradwalk/show/remarks.py")
        shorter = {".js": remarks["without_remarks"], ".css": remarks["tight"]}
        for folder, patterns in BUNDLED.items():
            parts = []
            for file in sorted(file for pattern in patterns for file in Path("src/gradwalk", folder).glob(pattern)):
                text = FOR_TESTS.sub("", file.read_text(encoding="utf-8"))
                parts.append(f"\f{file.name}\n{shorter.get(file.suffix, str)(text)}")
            # a zip file looks back 32 KB and no further: what packs alike is alike, and lies side by side
            parts.sort(key=lambda part: len(zlib.compress(part.encode())) / len(part), reverse=True)
            Path(self.build_lib, "gradwalk", f"{folder}.txt").write_text("".join(parts), encoding="utf-8", newline="\n")


native = Extension(
    "gradwalk._native",
    sources=["src/gradwalk/native/one_unit.c"],  # it includes the others
    include_dirs=["src/gradwalk/native"],
    depends=sorted(str(path) for path in Path("src/gradwalk/native").rglob("*.[ch]")),
    # without a C compiler the package installs all the same, on the reference engine, and says so
    optional=True,
)

# on PyPI a link into the repository has to say where that is; pyproject.toml is the one place that does
source = re.search('^Source = "(.*?)"', Path("pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)[1]
readme = re.sub(
    r"(!?)(\[[^]]*\]\()(?!https?:|#)",  # of a picture PyPI needs the file, not the page around it
    lambda link: f"{link[1]}{link[2]}{source}/{'raw' if link[1] else 'blob'}/main/",
    Path("README.md").read_text(encoding="utf-8").partition("## The map\n")[0],  # which is for those who have the files
)

setup(
    ext_modules=[] if os.environ.get("GRADWALK_PURE") else [native],
    cmdclass={"build_ext": Build, "build_py": Modules},
    long_description=readme,
    long_description_content_type="text/markdown",
    options={"build": {"build_base": f"build/{kind}"}} if more else {},  # or what was built otherwise would be taken
)
