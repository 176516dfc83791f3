# SPDX-License-Identifier: Apache-2.0
"""The page of a traced run as a person meets it, opened from the disk: by mouse, by keys, by its address."""

import json
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser import lab
from tests.tools.lower_trace.synthetic import Program, changed, lines_of_ir, pipeline
from tilekit import drivers, float16, spec, target, textdiff
from tilekit.config import TraceMode
from tilekit.events import Sink, Stage, step
from tilekit.tools.lower_trace import cli, journal, page, queries, run
from tilekit.tools.lower_trace.recording import Event
from tilekit.tools.lower_trace.settings import Settings

STATIC = Path(page.__file__).parents[2] / "static"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (STATIC / "report.js").exists(), reason="the viewer is not built: run make widgets"),
]


def started(folder: Path) -> run.RunFolder:
    return run.open_run(Settings(TraceMode.HTML, folder), [], print)


def take(sink: Sink, stage: Stage, name: str, before: object, after: object):
    with step(sink, stage, name, before) as underway:
        underway.made(after)


def lower(sink: Sink, lines: list[str], *, passes: int = 6, fails_at: int | None = None):
    """A compile in small: tile passes of which every other one changes something, two of Hidet IR, and a source."""
    before = Program("\n".join(lines))
    for number in range(passes):
        lines = changed(lines, 0.05, random.Random(number)) if number % 2 else lines
        after = Program("\n".join(lines)) if number % 2 else before
        with step(sink, Stage.TILE, f"tile_pass_{number}", before) as underway:
            if number == fails_at:
                raise RuntimeError('a <b>&"c"\n  line2\n      ^^^^^')
            underway.made(after)
        before = after
    module = Program("\n".join(f"declare {line.strip()}" for line in lines))
    take(sink, Stage.LOWER, "generate_ir_module", before, module)
    simple = Program(module.text.replace("declare n", "n"))
    take(sink, Stage.HIDET, "simplify", module, simple)
    take(sink, Stage.HIDET, "remove_unused", simple, simple)
    take(
        sink, Stage.CODEGEN, "print_module", simple, Program("\n".join(f"{line};" for line in simple.text.split("\n")))
    )
    sink.done(None)


@pytest.fixture
def traced(tmp_path, monkeypatch):
    """Traces compiles of the script `work` and gives the page and the journal, as a process that ends leaves them."""
    monkeypatch.setattr(sys, "argv", ["/home/me/work.py", "--size", "64"])

    def trace(*compiles) -> tuple[Path, Path]:
        opened = started(tmp_path / f"trace_{random.random()}")
        for number, compile in enumerate(compiles):
            sink = opened.recording.compile(f"kernel_{number}", script=f"Kernel{number}", target="sm_80", device="cuda")
            try:
                compile(sink)
            except RuntimeError as error:
                sink.done(error)
        opened.recording.close()
        assert opened.page is not None and opened.path is not None
        return opened.page, opened.path / journal.FILE

    return trace


@pytest.fixture
def open_page(chromium, artifact):
    """Open a page in a browser of its own, and wait until it shows a step.

    When the test ends, nothing may have been asked of the network and no error may have reached the page.
    """
    opened: list[lab.Notebook] = []

    def open_(file: Path, fragment: str = "", *, script: str = "", **options):
        size = {"viewport": {"width": 1400, "height": 900}}
        context = chromium.browser.new_context(**{**size, "reduced_motion": "reduce", **options})
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        if script:
            context.add_init_script(script)
        opened.append(lab.Notebook(context.new_page()))
        there = opened[-1].page
        there.on("dialog", lambda dialog: opened[-1].errors.append(f"dialog: {dialog.message}"))
        there.goto(f"{file.as_uri()}{fragment}")
        there.wait_for_selector(".tk-trace[data-ms]")
        return there

    yield open_
    for number, view in enumerate(opened):
        view.screenshot(artifact(f"{number}.png"))
        view.page.context.close()
    assert [error for view in opened for error in view.errors] == []
    assert [address for view in opened for address in view.outside] == []


def read(file: Path) -> journal.Run:
    return journal.read(file)


def is_shown(there, number: int):
    there.wait_for_selector(f".tk-trace[data-shown='{number}']")


def names(there) -> list[str]:
    return there.locator(".tk-pass .tk-pass-name").all_inner_texts()


def balance(there) -> tuple[int, int]:
    return tuple(int(re.sub(r"\D", "", text)) for text in there.locator(".tk-balance .tk-pill").all_inner_texts())


def lines_shown(there, side: str) -> list[str]:
    """The lines of one side that are in the page, in their order."""
    cells = there.eval_on_selector_all(
        f".tk-rows code[data-side={side}] .tk-code",
        "cells => cells.map(cell => [cell.getBoundingClientRect().y, cell.textContent])",
    )
    return [text for _, text in sorted(cells)]


def fragment(there) -> str:
    """The fragment of the address, which follows what is shown."""
    return there.evaluate(
        "() => new Promise(done =>"
        " requestAnimationFrame(() => setTimeout(() => setTimeout(() => done(location.hash)))))"
    )


def reload_until(there, state: str):
    """Reload until the page is as the one before it was left: a browser hands on what that one stored when it likes."""
    for _ in range(20):
        there.reload()
        there.wait_for_selector(".tk-trace[data-ms]")
        if there.evaluate(state):
            return
    raise AssertionError(f"the page never becomes so: {state}")


def is_copied(there, text: str):
    there.wait_for_function("async text => await navigator.clipboard.readText() === text", arg=text)


def pressed(there, name: str) -> bool:
    return there.get_by_role("button", name=name).get_attribute("aria-pressed") == "true"


# --- what it is made of -----------------------------------------------------------------------------------------------


def test_case_64_hostile_names_open_nothing_and_run_nothing(open_page, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["work.py"])
    opened = started(tmp_path)
    hostile = '../../x</script><img src=x onerror="hacked=1">'
    for phase in ("a b", "a_b"):
        sink = opened.recording.compile("k" * 300, phase=phase)
        take(
            sink,
            Stage.TILE,
            f"{hostile}{phase}",
            Program("</script><script>hacked = 1</script>"),
            Program("<b>after</b>"),
        )
        sink.done(None)
    assert opened.page is not None
    grown = tmp_path / "grown.html"
    grown.write_bytes(opened.page.read_bytes())
    opened.recording.close()
    for file in (opened.page, grown):
        there = open_page(file)
        assert there.locator("img").count() == 0
        for phase in ("a b", "a_b"):
            there.get_by_role("tab", name=f"Phase {phase}", exact=True).click()
            assert names(there) == [f"{hostile}{phase}"]
            assert there.locator(".tk-current").inner_text().endswith(f"{hostile}{phase}")
        assert lines_shown(there, "left") == ["</script><script>hacked = 1</script>"]
        # what would get in all the same would not run
        there.evaluate("""() => {
            const box = document.createElement('div');
            box.innerHTML = '<img src=x onerror="hacked = 1">';
            document.body.append(box, Object.assign(document.createElement('script'), { textContent: 'hacked = 1' }));
        }""")
        assert there.evaluate("() => new Promise(done => setTimeout(() => done(typeof hacked), 50))") == "undefined"
    root = tmp_path.resolve()
    assert all(root in path.resolve().parents for path in tmp_path.rglob("*"))


def matmul():
    from tests.kernels.matmul import scripts

    size = 1024
    handle = scripts.pipelined()
    return handle._jit_instance_for(size, size, size, *[spec(float16, (size, size))] * 3).transpiled_programs[0]


class Growth:
    """What the page was after each event."""

    on_disk = False

    def __init__(self):
        self.states: list[bytes] = []
        self.page: Path | None = None

    def hear(self, event: Event):
        if self.page is not None and self.page.exists():
            self.states.append(self.page.read_bytes())

    def close(self):
        pass

    let_go = close


def test_case_67_the_page_of_a_matmul_only_grows_opens_wherever_it_is_cut_and_ends_compact(
    open_page, tmp_path, monkeypatch
):
    monkeypatch.setattr(sys, "argv", ["matmul.py"])
    growth = Growth()
    opened = run.open_run(Settings(TraceMode.HTML, tmp_path), [growth], print)
    assert opened.path is not None
    growth.page = opened.path / "report.html"
    sink = opened.recording.compile("matmul", target="sm_90a", device="cuda")
    drivers.generate_source(matmul(), target.SM90A, [sink])
    sink.done(None)
    *_, grown = growth.states
    for earlier, later in zip(growth.states, growth.states[1:], strict=False):
        assert later.startswith(earlier)
    identity = growth.page.stat().st_ino
    opened.recording.close()
    assert growth.page.stat().st_ino != identity  # it was not rewritten: another one took its place
    assert growth.page.stat().st_size <= 150_000
    there = open_page(growth.page)
    steps = read(opened.path).compiles[0].steps
    assert there.locator(".tk-badge").first.inner_text() == f"{len(steps)} steps"
    viewer = grown.index(b'<script type="application/json"')
    cut = tmp_path / "cut.html"
    for _ in range(10):
        # a chunk that lacks nothing but its end tag is read all the same, so none is cut just there
        left = grown[: random.randrange(viewer, len(grown))].rstrip(b"]")
        cut.write_bytes(left)
        whole = re.findall(rb'<script type="application/json" data-tk="j">(.*?)</script>', left, re.DOTALL)
        told = [entry for chunk in whole for entry in json.loads(chunk)]
        begun = sum(entry["k"] == "pass_begin" for entry in told)
        there.goto(cut.as_uri())
        if not begun:
            there.locator(".tk-current", has_text="nothing was traced yet").wait_for()
            continue
        there.wait_for_selector(".tk-trace[data-ms]")
        assert there.locator(".tk-badge").first.inner_text() == f"{begun} step{'s' * (begun > 1)}"
        unfinished = begun - sum(entry["k"] == "pass_end" for entry in told)
        assert there.locator(".tk-badge.tk-is-failed:visible").count() == min(unfinished, 1)


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.tools.lower_trace.synthetic import pipeline
from tilekit.config import TraceMode
from tilekit.events import Stage, step
from tilekit.tools.lower_trace import run
from tilekit.tools.lower_trace.settings import Settings

opened = run.open_run(Settings(TraceMode.HTML, Path(sys.argv[1])), [], print)
print(opened.path, flush=True)
sink = opened.recording.compile("kernel")
for number, (before, after) in enumerate(pipeline(12, 40, 1)):
    with step(sink, Stage.TILE, f"pass_{number}", before) as underway:
        if number == 7:
            os.kill(os.getpid(), signal.SIGKILL)
        underway.made(after)
"""


def test_case_52_the_page_of_a_process_that_was_killed_opens_on_the_pass_that_it_died_in(open_page, tmp_path):
    done = subprocess.run([sys.executable, "-c", KILLED, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    folder = Path(done.stdout.strip())
    before = list(pipeline(12, 40, 1))[7][0].text
    made = tmp_path / "made.html"
    assert cli.main(["render", str(folder), "-o", str(made)]) == 0
    for file in (folder / "report.html", made):
        there = open_page(file)
        assert "07" in there.locator(".tk-current").first.inner_text()
        box = there.locator(".tk-error-box").inner_text()
        assert "did not finish (process ended)" in box and f"python3 -m tilekit trace rerun 7 {folder}" in box
        assert before.split("\n")[0].strip() in there.locator(".tk-trace").inner_text()


def test_case_82_the_page_asks_for_nothing_and_two_renders_are_the_same_bytes(open_page, traced):
    file, written = traced(lambda sink: lower(sink, lines_of_ir(80, 1)))
    there = open_page(file)
    for key in "jkJKbuwrcE":
        there.keyboard.press(key)
    text = written.read_text()
    assert page.render([text], "work") == page.render([text], "work")
    again = "import sys; from tilekit.tools.lower_trace import page; from pathlib import Path;"
    again += "sys.stdout.buffer.write(page.render([Path(sys.argv[1]).read_text()], 'work'))"
    done = subprocess.run([sys.executable, "-c", again, written], capture_output=True, check=True)
    assert done.stdout == page.render([text], "work") == file.read_bytes()


# --- where it opens ---------------------------------------------------------------------------------------------------


def test_case_81_84_the_page_opens_at_the_failure_and_its_message_keeps_its_columns(open_page, traced):
    file, written = traced(lambda sink: lower(sink, lines_of_ir(60, 2), fails_at=3))
    there = open_page(file)
    is_shown(there, 3)
    box = there.locator(".tk-error-box")
    assert box.locator("b").first.inner_text() == "RuntimeError"
    assert box.locator("pre").first.text_content() == 'a <b>&"c"\n  line2\n      ^^^^^'
    assert box.locator("pre").first.evaluate("pre => getComputedStyle(pre).whiteSpace") == "pre"
    assert "raise RuntimeError" in box.locator(".tk-error-where").inner_text()
    box.locator("summary").click()
    assert "Traceback (most recent call last)" in box.locator("details pre").inner_text()
    run_ = read(written)
    assert lines_shown(there, "left")[:5] == run_.lines(run_.compiles[0].steps[3].before)[:5]
    # the word and the sign say it, not the color alone
    failed = there.locator(".tk-pass[aria-selected=true]")
    assert (failed.locator(".tk-sign-of").inner_text(), failed.locator(".tk-pass-word").inner_text()) == ("✕", "ERROR")


def test_case_81_without_a_failure_it_opens_at_the_last_change_before_the_source(open_page, traced):
    file, written = traced(lambda sink: lower(sink, lines_of_ir(60, 3)))
    there = open_page(file)
    opening = queries.opening(read(written).compiles[0].steps)
    assert opening is not None and opening.changed
    is_shown(there, opening.index)


CONTRAST = """() => {
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const parse = color => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = color;
        canvas.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
        return [r, g, b, a / 255];
    };
    const over = ([r, g, b, a], under) => [r, g, b].map((part, n) => part * a + under[n] * (1 - a));
    const light = color => color
        .map(part => part / 255)
        .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
        .reduce((sum, part, n) => sum + part * [0.2126, 0.7152, 0.0722][n], 0);
    const found = {};
    const walker = document.createTreeWalker(document.querySelector('.tk-trace'), NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const node = walker.currentNode, owner = node.parentElement;
        const box = owner.getBoundingClientRect();
        if (!node.data.trim() || !box.width || owner.closest('[hidden], .tk-spoken, .tk-print')) continue;
        if (owner.disabled || owner.closest(':disabled')) continue;
        const grounds = [];
        for (let at = owner; at; at = at.parentElement) grounds.push(parse(getComputedStyle(at).backgroundColor));
        const ground = grounds.reverse().reduce((under, color) => over(color, under), [255, 255, 255]);
        const ink = over(parse(getComputedStyle(owner).color), ground);
        const [high, low] = [light(ink), light(ground)].sort((a, b) => b - a);
        const ratio = (high + 0.05) / (low + 0.05);
        const name = `${owner.tagName}.${owner.className} in ${owner.parentElement.className}`;
        if (ratio < 4.5) found[name] = `${node.data.trim().slice(0, 30)}: ${ratio.toFixed(2)}`;
    }
    return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_case_81_the_system_chooses_the_colors_and_every_text_can_be_read(open_page, traced, scheme):
    file, _ = traced(
        lambda sink: lower(sink, lines_of_ir(60, 4)), lambda sink: lower(sink, lines_of_ir(60, 4), fails_at=3)
    )
    there = open_page(file, "#p=3&q=cast&b=1", color_scheme=scheme)
    background = there.evaluate("() => getComputedStyle(document.body).backgroundColor")
    dark = sum(map(int, re.findall(r"\d+", background)[:3])) < 3 * 128
    assert dark == (scheme == "dark")
    there.keyboard.press("Escape")
    there.keyboard.press("x")
    for fragment in ("p=3&q=cast&b=1", "p=3", "p=13", "p=9&d=u", "ab=0.1"):
        there.evaluate("fragment => { location.hash = fragment; }", fragment)
        there.wait_for_function("fragment => location.hash.startsWith('#')", arg=fragment)
        assert there.evaluate(CONTRAST) == {}, fragment
    there.keyboard.press("?")
    assert there.evaluate(CONTRAST) == {}
    moving = "nodes => nodes.filter(node => parseFloat(getComputedStyle(node).transitionDuration) > 0).length"
    assert there.eval_on_selector_all("*", moving) == 0


IS_DARK = "() => document.documentElement.classList.contains('dark')"


def test_case_81_95_the_chosen_theme_is_kept_also_where_nothing_can_be_stored(open_page, traced):
    file, _ = traced(lambda sink: lower(sink, lines_of_ir(40, 5)))
    there = open_page(file, color_scheme="light")
    assert not there.evaluate(IS_DARK)
    there.get_by_role("button", name="Change to the dark theme").click()
    assert there.evaluate(IS_DARK)
    reload_until(there, IS_DARK)
    blocked = "Object.defineProperty(window, 'localStorage', { get() { throw new Error('blocked'); } })"
    there = open_page(file, color_scheme="dark", script=blocked)
    there.get_by_role("button", name="Change to the light theme").click()
    assert not there.evaluate(IS_DARK)


def outside(there) -> list[str]:
    """What can be pressed or typed in and does not fit into the width of the page; tabs are scrolled."""
    return there.eval_on_selector_all(
        ".tk-trace :is(button:not(.tk-tab), input, select)",
        """nodes => nodes.filter(node => {
            const { right, width } = node.getBoundingClientRect();
            return width && right > innerWidth;
        }).map(node => node.ariaLabel)""",
    )


def test_case_81_it_is_of_use_at_nine_hundred_pixels_and_on_paper(open_page, traced):
    file, written = traced(lambda sink: lower(sink, lines_of_ir(60, 6)))
    there = open_page(file, "#p=3", viewport={"width": 900, "height": 700}, color_scheme="dark")
    assert outside(there) == []
    assert there.locator(".tk-rows").bounding_box()["width"] > 500
    there.emulate_media(media="print")
    there.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    assert not there.locator(".tk-trace-body").is_visible()
    assert not there.evaluate(IS_DARK)
    run_ = read(written)
    now = run_.compiles[0].steps[3]
    before, after = run_.lines(now.before), run_.lines(now.after)
    printed = there.locator(".tk-print pre").text_content().split("\n")
    assert {line[2:] for line in printed if line.startswith("+ ")} == {
        after[j] for hunk in textdiff.hunks(before, after) for j in hunk.added
    }
    there.emulate_media(media="screen")
    there.evaluate("() => dispatchEvent(new Event('afterprint'))")
    assert there.evaluate(IS_DARK)


def test_where_there_is_little_room_the_list_stands_above_texts_of_one_column(open_page, traced):
    file, _ = traced(
        lambda sink: lower(sink, lines_of_ir(60, 6)), lambda sink: lower(sink, lines_of_ir(60, 6), fails_at=3)
    )
    there = open_page(file, viewport={"width": 500, "height": 900})
    is_shown(there, 13)
    assert outside(there) == []
    side, main = (there.locator(part).bounding_box() for part in (".tk-side", ".tk-main"))
    assert side["width"] == main["width"] == 500
    assert side["y"] < main["y"]
    shown, listed = (there.locator(part).bounding_box() for part in (".tk-pass[aria-selected=true]", ".tk-list"))
    assert listed["y"] <= shown["y"] <= listed["y"] + listed["height"] - shown["height"]
    assert pressed(there, "One column (u)")
    assert "d=" not in fragment(there)
    there.keyboard.press("u")
    assert not pressed(there, "One column (u)")
    assert "d=s" in fragment(there)
    there = open_page(file, "#p=3&d=s", viewport={"width": 500, "height": 900})
    assert not pressed(there, "One column (u)")
    there = open_page(file, "#p=3")
    assert not pressed(there, "One column (u)")


def test_who_asks_for_more_contrast_or_has_own_colors_gets_them(open_page, traced):
    file, _ = traced(lambda sink: lower(sink, lines_of_ir(40, 6)))
    there = open_page(file, "#p=3", contrast="more", color_scheme="dark")
    color = "node => getComputedStyle(node).color"
    assert there.locator(".tk-pass-number").first.evaluate(color) == there.locator(".tk-trace").evaluate(color)
    there = open_page(file, "#p=3", forced_colors="active")
    assert there.locator(".tk-pass[aria-selected=true]").evaluate(
        "node => { const other = document.body.appendChild(document.createElement('i'));"
        " other.style.cssText = 'forced-color-adjust: none; background: Highlight';"
        " return getComputedStyle(node).backgroundColor === getComputedStyle(other).backgroundColor; }"
    )


def test_case_17_an_edited_source_shows_its_tag_and_what_was_edited(open_page, traced):
    generated, compiled = "int a;\nint b;", "int a;\nint c;"

    def edited(sink):
        take(sink, Stage.CODEGEN, "print_module", Program("declare a"), Program(generated))
        sink.edited(generated, compiled, "PATCHED", "/home/me/codegen.cpp", ["PATCHED from /home/me/codegen.cpp"])
        sink.done(None)

    file, _ = traced(edited)
    there = open_page(file)
    card = there.locator(".tk-card").first
    assert card.inner_text().split("\n") == ["PATCHED", "from /home/me/codegen.cpp"]
    assert lines_shown(there, "left") == generated.split("\n")
    assert lines_shown(there, "right") == compiled.split("\n")
    assert balance(there) == (1, 1)
    there.get_by_role("button", name="The program → generated").click()
    assert lines_shown(there, "left") == ["declare a"]
    assert lines_shown(there, "right") == generated.split("\n")
    assert there.locator(".tk-balance .tk-pill").count() == 0


def test_case_68_a_text_above_the_cap_is_shown_and_the_page_says_that_it_is_not_compared(
    open_page, traced, monkeypatch
):
    monkeypatch.setattr(journal, "DIFF_CAP", 1000)
    program = lines_of_ir(200, 19)
    file, _ = traced(lambda sink: lower(sink, program))
    there = open_page(file, "#p=1")
    assert "too large to compare" in there.locator(".tk-what").inner_text()
    assert lines_shown(there, "left")[:10] == program[:10]
    assert there.locator(".tk-row .tk-added, .tk-row .tk-removed").count() == 0
    assert there.locator(".tk-pass[aria-selected=true] .tk-pass-word").inner_text() == "changed"


# --- list, filters, keys ----------------------------------------------------------------------------------------------


def test_case_95_tabs_badges_and_signs_say_and_choose_what_is_listed(open_page, traced):
    file, written = traced(
        lambda sink: lower(sink, lines_of_ir(60, 7)), lambda sink: lower(sink, lines_of_ir(60, 8), fails_at=5)
    )
    there = open_page(file, "#p=1")
    steps = [step for compile in read(written).compiles for step in compile.steps]
    tabs = there.get_by_role("tab").evaluate_all("tabs => tabs.map(tab => tab.firstChild.data)")
    assert tabs == ["All", "tile", "lower", "hidet", "codegen", "run2_tile"]
    rows = there.locator(".tk-pass").all()
    assert [row.locator(".tk-pass-number").inner_text() for row in rows] == [f"{step.index:02}" for step in steps]
    signs = "".join(row.locator(".tk-sign-of").inner_text() for row in rows)
    assert signs == "○●○●○●" + "◆" + "●○" + "◆" + "○●○●○✕"
    added = [step.added for step in steps if step.changed and not step.is_translation]
    assert [int(text) for text in there.locator(".tk-pass .tk-plus").all_inner_texts()] == added
    badges = {
        text.split()[-1]: int(re.sub(r"\D", "", text)) for text in there.locator(".tk-badge:visible").all_inner_texts()
    }
    assert badges == {"steps": 16, "changed": 6, "change": 7, "failed": 1, "codegen": 2}
    there.locator(".tk-badge.tk-is-failed").click()
    assert names(there) == ["tile_pass_5"]
    is_shown(there, 15)  # what is not listed is not shown
    there.keyboard.press("k")
    is_shown(there, 15)
    there.locator(".tk-badge.tk-is-failed").click()
    there.get_by_role("tab", name="Phase hidet").click()
    assert names(there) == ["simplify", "remove_unused"]
    there.locator(".tk-badge.tk-is-same").click()
    assert names(there) == ["remove_unused"]
    # the filter is seen, and holds in another tab
    there.get_by_role("tab", name="Phase tile", exact=True).click()
    assert names(there) == [f"tile_pass_{n}" for n in (0, 2, 4)]
    assert there.locator(".tk-badge.tk-is-same").get_attribute("aria-pressed") == "true"
    there.get_by_role("tab", name="All phases").click()
    there.locator(".tk-badge", has_text="steps").click()
    there.get_by_role("searchbox", name="Filter passes").fill("PASS_5")
    assert names(there) == ["tile_pass_5"] * 2
    there.get_by_role("searchbox", name="Filter passes").fill("")
    there.get_by_role("combobox", name="Kernel", exact=True).select_option("1")
    assert len(names(there)) == 6


def test_case_95_the_side_folds_and_is_dragged(open_page, traced):
    file, _ = traced(lambda sink: lower(sink, lines_of_ir(40, 9)))
    there = open_page(file)

    def width() -> float:
        return there.locator(".tk-side").bounding_box()["width"]

    def drag(pixels: float):
        box = there.locator(".tk-handle").bounding_box()
        there.mouse.move(box["x"] + 3, 400)
        there.mouse.down()
        there.mouse.move(box["x"] + 3 + pixels, 410, steps=3)
        there.mouse.up()

    before = width()
    drag(100)
    assert width() == pytest.approx(before + 100, abs=3)
    drag(2000)
    assert width() == 600
    drag(-2000)
    assert width() == 150
    there.mouse.move(900, 500)
    assert width() == 150  # it was let go
    reload_until(there, "() => document.querySelector('.tk-side').offsetWidth === 150")
    there.get_by_role("button", name="Fold the list away (s)").click()
    assert not there.locator(".tk-side").is_visible()
    there.keyboard.press("s")
    assert there.locator(".tk-side").is_visible()


def test_case_95_both_texts_are_copied_whole(open_page, traced):
    file, written = traced(lambda sink: lower(sink, lines_of_ir(60, 10)))
    there = open_page(file, "#p=3")
    run_ = read(written)
    shown = run_.compiles[0].steps[3]
    for how, text in [
        (lambda: there.get_by_role("button", name="Copy the text before (Y)").click(), shown.before),
        (lambda: there.get_by_role("button", name="Copy the text after (y)").click(), shown.after),
        (lambda: there.keyboard.press("Y"), shown.before),
        (lambda: there.keyboard.press("y"), shown.after),
    ]:
        there.evaluate("() => navigator.clipboard.writeText('')")
        how()
        is_copied(there, run_.text(text))


def test_case_76_95_keys_go_through_passes_phases_and_what_is_folded(open_page, traced):
    file, _ = traced(lambda sink: lower(sink, lines_of_ir(200, 11)))
    there = open_page(file, "#p=1")
    to_passes = [("j", 3), ("j", 5), ("j", 6), ("k", 5), ("J", 6), ("J", 7), ("J", 8), ("K", 7), ("j", 9)]
    to_phases = [("[", 7), ("[", 6), ("]", 7), ("]", 9), ("[", 7), ("[", 6), ("[", 0)]
    for key, number in [*to_passes, *to_phases, ("j", 1)]:
        there.keyboard.press(key)
        is_shown(there, number)
    there.keyboard.press("c")
    assert names(there) == [f"tile_pass_{n}" for n in (1, 3, 5)] + ["generate_ir_module", "simplify", "print_module"]
    there.keyboard.press("J")
    is_shown(there, 3)
    there.keyboard.press("c")
    rows = int(there.get_attribute(".tk-rows", "aria-rowcount"))
    there.keyboard.press("Shift+E")
    assert int(there.get_attribute(".tk-rows", "aria-rowcount")) > 190 > rows
    assert there.locator(".tk-fold").count() == 0
    there.keyboard.press("Shift+E")
    assert int(there.get_attribute(".tk-rows", "aria-rowcount")) == rows
    for key, name in [("u", "One column (u)"), ("b", "Which pass made each line (b)")]:
        was = pressed(there, name)
        there.keyboard.press(key)
        assert pressed(there, name) is not was
    there.keyboard.press("?")
    keys = there.locator(".tk-help kbd").all_inner_texts()
    assert set("jkJKnp[]/cuwrebxya?sE") | {"F7", "Esc"} <= set(keys)
    there.keyboard.press("Escape")
    assert there.locator(".tk-help").count() == 0
    there.keyboard.press("/")
    there.keyboard.type("jkc")  # who types does not walk
    is_shown(there, 3)
    there.keyboard.press("Escape")
    assert there.get_by_role("searchbox", name="Find").input_value() == ""
    # what the browser has on its keys is left to it
    left = """() => { window.kept = []; addEventListener('keydown', e => kept.push(e.defaultPrevented)); }"""
    there.evaluate(left)
    for key in ("Control+j", "Alt+k", "Meta+c"):
        there.keyboard.press(key)
    assert there.evaluate("() => kept.filter(Boolean)") == []
    is_shown(there, 3)


def test_case_76_the_list_is_reached_by_tab_and_says_where_it_is(open_page, traced):
    file, _ = traced(lambda sink: lower(sink, lines_of_ir(60, 12)))
    there = open_page(file, "#p=1")
    reached = []
    for _ in range(40):
        there.keyboard.press("Tab")
        reached.append(there.evaluate("() => document.activeElement.ariaLabel"))
        if reached[-1] == "Passes":
            break
    assert reached[-1] == "Passes"
    there.keyboard.press("ArrowDown")
    is_shown(there, 2)
    there.keyboard.press("ArrowDown")
    is_shown(there, 3)
    active = there.get_attribute(".tk-list", "aria-activedescendant")
    label = there.locator(f"#{active}").get_attribute("aria-label")
    assert re.fullmatch(r"03 tile_pass_3: \d+ lines? added, \d+ removed", label)
    assert there.locator("[role=status].tk-spoken").inner_text() == label


STOP = r"""() => {
    const at = document.activeElement;
    if (at === document.body) return null;
    // a sign or a mark says nothing, and a tab counts
    const isSaid = at.matches('button:not([role=tab])') && /^[●○✕◆]?\w/.test(at.textContent);
    return {
        name: at.ariaLabel,
        said: isSaid ? at.textContent.replace(/^\W/, '') : '',
        hidden: !at.checkVisibility() || at.closest('[aria-hidden=true]') !== null,
    };
}"""


def test_every_stop_of_tab_is_seen_and_goes_by_what_stands_on_it(open_page, traced):
    file, _ = traced(lambda sink: lower(sink, [f"{line}  # {'wide ' * 60}" for line in lines_of_ir(60, 13)]))
    there = open_page(file, "#p=3")
    stops = []
    while len(stops) < 60:
        there.keyboard.press("Tab")
        stop = there.evaluate(STOP)
        if stop is None:
            break
        stops.append(stop)
    names_ = [stop["name"] for stop in stops]
    assert len(stops) > 20
    assert all(names_), names_
    assert [stop for stop in stops if stop["hidden"]] == []
    assert [stop for stop in stops if stop["said"].lower() not in stop["name"].lower()] == []
    # one stop for all phases, whose tabs are gone through by the arrows
    assert [name for name in names_ if name.startswith(("All phases", "Phase "))] == ["All phases"]
    there.get_by_role("tab", name="All phases").focus()
    there.keyboard.press("ArrowRight")
    assert there.evaluate("() => document.activeElement.ariaLabel") == "Phase tile"
    there.keyboard.press("Enter")
    assert there.get_by_role("tab", name="Phase tile").get_attribute("aria-selected") == "true"


def test_the_line_that_the_keyboard_is_at_is_said_to_who_listens(open_page, traced):
    file, _ = traced(lambda sink: lower(sink, lines_of_ir(60, 14)))
    there = open_page(file, "#p=3")
    there.focus(".tk-rows")
    assert there.get_attribute(".tk-rows", "aria-activedescendant") is None
    for _ in range(2):
        there.keyboard.press("ArrowDown")
        active = there.get_attribute(".tk-rows", "aria-activedescendant")
        assert there.locator(".tk-row[data-cursor]").get_attribute("id") == active


def test_case_66_two_hundred_passes_of_three_thousand_lines_stay_light(open_page, traced):
    def long(sink):
        for number, (before, after) in enumerate(pipeline(200, 3000, 13)):
            take(sink, Stage.TILE, f"pass_{number}", before, after)
        sink.done(None)

    file, _ = traced(long)
    assert file.stat().st_size <= 1_000_000
    there = open_page(file, "#p=1")
    nodes = "() => document.querySelectorAll('*').length"
    most = there.evaluate(nodes)
    for key in ("J", "J", "K", "j", "j", "b", "E", "End", "u"):
        there.keyboard.press(key)
        most = max(most, there.evaluate(nodes))
    there.evaluate("() => { document.querySelector('.tk-list').scrollTop = 1e6; }")
    there.locator(".tk-pass", has_text="pass_199").click()
    is_shown(there, 199)
    assert max(most, there.evaluate(nodes)) <= 5000


# --- queries ----------------------------------------------------------------------------------------------------------


def test_case_78_any_two_passes_are_compared_as_python_compares_them(open_page, traced):
    file, written = traced(lambda sink: lower(sink, lines_of_ir(300, 14), passes=20))
    run_ = read(written)
    steps = run_.compiles[0].steps
    there = open_page(file, "#p=3")
    there.keyboard.press("x")
    there.locator(".tk-pass", has_text="tile_pass_17").click()
    is_shown(there, 17)
    there.get_by_role("button", name="Compare with 03: 03 tile_pass_3 (x)").click()
    before, after = run_.lines(steps[3].after), run_.lines(steps[17].after)
    assert balance(there) == textdiff.counts(before, after)
    there.keyboard.press("Shift+E")
    assert set(lines_shown(there, "left")) <= set(before)
    assert set(lines_shown(there, "right")) <= set(after)
    assert there.locator(".tk-what").inner_text() == "compared with 03 tile_pass_3"
    again = open_page(file, fragment(there))
    assert balance(again) == balance(there)
    there.keyboard.press("Escape")
    assert balance(there) == textdiff.counts(run_.lines(steps[17].before), after)


def other(sink, program: list[str]):
    """Like `lower`, but for a pass that is not there, another one, and what comes of that."""
    one = Program("\n".join(program))
    take(sink, Stage.TILE, "tile_pass_0", one, one)
    two = Program("\n".join(changed(program, 0.05, random.Random(1))))
    take(sink, Stage.TILE, "tile_pass_1", one, two)
    take(sink, Stage.TILE, "my_pass", two, two)
    three = Program(f"{two.text}\nanother_line()")
    take(sink, Stage.TILE, "tile_pass_3", two, three)
    sink.done(None)


def test_case_78_two_runs_stand_beside_each_other_and_part_where_python_says(open_page, traced, tmp_path):
    program = lines_of_ir(60, 15)
    _, one = traced(lambda sink: lower(sink, program, passes=4))
    _, two = traced(lambda sink: other(sink, program))
    both = tmp_path / "both.html"
    both.write_bytes(page.render([one.read_text(), two.read_text()], "both"))
    there = open_page(both)
    there.get_by_role("combobox", name="Compare with another kernel").select_option("1")
    pairs = queries.beside(read(one).compiles[0], read(two).compiles[0])
    shown = there.locator(".tk-pair").all()
    assert [row.locator(".tk-pass-name").inner_text() for row in shown] == [pair.step.title for pair in pairs]
    parting = queries.first_difference(pairs)
    assert parting is not None
    for row, pair in zip(shown, pairs, strict=True):
        word = "only in B" if pair.a is None else "only in A" if pair.b is None else "results differ"
        expected = "same result" if pair.is_same else "parts here" if pair is parting else word
        assert row.locator(".tk-pass-word").inner_text() == expected
    assert there.locator(".tk-pair[aria-selected=true] .tk-pass-name").inner_text() == parting.step.title
    there.keyboard.press("j")
    there.keyboard.press("j")
    there.locator(".tk-card button", has_text=parting.step.title).click()
    assert there.locator(".tk-pair[aria-selected=true] .tk-pass-name").inner_text() == parting.step.title
    assert "ab=0.1" in fragment(there)
    # all that is listed is what can be compared, and what is copied is what is shown
    assert not there.locator(".tk-badge:visible, .tk-tab:visible").count()
    assert parting.a is not None
    there.keyboard.press("Y")
    is_copied(there, read(one).text(parting.a.after))
    there.keyboard.press("Escape")
    assert there.locator(".tk-pair").count() == 0


def test_case_79_find_names_the_first_and_the_last_pass_as_python_does(open_page, traced):
    file, written = traced(lambda sink: lower(sink, lines_of_ir(60, 16)))
    run_ = read(written)
    compile = run_.compiles[0]
    there = open_page(file)
    lines = {line.strip() for step in compile.steps for line in run_.lines(step.after)}
    wanted = [*random.sample(sorted(lines), 6), "Let[", "NOWHERE AT ALL"]
    for needle in wanted:
        there.keyboard.press("/")
        there.keyboard.press("Control+a")
        there.keyboard.insert_text(needle)
        found = queries.find(run_, compile, needle)
        if not found:
            assert there.locator(".tk-strip").inner_text() == "in no pass"
            continue
        named = [f"{step.index:02} {step.title}" for step in (found.first, found.last, found.gone) if step is not None]
        assert there.locator(".tk-strip button").all_inner_texts() == named
        holders = {step.title for step in found.holders}
        assert set(there.locator(".tk-holder .tk-pass-name").all_inner_texts()) == holders
        if found.first is not None:
            there.locator(".tk-strip button").first.click()
            is_shown(there, found.first.index)
            hits = sum(needle.lower() in line.lower() for line in run_.lines(found.first.after))
            assert re.fullmatch(r"1 of \d+", there.locator(".tk-hits").inner_text())
            assert int(there.locator(".tk-hits").inner_text().split()[-1]) >= hits
            assert there.locator(".tk-row mark.tk-hit").first.inner_text().lower() == needle.lower()


def test_case_79_blame_names_for_each_line_the_pass_that_python_names(open_page, traced):
    file, written = traced(lambda sink: lower(sink, lines_of_ir(24, 17), passes=10))
    run_ = read(written)
    compile = run_.compiles[0]
    blame = queries.Blame(run_, compile)
    there = open_page(file, "#p=9&b=1")
    for shown in compile.steps[9:11]:
        is_shown(there, shown.index)
        there.keyboard.press("Shift+E")
        told = filter(None, there.locator(".tk-note").all_inner_texts())
        expected = [f"{origin.index:02} {origin.title}" for origin in blame.of(shown) if origin is not None]
        assert sorted(told) == sorted(expected)
        there.keyboard.press("J")
    there.keyboard.press("K")
    there.keyboard.press("K")
    is_shown(there, 9)
    there.keyboard.press("Shift+E")
    origin = next(origin for origin in blame.of(compile.steps[9]) if origin is not None and origin.index < 9)
    there.locator(".tk-note", has_text=f"{origin.index:02} {origin.title}").first.click()
    is_shown(there, origin.index)


def test_case_80_an_address_opens_the_view_that_it_was_copied_from(open_page, traced):
    file, _ = traced(lambda sink: lower(sink, lines_of_ir(100, 18), passes=20))
    there = open_page(file, "#p=17&l=42")
    is_shown(there, 17)
    assert there.locator(".tk-row[data-cursor=right] .tk-number[data-side=right]").inner_text() == "42"
    assert fragment(there) == "#p=17&l=42"
    there.keyboard.press("u")
    there.keyboard.press("b")
    there.get_by_role("tab", name="Phase tile").click()
    there.keyboard.press("/")
    there.keyboard.insert_text("f16[16")
    again = open_page(file, fragment(there))
    assert fragment(again) == fragment(there)
    for view in (".tk-current", ".tk-hits", ".tk-strip", ".tk-list", ".tk-row[data-cursor]"):
        assert again.locator(view).inner_text() == there.locator(view).inner_text()
    assert pressed(again, "One column (u)")
    # an address that is typed into an open page is followed
    again.evaluate("() => { location.hash = 'p=3'; }")
    is_shown(again, 3)
    assert not pressed(again, "One column (u)")
