# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterator

import pytest

from tests.notebook.cells import Notebook


@pytest.fixture(scope="session")
def _shell() -> Iterator[Notebook]:
    notebook = Notebook()
    yield notebook
    notebook.close()


@pytest.fixture
def notebook(_shell: Notebook) -> Notebook:
    """A notebook whose first cell, `%load_ext tilekit`, has run."""
    _shell.forget()
    _shell.ran("%load_ext tilekit")
    return _shell
