# SPDX-License-Identifier: Apache-2.0
"""A measurement over sizes as a person sees it: the table, and below it the plot, on a light and on a dark page."""

import pytest

from tests.browser import lab
from tests.notebook.cells import VECTOR_ADD

pytestmark = pytest.mark.browser

MEASURE = """\
%%tilus
VectorAdd().bench(
    sizes=[256, 1024, 4096],
    make=lambda n: (n, torch.randn(n), torch.randn(n), torch.empty(n)),
    against={"torch": torch.add, "numpy": lambda x, y: torch.from_numpy(x.numpy() + y.numpy()), "none": torch.inverse},
    rounds=2,
)
"""


def test_the_plot_stands_below_the_table_on_either_ground(open_notebook, artifact):
    notebook = open_notebook(["%load_ext tilekit", f"%%tilus\n{VECTOR_ADD}", MEASURE])
    (*_, cell) = notebook.run_all()
    assert "say nothing about a GPU" in cell.text and "results compared with torch in float64" in cell.text
    page = notebook.page
    page.wait_for_selector(".js-plotly-plot .scatterlayer .trace >> nth=2", state="attached")
    colors = {}
    for theme in (lab.LIGHT, lab.DARK):
        notebook.set_theme(theme)
        assert page.locator(".tk-bench tbody tr").count() == 12
        assert page.locator(".tk-bench tbody b, .tk-bench script").count() == 0
        colors[theme] = page.locator(".tk-bench td").first.evaluate("cell => getComputedStyle(cell).color")
        # nothing of the plot is a ground of its own
        assert page.locator(".js-plotly-plot .main-svg").first.evaluate(
            "plot => getComputedStyle(plot).backgroundColor"
        ) in ("rgba(0, 0, 0, 0)", "transparent")
        notebook.screenshot(artifact(f"{theme.split()[1].lower()}.png"))
    assert colors[lab.LIGHT] != colors[lab.DARK]
