# SPDX-License-Identifier: Apache-2.0
import pytest

from tests import filecheck
from tilekit.ir.prog import Program

TEXT = "first\nsecond\nthird\nfourth"

CASES = """\
# RUN: rename, rename
# CHECK: def again
# CHECK-NEXT: sync()
# CHECK-NOT: sync
@kernel(grid=[i32(1), i32(1), i32(1)], warps=1)
def once():
    sync()

# RUN: rename
# note: a comment in words is no directive
# CHECK: def again
@kernel(grid=[i32(1), i32(1), i32(1)], warps=1)
def once():
    pass
"""


def test_checks_pass_in_order():
    filecheck.check(TEXT, ["first", ("CHECK-NEXT", "sec"), ("CHECK-NOT", "second"), "fourth", ("CHECK-NOT", "first")])
    filecheck.check("  first\n second", [("CHECK-LINE", "first"), ("CHECK-NEXT-LINE", "second")])


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        (["second", "first"], "CHECK: first\nis not in what comes after line 2:"),
        (["first", "first"], "CHECK: first\nis not in what comes after line 1:"),
        (["first", ("CHECK-NEXT", "third")], "CHECK-NEXT: third\nis not in what comes after line 1:"),
        (["first", ("CHECK-NOT", "third"), "fourth"], "CHECK-NOT: third\nbut it is in line 3:"),
        ([("CHECK-NOT", "four")], "CHECK-NOT: four\nbut it is in line 4:"),
        ([("CHECK-LINE", "secon")], "CHECK-LINE: secon\nis not in what comes after line 0:"),
        (["first", ("CHECK-NEXT-LINE", "third")], "CHECK-NEXT-LINE: third\nis not in what comes after line 1:"),
        (["first", ("CHECK-NEXT-LINE", "secon")], "CHECK-NEXT-LINE: secon\nis not in what comes after line 1:"),
        (["fourth", ("CHECK-NEXT", "x")], "CHECK-NEXT: x\nis not in what comes after line 4:"),
    ],
)
def test_failing_check_says_what_is_missing_where(expected, message):
    with pytest.raises(AssertionError) as failure:
        filecheck.check(TEXT, expected)
    assert str(failure.value).startswith(message)


def rename(prog: Program) -> Program:
    return Program.create({"again": prog.function.replace(name="again")})


def test_cases_of_a_file_run_their_passes(tmp_path):
    (tmp_path / "two.tile").write_text(CASES)
    first, second = filecheck.cases(tmp_path)
    assert (str(first), first.passes, str(second)) == ("two-1", ("rename", "rename"), "two-2")
    first.run({"rename": rename})
    second.run({"rename": rename})


def test_an_unknown_pass_is_named_with_the_nearest_one():
    first, _ = filecheck.cases_of("two", CASES)
    with pytest.raises(AssertionError, match=r"^two-1: there is no pass 'rename', did you mean 'renames'"):
        first.run({"renames": rename})
    with pytest.raises(AssertionError, match=r"^two-1: there is no pass 'rename'; there are fold, spill"):
        first.run({"fold": rename, "spill": rename})


@pytest.mark.parametrize(
    ("mistyped", "meant"),
    [
        ("# CHEKC: x", "CHECK"),
        ("# CHECKNEXT: x", "CHECK-NEXT"),
        ("# check-not: x", "CHECK-NOT"),
        ("    # CHECK-SAME: x", "CHECK-LINE"),
        ("# CHECK x", "CHECK"),
        ("#CHECK: x", "CHECK"),
        ("# CHECK : x", "CHECK"),
        ("# CHECK:x", "CHECK"),
        ("# CHECK-NOT:", "CHECK-NOT"),
        ("# RUNS: rename", "RUN"),
    ],
)
def test_a_mistyped_directive_is_an_error(mistyped, meant):
    with pytest.raises(AssertionError) as failure:
        list(filecheck.cases_of("two", f"# RUN: rename\n{mistyped}\n"))
    assert str(failure.value) == f"two: line 2 is no directive, write `# {meant}: text`: {mistyped.strip()}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# RUN: rename\n", "the case in line 1 checks nothing"),
        ("# CHECK: x\n# RUN: rename\n", "a file begins with a line `# RUN: pass, pass`"),
        ("sync()\n", "a file begins with a line `# RUN: pass, pass`"),
    ],
)
def test_a_file_without_passes_or_checks_is_refused(text, message):
    with pytest.raises(AssertionError) as failure:
        list(filecheck.cases_of("two", text))
    assert str(failure.value) == f"two: {message}"
