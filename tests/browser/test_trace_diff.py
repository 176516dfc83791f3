# SPDX-License-Identifier: Apache-2.0
"""The view of a diff as a person meets it: folds, columns, pins, names, and only the rows that are in sight."""

import json
import pathlib
import random
import shutil
import subprocess

import pytest

from tests.browser import lab

WIDGETS = pathlib.Path(__file__).parents[2] / "widgets"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        shutil.which("node") is None or not (WIDGETS / "node_modules").exists(),
        reason="no node modules: run make widgets",
    ),
]

Pair = tuple[list[str], list[str]]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory) -> pathlib.Path:
    """The view and its looks, alone in a page."""
    folder = tmp_path_factory.mktemp("diff")
    entries = ["test/trace/page.ts", "src/report/report.css"]
    command = ["node_modules/.bin/esbuild", *entries, "--bundle", "--format=iife", f"--outdir={folder}", "--outbase=."]
    subprocess.run([*command, "--entry-names=[name]", "--log-level=error"], cwd=WIDGETS, check=True)
    return folder


@pytest.fixture
def open_diff(bundle, chromium, artifact, tmp_path):
    """Open a page of two texts; no error may have reached it when the test ends."""
    notebook = lab.Notebook(chromium.new_page())

    def open_(before: list[str], after: list[str] | None, **more):
        shown = {"before": before, "after": after, "languages": ["tile", "tile"], "labels": ["one", "two"]}
        shown |= {"isTranslation": False} | more
        page = tmp_path / "page.html"
        page.write_text(
            f"<!doctype html><meta charset='utf-8'><style>{(bundle / 'report.css').read_text()}</style>"
            f"<script>window.shown = {json.dumps(shown).replace('<', chr(92) + 'u003c')}</script>"
            f"<body><script>{(bundle / 'page.js').read_text()}</script>"
        )
        notebook.page.goto(page.as_uri())
        notebook.page.focus(".tk-rows")
        return notebook.page

    yield open_
    notebook.screenshot(artifact("light.png"))
    errors = notebook.errors
    notebook.page.close()
    assert not errors


def program(lines: int) -> list[str]:
    return [
        f"{'    ' * (n // 9 % 4)}t_{n}: f16[{random.choice([8, 16])}, {n}] = mma(t_{max(n - 1, 0)}, t_{n // 2})"
        for n in range(lines)
    ]


def changed(before: list[str], *places: int) -> list[str]:
    return [line.replace("mma", "fma") if n in places else line for n, line in enumerate(before)]


def row_count(page) -> int:
    return int(page.get_attribute(".tk-rows", "aria-rowcount"))


def signs(page) -> set[str]:
    return set(page.eval_on_selector_all(".tk-sign[aria-label]", "cells => cells.map(cell => cell.ariaLabel)"))


def shown_numbers(page, side: str) -> list[int]:
    cells = page.eval_on_selector_all(
        f".tk-number[data-side={side}]", "cells => cells.map(cell => [cell.getBoundingClientRect().y, cell.innerText])"
    )
    return [int(number) for _, number in sorted(cells)]


def uses(page) -> list[str]:
    return page.evaluate("() => [...(CSS.highlights.get('tk-uses') ?? [])].map(String)")


def code(page, side: str, line: int):
    """The text of a line that is in sight."""
    number = page.locator(f".tk-number[data-side={side}]").get_by_text(str(line), exact=True)
    return page.locator(".tk-row", has=number).locator(f"code[data-side={side}] .tk-code")


def test_case_70_71_a_changed_line_is_one_row_with_only_its_changed_tokens_marked(open_diff):
    before = program(200)
    page = open_diff(before, changed(before, 100))
    assert page.locator("code.tk-removed mark").all_inner_texts() == ["mma"]
    assert page.locator("code.tk-added mark").all_inner_texts() == ["fma"]
    assert signs(page) == {"removed", "added"}


def test_case_72_lines_that_differ_by_renaming_are_folded_with_their_number_until_it_is_switched_off(open_diff):
    before = [f"t_{n + 1}: f16[{n % 7}] = add(t_{n}, t_{n // 2})" for n in range(60)]
    after = ["t_0: f16[9] = load(g)", *(f"t_{n + 2}: f16[{n % 7}] = add(t_{n + 1}, t_{n // 2 + 1})" for n in range(60))]
    page = open_diff(before, after)
    assert page.locator(".tk-diff-summary").inner_text() == ""
    page.keyboard.press("r")
    assert "60 lines differ by renaming only" in page.locator(".tk-diff-summary").inner_text()
    assert page.locator(".tk-fold-words").inner_text() == "57 lines differ by renaming only"
    assert page.locator("code.tk-added").all_inner_texts() == [after[0]]
    assert page.locator("code.tk-removed").count() == 0
    page.locator(".tk-fold-words").click()
    assert row_count(page) == 61
    page.keyboard.press("r")
    assert page.locator("code.tk-removed").count() > 3


def test_case_73_a_body_that_went_into_a_loop_is_shown_as_re_indented_until_it_is_switched_off(open_diff):
    body = [f"    step_{n}(x, {n * n})" for n in range(12)]
    page = open_diff(["def f():", *body], ["def f():", "    for i in range(4):", *(f"    {line}" for line in body)])
    assert signs(page) == {"added", "re-indented"}
    assert page.locator(".tk-diff-summary").inner_text().split() == ["+1", "−0", "12", "lines", "re-indented"]
    page.keyboard.press("w")
    assert signs(page) == {"removed", "added"}
    page.get_by_role("button", name="Show lines of which only the indentation differs as such (w)").click()
    assert signs(page) == {"added", "re-indented"}


def test_case_74_a_moved_block_leads_to_its_other_place_and_back(open_diff):
    lines = program(400)
    block, rest = [f"moved_{n}: i32 = thread(x, {n * 7})" for n in range(100)], lines
    page = open_diff([*rest[:30], *block, *rest[30:]], [*rest[:350], *block, *rest[350:]])
    assert "100 lines moved" in page.locator(".tk-diff-summary").inner_text()
    there = page.locator(".tk-move-link", has_text="moved to line 351")
    assert there.inner_text() == "→ 100 lines moved to line 351"
    there.click()
    back = page.locator(".tk-move-link", has_text="moved from line 31")
    assert page.locator(".tk-row[data-cursor=right] .tk-number[data-side=right]").inner_text() == "351"
    assert signs(page) == {"moved"}
    back.click()
    there.wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.locator(".tk-row[data-cursor=right] .tk-number[data-side=right]").inner_text() == "352"


def test_case_75_a_fold_opens_twenty_lines_at_the_chosen_end_until_none_is_left_and_all_closes_again(open_diff):
    before = program(200)
    page = open_diff(before, changed(before, 0, 199))
    assert row_count(page) == 9
    assert page.locator(".tk-fold-words").inner_text() == "192 unchanged lines"
    for clicks, end in enumerate(["top", "bottom", "top", "top", "bottom", "top", "bottom", "bottom", "top"], start=1):
        page.locator(f".tk-fold-end[data-end={end}]").click()
        assert row_count(page) == 9 + 20 * clicks
        page.evaluate("() => document.querySelector('.tk-fold').scrollIntoView({ block: 'center' })")
    page.locator(".tk-fold-end[data-end=bottom]").click()
    assert row_count(page) == 200
    assert page.locator(".tk-fold").count() == 0
    page.keyboard.press("E")
    assert row_count(page) == 9
    assert page.locator(".tk-fold .tk-fold-end").count() == 2
    page.keyboard.press("E")
    assert row_count(page) == 200


@pytest.mark.parametrize("layout", ["split", "unified"])
def test_case_75_76_context_is_chosen_and_columns_are_switched(open_diff, layout):
    before = program(100)
    page = open_diff(before, changed(before, 50))
    if layout == "unified":
        page.keyboard.press("u")
    extra = 1 if layout == "unified" else 0
    for context, rows in {"0": 3, "3": 9, "10": 23, "Infinity": 100}.items():
        page.get_by_role("combobox", name="Lines around a change").select_option(context)
        assert row_count(page) == rows + extra
    page.focus(".tk-rows")
    page.keyboard.press("u")
    assert row_count(page) == 100 + 1 - extra


def test_case_76_keys_go_to_changes_and_open_one_fold_both_ways(open_diff):
    before = program(300)
    page = open_diff(before, changed(before, 100, 200))
    rows = row_count(page)
    page.set_viewport_size({"width": 1400, "height": 300})
    page.keyboard.press("n")
    assert 201 in shown_numbers(page, "right")
    page.keyboard.press("p")
    assert 101 in shown_numbers(page, "right")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("e")
    assert row_count(page) > rows
    page.keyboard.press("e")
    assert row_count(page) == rows
    page.keyboard.press("Control+u")
    assert page.locator(".tk-unified").count() == 0


def pin(page, left: int, right: int):
    page.keyboard.press("F7")
    code(page, "left", left).click()
    code(page, "right", right).click()


def pinned(page) -> list[list[int]]:
    rows = page.eval_on_selector_all(
        ".tk-pinned", "rows => rows.map(row => [...row.querySelectorAll('.tk-number')].map(cell => +cell.innerText))"
    )
    return sorted(rows)


def message(page) -> str:
    return page.locator(".tk-diff-message").inner_text() if page.locator(".tk-diff-message:visible").count() else ""


def test_case_77_several_pins_by_mouse_stay_in_order_or_are_refused_and_survive_a_reload(open_diff):
    before, after = [f"alpha_{n}(1)" for n in range(20)], [f"beta_{n}(2)" for n in range(20)]
    page = open_diff(before, after)
    pin(page, 3, 5)
    assert message(page) == "pinned 3 ⇄ 5"
    pin(page, 12, 15)
    pin(page, 6, 9)
    assert pinned(page) == [[3, 5], [6, 9], [12, 15]]
    pin(page, 14, 7)
    assert message(page) == "14 ⇄ 7 refused: it crosses the pin 12 ⇄ 15"
    assert pinned(page) == [[3, 5], [6, 9], [12, 15]]
    assert page.evaluate("() => view.state") == "p3-5.12-15.6-9"
    page.reload()
    assert pinned(page) == [[3, 5], [6, 9], [12, 15]]
    page.evaluate("() => view.show({ ...shown, labels: ['two', 'three'] })")
    assert pinned(page) == []
    page.evaluate("() => view.show(shown)")
    assert pinned(page) == [[3, 5], [6, 9], [12, 15]]
    page.focus(".tk-rows")
    page.keyboard.press("Shift+F7")
    assert message(page) == "took back 6 ⇄ 9"
    code(page, "left", 3).click()
    page.keyboard.press("Shift+F7")
    assert pinned(page) == [[12, 15]]


def test_case_77_a_pin_by_keys_and_equal_lines_stay_equal(open_diff):
    lines = [f"same_{n % 3}()" for n in range(12)]
    page = open_diff(lines, lines[1:])
    page.keyboard.press("a")
    assert message(page).startswith("Click the line on the left")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert message(page).startswith("Click the line on the right")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    (row,) = pinned(page)
    assert lines[row[0] - 1] == lines[1:][row[1] - 1]
    assert page.locator(".tk-pinned .tk-sign").all_inner_texts() == ["", ""]


def test_case_77_escape_leaves_the_choosing_of_a_pin_at_any_time(open_diff):
    page = open_diff(program(10), program(10))
    for keys in (["F7", "Escape"], ["F7", "F7"], ["F7", "ArrowDown", "Enter", "F7", "Escape"]):
        for key in keys:
            page.keyboard.press(key)
        assert message(page) == ""
        assert not page.evaluate("() => view.isPicking")
    assert pinned(page) == []


def test_all_uses_of_the_name_under_the_pointer_or_the_cursor_are_marked(open_diff):
    before = ["a_1: i32 = load(g)", "a_11: i32 = add(a_1, a_1)", "store(g, a_11)"]
    page = open_diff(before, [*before, "again(a_1)"])
    word = page.evaluate("""() => {
        const code = document.querySelector('code[data-side=right] .tk-code');
        const range = document.createRange();
        range.setStart(code.firstChild, 0);
        range.setEnd(code.firstChild, 3);
        const { x, y, width, height } = range.getBoundingClientRect();
        return [x + width / 2, y + height / 2];
    }""")
    page.mouse.move(*word)
    assert uses(page) == ["a_1"] * 7
    page.mouse.move(word[0] + 400, word[1])
    assert uses(page) == []
    page.mouse.click(*word)
    page.mouse.move(5, 500)
    assert uses(page) == ["a_1"] * 7
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert set(uses(page)) <= {"a_1", "a_11", "i32", "add"}
    page.keyboard.press("Escape")
    assert uses(page) == []


def test_case_66_three_thousand_open_lines_scroll_with_few_elements_in_the_page(open_diff):
    before = program(3000)
    page = open_diff(before, changed(before, *range(0, 3000, 50)))
    page.keyboard.press("E")
    assert row_count(page) == 3000
    height = page.evaluate("() => document.querySelector('.tk-rows').scrollHeight")
    for _ in range(20):
        page.evaluate(f"() => {{ document.querySelector('.tk-rows').scrollTop = {random.randrange(height)}; }}")
        page.evaluate("() => new Promise(requestAnimationFrame)")
        assert page.evaluate("() => document.querySelectorAll('*').length") <= 5000
        assert page.evaluate(
            "() => { const { left, top } = document.querySelector('.tk-rows').getBoundingClientRect();"
            " return document.elementFromPoint(left + 200, top + 300).closest('.tk-row') !== null; }"
        )
        order = page.eval_on_selector_all("[data-row]", "rows => rows.map(row => +row.dataset.row)")
        assert order == sorted(order)


def test_case_84_a_line_of_an_error_with_a_caret_keeps_its_columns(open_diff):
    lines = ["kernel.cu(3): error: expected a ';'", "    int x = 1  int y\t= 2;", "            " + "  ^", ""]
    page = open_diff(lines, None)
    assert page.locator("code[data-side=left]").count() == 4
    assert page.locator("code[data-side=right]").count() == 0
    assert page.locator(".tk-code").all_text_contents() == lines
    caret, after = (
        page.evaluate(
            """([row, column]) => {
                const text = document.querySelectorAll('.tk-code')[row];
                const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
                let at = 0;
                for (let node = walker.nextNode(); node; at += node.length, node = walker.nextNode()) {
                    if (column >= at + node.length) continue;
                    const range = document.createRange();
                    range.setStart(node, column - at);
                    range.setEnd(node, column - at + 1);
                    return range.getBoundingClientRect().x;
                }
            }""",
            place,
        )
        for place in ([2, 14], [1, 14])
    )
    assert caret == pytest.approx(after, abs=0.5)


def test_a_line_of_a_hundred_thousand_columns_is_shown_whole(open_diff):
    line = ", ".join(f"t_{n}" for n in range(12_000))
    page = open_diff([line], [line.replace("t_6000,", "u_6000,")])
    assert page.locator(".tk-code").all_inner_texts() == [line, line.replace("t_6000,", "u_6000,")]
    assert page.locator("mark").all_inner_texts() == ["t_6000", "u_6000"]


def test_two_languages_stand_beside_each_other_and_have_nothing_to_switch(open_diff):
    page = open_diff(["a", "b"], ["x", "y", "z"], isTranslation=True, languages=["hidet", "cuda"])
    assert row_count(page) == 3
    assert signs(page) == set()
    assert all(switch.is_disabled() for switch in page.locator("header button, header select").all())


def test_what_is_said_beside_a_line_leads_on_and_lines_light_up(open_diff):
    before = program(10)
    page = open_diff(before, before)
    page.evaluate("() => { view.gutter(['', 'pass_3']); view.light('right', [4, 5]); }")
    page.locator("button.tk-note").click()
    assert page.evaluate("() => told.blamed") == [1]
    assert page.locator("code.tk-lit").count() == 2


CONTRASTS = """() => {
    const pixel = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
    const light = ([r, g, b]) => {
        const [x, y, z] = [r, g, b].map(c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const over = colors => {
        pixel.clearRect(0, 0, 1, 1);
        for (const color of colors) { pixel.fillStyle = color; pixel.fillRect(0, 0, 1, 1); }
        return light(pixel.getImageData(0, 0, 1, 1).data);
    };
    const found = {};
    const walker = document.createTreeWalker(document.querySelector('.tk-diff'), NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        if (!node.data.trim() || !node.parentElement.checkVisibility()) continue;
        const grounds = [];
        for (let e = node.parentElement; e; e = e.parentElement) grounds.unshift(getComputedStyle(e).backgroundColor);
        const [ink, ground] = [over([...grounds, getComputedStyle(node.parentElement).color]), over(grounds)];
        const ratio = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
        const chain = node.parentElement.className + ' in ' + node.parentElement.closest('code, span, div').className;
        found[chain] = Math.min(ratio, found[chain] ?? 99);
    }
    return found;
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_case_81_every_text_of_a_diff_stands_out_from_its_ground(open_diff, theme):
    code = "x: f32[4] = load(g, n=12, op='max')  # a remark"
    before = [f"for name_{n} in range({n}): {code}" for n in range(60)]
    after = [line.replace("name", "other") if 18 < n < 30 else line for n, line in enumerate(before)]
    moved = [f"moved_{n}: f32 = f({n})" for n in range(9)]
    after[3], after[5:5], before[55:55] = after[3].replace("max", "min"), ["added"], ["removed", *moved]
    after[40:40] = [f"    {line}" for line in moved]
    # a word of each color is marked as changed
    for old, now in [("for", "while"), ("f32", "f16"), ("12", "13"), ("load", "read"), ("# a", "# one")]:
        after[1] = after[1].replace(old, now)
    after[10] = "    " + after[10]
    page = open_diff(before, after)
    page.evaluate("theme => document.documentElement.className = theme", theme)
    page.evaluate("() => { view.gutter(Array(60).fill('12 pass')); view.light('right', [8]); }")
    pin(page, 12, 13)
    page.keyboard.press("r")
    page.locator(".tk-fold-words").first.click()
    assert {"added", "removed", "re-indented", "renamed", "moved"} <= signs(page)
    contrasts = page.evaluate(CONTRASTS)
    assert {where: ratio for where, ratio in contrasts.items() if ratio < 4.5} == {}
