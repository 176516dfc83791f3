# SPDX-License-Identifier: Apache-2.0
import pytest

from tests import filecheck
from tilekit.ir.prog import Program

TEXT = "first\nsecond\nthird\nfourth"

CASE = """\
# RUN: rename, rename
# CHECK: def again
# CHECK-NEXT: sync()
# CHECK-NOT: sync
@kernel(
    grid=[i32(1), i32(1), i32(1)],
    warps=1,
)
def once():
    sync()
# RUN: rename
# CHECK: def again
@kernel(
    grid=[i32(1), i32(1), i32(1)],
    warps=1,
)
def once():
    pass
"""


def test_checks_pass_in_order():
    filecheck.check(TEXT, ["first", ("CHECK-NEXT", "sec"), ("CHECK-NOT", "second"), "fourth", ("CHECK-NOT", "first")])


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        (["second", "first"], "CHECK: first\nis not in what comes after line 2:"),
        (["first", ("CHECK-NEXT", "third")], "CHECK-NEXT: third\nis not in what comes after line 1:"),
        (["first", ("CHECK-NOT", "third"), "fourth"], "CHECK-NOT: third\nbut it is in line 3:"),
        ([("CHECK-NOT", "four")], "CHECK-NOT: four\nbut it is in line 4:"),
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
    (tmp_path / "two.tile").write_text(CASE)
    first, second = filecheck.cases(tmp_path)
    assert (str(first), first.passes, str(second)) == ("two-1", ("rename", "rename"), "two-2")
    first.run({"rename": rename})
    second.run({"rename": rename})


def test_case_that_checks_nothing_is_refused(tmp_path):
    (tmp_path / "empty.tile").write_text("# RUN: rename\n")
    with pytest.raises(AssertionError, match="the case in line 1 checks nothing"):
        filecheck.cases(tmp_path)
