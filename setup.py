"""The C extension; all else is in pyproject.toml.

GRADWALK_SANITIZE=address or thread builds it with those sanitizers, GRADWALK_COVERAGE=1 so that gcov counts its lines.
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup

# -ffp-contract=off: a fused multiply-add would round once where the reference engine rounds twice
flags = ["/O2", "/std:c11", "/fp:precise"] if sys.platform == "win32" else [
    "-std=c11", "-O3", "-Wall", "-Wextra", "-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden",
]  # fmt: skip
if sys.platform == "linux":
    flags += ["-fno-plt", "-fno-semantic-interposition"]  # calls of the interpreter, and of our own, go straight
link_flags = []
options = {}
SANITIZERS = {
    "address": ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"],
    "thread": ["-fsanitize=thread", "-fno-omit-frame-pointer"],
}
more, kind = [], os.environ.get("GRADWALK_SANITIZE", "")
if kind:
    more = ["-g", "-O1", *SANITIZERS[kind]]
elif os.environ.get("GRADWALK_COVERAGE"):
    more, kind = ["-O1", "--coverage", "-fprofile-update=atomic"], "coverage"
if more:
    flags += more
    link_flags += more
    options["build"] = {"build_base": f"build/{kind}"}  # or what was built otherwise would be taken again

native = Extension(
    "gradwalk._native",
    sources=["src/gradwalk/native/one_unit.c"],  # it includes the others
    include_dirs=["src/gradwalk/native"],
    depends=sorted(str(path) for path in Path("src/gradwalk/native").rglob("*.[ch]")),
    extra_compile_args=flags,
    extra_link_args=link_flags,
    # without a C compiler the package installs all the same, on the reference engine, and says so
    optional=True,
)

setup(ext_modules=[native], options=options)
