# SPDX-License-Identifier: Apache-2.0
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from tilekit.ir.layout import digits
from tilekit.ir.layout.digits import Digit, Replica

few = settings(max_examples=100, deadline=None)


def place_lists():
    extents = st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=4)
    return extents.map(lambda each: [Digit(dim, 1, extent) for dim, extent in enumerate(each)])


def test_digit_is_split_where_the_cuts_divide_it():
    assert digits.split(Digit(0, 2, 12), [1, 4, 12, 24, 48]) == (Digit(0, 12, 2), Digit(0, 4, 3), Digit(0, 2, 2))
    assert digits.split(Digit(0, 2, 12), []) == (Digit(0, 2, 12),)
    assert digits.split(Digit(0, 2, 12), [4, 6]) is None
    assert digits.split(Digit(0, 2, 12), [3]) is None


@few
@given(place_lists(), st.integers(1, 24), st.integers(1, 24))
def test_reading_a_number_reads_its_digits(places, weight, extent):
    readings = digits.read(places, weight, extent)
    size = digits.extent_of(places)
    if readings is None:
        return
    assert math.prod(e for _, _, e in readings) == extent
    for number in range(size):
        value = {place: number // w % place.extent for place, w in digits.weighted(places)}
        found = 0
        for place, stride, e in readings:
            found = found * e + value[place] // stride % e
        assert found == number // weight % extent


def test_what_is_no_digit_of_the_places_is_not_read():
    places = [Digit(0, 1, 2), Digit(1, 1, 3)]
    assert digits.read(places, 2, 3) is None
    assert digits.read(places, 1, 12) is None
    assert digits.read(places, 3, 2) == [(Digit(0, 1, 2), 1, 2)]
    assert digits.read(places, 1, 6) == [(Digit(0, 1, 2), 1, 2), (Digit(1, 1, 3), 1, 3)]


def test_places_fuse_only_where_they_continue_one_another():
    assert digits.merged([Digit(0, 4, 2), Digit(0, 1, 4)]) == (Digit(0, 1, 8),)
    assert digits.merged([Digit(0, 1, 4), Digit(0, 4, 2)]) == (Digit(0, 1, 4), Digit(0, 4, 2))
    assert digits.merged([Digit(0, 4, 2), Digit(1, 1, 4)]) == (Digit(0, 4, 2), Digit(1, 1, 4))
    assert digits.merged([Replica(2), Digit(0, 1, 1), Replica(3)]) == (Replica(6),)
