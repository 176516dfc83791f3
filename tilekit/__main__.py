# SPDX-License-Identifier: Apache-2.0
"""`tilekit run script.py [arguments]` runs a tilus script; `cache …` and `trace …` show what is left of runs."""

from __future__ import annotations

import argparse
import importlib
import runpy
import sys
from pathlib import Path

from tilekit import aliases, config
from tilekit.cache import manage, size
from tilekit.diag import TilekitError


def main() -> int:
    parser = argparse.ArgumentParser(prog="tilekit", description="Tools of tilekit.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run a script in which `import tilus` means tilekit")
    run.add_argument("script", type=Path)
    run.add_argument("arguments", nargs=argparse.REMAINDER, help="what the script finds in sys.argv[1:]")
    _add_cache(commands.add_parser("cache", help="see what was compiled, make the cache smaller, empty it"))
    commands.add_parser("trace", help="look at traced compiles: view, render, diff, find, blame, rerun, bisect, gc")
    if sys.argv[1:2] == ["trace"]:
        # nobody else needs it
        return importlib.import_module("tilekit.tools.lower_trace.cli").main(sys.argv[2:])
    options = parser.parse_args()
    if options.command == "run" and not options.script.is_file():
        parser.error(f"there is no file {options.script}")
    try:
        return _cache(options) if options.command == "cache" else _run(options)
    except TilekitError as error:
        print(error.to_ansi() if sys.stderr.isatty() else error.to_text(), file=sys.stderr)
        return 1


def _run(options: argparse.Namespace) -> int:
    aliases.install_as_tilus()
    sys.argv = [str(options.script), *options.arguments]
    sys.path.insert(0, str(options.script.resolve().parent))
    runpy.run_path(str(options.script), run_name="__main__")
    return 0


def _add_cache(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dir", type=Path, help="the cache folder, if it is not the one in force")
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("ls", help="list the programs, the last used first")
    explain = actions.add_parser("explain", help="say what an entry was made of")
    explain.add_argument("key", help="the beginning of its key, as `ls` shows it; * for all")
    gc = actions.add_parser("gc", help="delete what was not used for longest")
    gc.add_argument(
        "--limit", type=_bytes, metavar="BYTES", help="the bytes that may stay; by default the limit in force"
    )
    actions.add_parser("verify", help="read everything, and delete what is damaged")
    actions.add_parser("clear", help="delete everything")


def _bytes(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 on")
    return int(text)


def _cache(options: argparse.Namespace) -> int:
    settings = config.resolve()
    root: Path = options.dir or settings.cache_dir
    match options.action:
        case "ls":
            print(manage.ls(root))
        case "explain":
            found = manage.explain(root, options.key)
            print(found or f"nothing in {root} has a key that begins with {options.key!r}")
            return 0 if found else 1
        case "gc":
            gone = size.collect(root, settings.cache_limit if options.limit is None else options.limit)
            print(f"{len(gone)} entries deleted, {sum(entry.nbytes for entry in gone)} bytes")
        case "verify":
            damaged = manage.verify(root)
            print(f"{len(damaged)} damaged entries deleted", *damaged, sep="\n  ")
            return 1 if damaged else 0
        case _:
            manage.clear(root)
            print(f"{root} is empty")
    return 0


if __name__ == "__main__":
    sys.exit(main())
