# SPDX-License-Identifier: Apache-2.0
"""The table of schedules: as a list, as text, as HTML, as a data frame, and as a figure."""

import html.parser
import random
import sys

import pytest

from tilekit.diag import ArgumentError
from tilekit.jit.tuning import figure
from tilekit.jit.tuning.schedules import MAX_ROWS, Row, Schedules, untried
from tilekit.jit.tuning.space import State


def measured(costs, **more) -> Schedules:
    """Schedules of a GPU that took so many seconds."""
    rows = [
        Row(
            i,
            {"block": 32 << i, "warps": 4},
            State.MEASURED,
            0.5,
            64 + i,
            1024 * i,
            0,
            cost,
            0.01,
            is_best=cost == min(costs),
        )
        for i, cost in enumerate(costs)
    ]
    return Schedules(rows, "Double · sm_90a", "s", ["block"], **more)


BROKEN = Schedules(
    [
        Row(0, {"block": 1, "warps": 4}, State.FAILED, 0.1, error="no <such> layout", where="Cell In[3]:12"),
        Row(1, {"block": 2, "warps": 4}, State.MEASURED, 0.0, 32, 0, 8, 2.5e-5, 0.004, is_best=True),
        Row(2, {"block": 3, "warps": 4}, State.BROKEN, 1.0, 32, 0, 0, error="it faulted"),
        Row(3, {"block": 4, "warps": 4}, State.COMPILED, 1.0, 32, 0, 0),
        Row(4, {"block": 5, "warps": 4}, State.HOPELESS, 1.0, 32, 48128, 0, 1.5e-3, 0.1),
    ],
    "Double · sm_90a",
    "s",
    ["block"],
)


def test_the_text_has_the_best_first_and_every_fact():
    title, head, *lines = str(BROKEN).splitlines()
    assert title == (
        "Double · sm_90a: 5 schedules, 1 does not compile, 1 compiled, 1 measured, 1 stopped early, 1 fails to run"
    )
    assert head.split() == ["block", "compiled", "in", "registers", "shared", "spills", "median", "spread", "state"]
    assert [line.split()[0] for line in lines] == ["2", "5", "4", "3", "1"]
    assert lines[0].split() == ["2", "cached", "32", "0", "8", "25.0", "µs", "±0.4%", "best"]
    assert "1.500 ms" in lines[1] and "48,128" in lines[1] and lines[1].endswith("stopped early")
    assert lines[4].endswith("does not compile: Cell In[3]:12: no <such> layout")


def test_columns_are_aligned():
    costs = [random.uniform(1e-6, 1e-2) for _ in range(8)]
    _, *lines = str(measured(costs)).splitlines()
    ends = {line.index("±") for line in lines[1:]}
    assert len(ends) == 1


class Reader(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_the_html_says_the_same_without_scripts():
    reader = Reader()
    reader.feed(BROKEN._repr_html_())
    assert reader.open == [] and not {"script", "link", "style", "img"} & set(reader.tags)
    for word in ("25.0 µs", "±0.4%", "Cell In[3]:12", "no <such> layout", "stopped early"):
        assert word in reader.text
    assert reader.tags.count("tr") == 6


def test_a_long_table_says_how_many_it_leaves_out():
    costs = random.sample(range(1, 1000), MAX_ROWS + 7)
    table = measured([cost * 1e-6 for cost in costs])
    assert len(table) == MAX_ROWS + 7
    assert str(table).splitlines()[-1] == "and 7 more: to_pandas() has them all"
    assert len(str(table).splitlines()) == MAX_ROWS + 3


def test_it_is_the_list_of_schedules():
    plain = [{"block": block, "warps": 4} for block in (1, 2, 3, 4, 5)]
    assert plain == BROKEN and isinstance(BROKEN, list)
    assert BROKEN.best is BROKEN.rows[1] and untried([], "Nothing").best is None


def test_a_data_frame_has_a_row_for_each():
    pandas = pytest.importorskip("pandas")
    frame = BROKEN.to_pandas()
    assert list(frame.columns[:3]) == ["block", "warps", "state"] and len(frame) == 5
    assert frame.loc[1, "median"] == 2.5e-5 and frame.loc[0, "where"] == "Cell In[3]:12"
    assert pandas.isna(frame.loc[0, "median"])


def test_without_pandas_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ArgumentError, match="pip install pandas") as caught:
        BROKEN.to_pandas()
    assert caught.value.code == "TK638"


def test_the_figure_shows_those_that_ran_with_one_accent():
    drawn = BROKEN.figure()
    (bars,) = drawn.data
    assert list(bars.y) == ["block=2", "block=5"]
    assert list(bars.x) == pytest.approx([0.025, 1.5]), "in milliseconds"
    assert list(bars.marker.color) == [figure.ACCENT, figure.REST]
    assert list(bars.error_x.array) == pytest.approx([0.0001, 0.15])
    assert drawn.layout.paper_bgcolor == drawn.layout.plot_bgcolor == "rgba(0,0,0,0)", "any page shows through"
    assert drawn.layout.xaxis.title.text == "ms"


def test_a_figure_follows_a_tuning():
    costs = [3e-5, 2e-5, 1e-5]
    drawn = untried([{"block": 1}, {"block": 2}], "Double").figure()
    assert list(drawn.data[0].x or []) == []
    for count in (1, 2, 3):
        figure.update(drawn, measured(costs[:count]))
        assert list(drawn.data[0].x) == pytest.approx(sorted(cost * 1e6 for cost in costs[:count]))
        assert f"{count} measured" in drawn.layout.title.text


def test_a_figure_has_room_for_the_best_ones_only():
    drawn = measured([cost * 1e-6 for cost in random.sample(range(1, 1000), 100)]).figure()
    assert len(drawn.data[0].x) == figure.MAX_BARS
    assert list(drawn.data[0].x) == sorted(drawn.data[0].x)
