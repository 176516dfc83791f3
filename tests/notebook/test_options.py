# SPDX-License-Identifier: Apache-2.0
"""The options on the `%%tilus` line."""

import pytest

from tilekit import float16, target
from tilekit.diag import TilekitError
from tilekit.jit.spec import TensorSpec
from tilekit.notebook import options


def refusal(line: str) -> tuple[str, str, str | None]:
    """What is said, the part of the line it points at, and the help."""
    with pytest.raises(TilekitError) as caught:
        options.parse(line)
    found = caught.value.diagnostic
    return found.message, line[found.at.col : found.at.end_col], found.help


def test_a_bare_line_chooses_nothing():
    assert options.parse("%%tilus") == options.Options()


def test_a_target_is_chosen_by_name():
    assert options.parse("%%tilus --target sm_80").target is target.parse("sm_80")
    assert options.parse("%%tilus --target=sm_90a").target is target.parse("sm_90a")


@pytest.mark.parametrize(
    "line",
    [
        '%%tilus --args "8192, f16[8192,8192]"',
        "%%tilus --args '8192, f16[8192, 8192]'",
        '%%tilus --args="8192, float16[8192,8192]"',
        "%%tilus --args 8192,f16[8192,8192]",
    ],
)
def test_arguments_are_numbers_and_tensors(line):
    assert options.parse(line).args == (8192, TensorSpec(float16, (8192, 8192)))


def test_arguments_may_be_anything_that_a_kernel_takes():
    assert options.parse("""%%tilus --args '-1, 0.5, True, "nearest", f16[]'""").args == (
        -1, 0.5, True, "nearest", TensorSpec(float16, ())
    )  # fmt: skip
    assert options.parse("%%tilus --args ''").args == ()


def test_options_come_in_any_order():
    chosen = options.parse('%%tilus --args "1" --help --target sm_89')
    assert (chosen.args, chosen.help, chosen.target) == ((1,), True, target.parse("sm_89"))


def test_a_cell_may_ask_for_check_mode():
    assert options.parse("%%tilus --check").check
    assert not options.parse("%%tilus --help").check


def test_a_cell_may_ask_to_be_measured():
    line = "%%tilus --check --bench"
    at = options.parse(line).bench_at
    assert line[at.col : at.end_col] == "--bench" and options.parse("%%tilus --check").bench_at is None


def test_every_option_is_in_the_help():
    assert all(name in options.HELP for name in options.NAMES)


@pytest.mark.parametrize(
    "line, message, at, help",
    [
        ("%%tilus --traget sm_80", "%%tilus has no option --traget", "--traget", "did you mean --target?"),
        ("%%tilus --name x", "%%tilus has no option --name", "--name", "%%tilus --help lists the options"),
        ("%%tilus sm_80", "%%tilus has no option sm_80", "sm_80", "%%tilus --help lists the options"),
        ("%%tilus --target", "--target needs the name of a target, such as sm_90a", "--target", None),
        ("%%tilus --target --help", "--target needs the name of a target, such as sm_90a", "--target", None),
        ("%%tilus --target sm_91", "there is no target 'sm_91'", "sm_91", "did you mean sm_90?"),
        ("%%tilus --target {t}", "there is no target '{t}'", "{t}", None),
        ('%%tilus --args "1, f16[2', "a quote is not closed", '"1, f16[2', None),
        ("%%tilus --args f61[2]", "there is no type 'f61'", "f61[2]", "did you mean f16?"),
        ("%%tilus --args f16[n]", "the shape in 'f16[n]' must be numbers", "f16[n]", None),
        ("%%tilus --args n", "'n' is neither a number nor dtype[shape]", "n", None)
    ],
)  # fmt: skip
def test_a_wrong_line_is_refused_at_its_word(line, message, at, help):
    said, where, advice = refusal(line)
    assert (said, where) == (message, at)
    if help is not None:
        assert advice == help
