# SPDX-License-Identifier: Apache-2.0
"""`python -m tilekit run script.py [arguments]`: run a tilus script with tilekit."""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path

from tilekit import aliases
from tilekit.diag import TilekitError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tilekit", description="Tools of tilekit.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run a script in which `import tilus` means tilekit")
    run.add_argument("script", type=Path)
    run.add_argument("arguments", nargs=argparse.REMAINDER, help="what the script finds in sys.argv[1:]")
    options = parser.parse_args()
    if not options.script.is_file():
        parser.error(f"there is no file {options.script}")
    aliases.install_as_tilus()
    sys.argv = [str(options.script), *options.arguments]
    sys.path.insert(0, str(options.script.resolve().parent))
    try:
        runpy.run_path(str(options.script), run_name="__main__")
    except TilekitError as error:
        print(error.to_ansi() if sys.stderr.isatty() else error.to_text(), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
