# SPDX-License-Identifier: Apache-2.0
"""The `.tile` files of this folder: programs in printed form that say which passes to run and what must come out."""

from pathlib import Path

import pytest

from tests import filecheck
from tilekit import transforms

FOLDER = Path(__file__).parent
FACTORIES = {
    name.removesuffix("_pass"): getattr(transforms, name) for name in transforms.__all__ if name.endswith("_pass")
}


def default(prog):
    return transforms.run_passes(prog, transforms.get_default_passes(), check=True)


@pytest.mark.parametrize("case", filecheck.cases(FOLDER), ids=str)
def test_tile_file_keeps_what_its_comments_say(case):
    case.run({"default": default, **{name: factory() for name, factory in FACTORIES.items()}})


@pytest.mark.parametrize("name", FACTORIES)
def test_a_pass_has_one_name_everywhere(name):
    assert FACTORIES[name]().name == name, f"name the class {name.title().replace('_', '')}Pass"
    assert FACTORIES[name].__module__.endswith(f".{name}"), f"put {name}_pass() into tilekit/transforms/{name}.py"
    assert (FOLDER / f"{name}.tile").is_file(), f"write tests/transforms/{name}.tile"


def test_passes_of_a_compile_can_be_run_by_name():
    missing = {each.name for each in transforms.get_default_passes()} - FACTORIES.keys()
    assert not missing, f"name these in __all__ of tilekit/transforms/__init__.py: {sorted(missing)}"
