# SPDX-License-Identifier: Apache-2.0
"""The panels' bundles are of the sources that lie beside them, and what builds them asks for no address."""

import importlib.util
import json
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
WIDGETS = ROOT / "widgets"

needs_modules = pytest.mark.skipif(
    shutil.which("node") is None or not (WIDGETS / "node_modules").exists(), reason="no node modules: run make widgets"
)


def bundles():
    spec = importlib.util.spec_from_file_location("bundles", WIDGETS / "bundles.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_bundles_are_of_these_sources():
    builder = bundles()
    stale = [
        name
        for name in builder.BUNDLES
        if not (builder.STATIC / name).exists() or builder._first_line(builder.STATIC / name) != builder.head()
    ]
    assert stale == [], "run make widgets"


def test_a_bundle_asks_for_nothing_that_it_does_not_hold():
    for file in (ROOT / "tilekit" / "static").glob("*.js"):
        text = file.read_text("utf-8")
        assert "import(" not in text and 'from"' not in text and "https://" not in text, file.name


def test_the_bundles_stay_small():
    builder = bundles()
    sizes = {name: (builder.STATIC / name).stat().st_size for name in builder.BUNDLES}
    limits = {"source.js": 520_000, "passes.js": 90_000, "report.js": 90_000}
    assert {name: size for name, size in sizes.items() if size > limits.get(name, 40_000)} == {}


def test_the_licenses_of_what_the_bundles_hold_lie_beside_them():
    text = (bundles().STATIC / "licenses.txt").read_text("utf-8")
    for package in ("@codemirror/view", "@codemirror/state", "@lezer/cpp"):
        assert package in text
    assert text.count("Permission is hereby granted") == text.count("-" * 80) + 1


def test_the_lock_file_names_no_registry():
    packages = json.loads((WIDGETS / "package-lock.json").read_text("utf-8"))["packages"]
    assert len(packages) > 10
    assert [name for name, package in packages.items() if "resolved" in package] == []


@needs_modules
@pytest.mark.parametrize("script", ["types", "test"])
def test_the_typescript_passes(script: str):
    done = subprocess.run(["npm", "run", script], cwd=WIDGETS, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
