# SPDX-License-Identifier: Apache-2.0
"""A pass of one's own as a person meets it in JupyterLab."""

import random
import re

import pytest
from playwright.sync_api import expect

from tests.notebook.cells import CALL, VECTOR_ADD

pytestmark = pytest.mark.browser

# its number keeps it out of the cache of other runs
OWN = f"""%%tilus_pass --after copy_elimination
class Once(IRRewriter):
    def visit_AddInst(self, inst):
        return inst.replace(y=inst.x)

    def visit_SyncThreadsInst(self, inst):
        return None


class OncePass(Pass):
    number = {random.getrandbits(50)}

    def process_function(self, func):
        return Once().visit(func)
"""
KERNEL = (
    f"%%tilus\n{VECTOR_ADD.replace('        self.store', '        self.sync()' + chr(10) + '        self.store')}{CALL}"
)


def test_what_a_pass_changed_opens_below_the_next_cell_with_the_names_of_its_methods(open_notebook, artifact):
    notebook = open_notebook(["%load_ext tilekit", KERNEL, OWN, "%%tilus\nadd(n, x, y, z)\ntorch.equal(z, x + x)"])
    _, first, own, second = notebook.run_all()
    assert "custom passes" not in first.text
    assert "once runs after copy_elimination in every compile from now on" in own.text
    assert "custom passes: once after copy_elimination" in second.text
    assert second.text.rstrip().endswith("True")
    page = notebook.page
    panel = page.locator(".tk-trace")
    expect(panel).to_have_count(1)
    expect(panel.locator(".tk-current")).to_have_text(re.compile(r"^\d+ once$"))
    expect(panel.locator(".tk-card", has_text="custom pass")).to_contain_text("OncePass in Cell In[3], line 13")
    rows = panel.locator(".tk-rows .tk-row", has=page.locator(".tk-note:not(:empty)"))
    expect(rows).to_have_count(2)
    expect(rows.filter(has_text="visit_AddInst")).to_contain_text(re.compile(r"add\(\w+, \w+\)"))
    expect(rows.filter(has_text="visit_SyncThreadsInst")).to_contain_text("sync()")
    notebook.screenshot(artifact("light.png"))
