"""Fetches what the site uses from npm: exact versions, compared with the hashes below, kept in build/npm.

`npm pack` asks the registry that is configured here; nothing is installed and no script of a package is run.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

KEPT = Path(__file__).resolve().parents[2] / "build" / "npm"
PACKAGES = {
    "pyodide@314.0.7": "0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A==",
    "axe-core@4.14.0": "9WTZxEjsZ7b13TH8JPmbV2z8CHbl80/2hm3XPEG4JgNdQLK81IBRXmSxHfMAOkSqQeRxT/0dwNDz2GOm3zzpcQ==",
}


def package(name: str) -> Path:
    """The folder with a package's files; it is fetched if it is not there."""
    [wanted] = [known for known in PACKAGES if known.startswith(f"{name}@")]
    folder = KEPT / wanted
    if not folder.is_dir():
        KEPT.mkdir(parents=True, exist_ok=True)
        archive = fetched(wanted)
        found = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if found != PACKAGES[wanted]:
            raise SystemExit(
                f"{wanted}: the hash is {found}, not the one in {Path(__file__).name}; nothing was unpacked"
            )
        partial = KEPT / f"{wanted}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        with tarfile.open(archive) as tar:
            for member in tar:  # plain files only, and only below package/
                parts = Path(member.name).parts
                if member.isfile() and parts[0] == "package" and ".." not in parts:
                    target = partial.joinpath(*parts[1:])
                    target.parent.mkdir(parents=True, exist_ok=True)
                    content = tar.extractfile(member)
                    target.write_bytes(content.read() if content else b"")
        archive.unlink()
        partial.rename(folder)
    return folder


def fetched(wanted: str) -> Path:
    if not shutil.which("npm"):
        raise SystemExit(f"make docs: npm fetches {wanted}, and it was not found; apt-get install npm")
    command = ["npm", "pack", "--silent", "--ignore-scripts", wanted]
    done = subprocess.run(command, cwd=KEPT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"make docs: npm could not fetch {wanted}:\n{done.stderr}")
    return KEPT / done.stdout.strip().splitlines()[-1]


if __name__ == "__main__":
    for name in sys.argv[1:] or [known.partition("@")[0] for known in PACKAGES]:
        print(package(name))
