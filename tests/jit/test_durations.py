# SPDX-License-Identifier: Apache-2.0
"""Times as people read them."""

from tilekit.jit import durations


def test_what_was_measured_has_three_digits():
    assert [durations.measured(s) for s in (0.0, 3.9e-6, 18.84e-6, 253.6e-6, 0.0016, 2.5)] == [
        "0.00 µs", "3.90 µs", "18.8 µs", "254 µs", "1.60 ms", "2.50 s"
    ]  # fmt: skip


def test_a_span_is_in_the_unit_of_its_median():
    assert durations.between(0.8e-3, 1.2e-3, 1.0e-3) == "0.80–1.20 ms"


def test_what_is_left_is_in_whole_units():
    assert [durations.left(s) for s in (0.4, 99.0, 150.0)] == ["0 s", "99 s", "2 min"]
