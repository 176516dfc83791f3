# SPDX-License-Identifier: Apache-2.0
"""Regions lie where they catch errors, and their memory is used again."""

import mmap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilekit.cpusim.memory import ALIGNMENT, Memory


@given(nbytes=st.integers(0, 3 * mmap.PAGESIZE), address=st.integers(0, 2**40))
def test_a_region_ends_at_its_guard_page_as_far_as_alignment_allows(nbytes, address):
    memory = Memory()
    region = memory.allocate(nbytes, address)
    assert region.begin % ALIGNMENT == address % ALIGNMENT
    assert 0 <= region.mapped - region.begin - nbytes < ALIGNMENT
    assert region.mapped % mmap.PAGESIZE == 0
    assert region.mapped <= region.file.size
    assert len(region.view) == nbytes
    memory.release(region)
    memory.close()


def test_a_released_region_is_used_again():
    memory = Memory()
    first = memory.allocate(10_000)
    first.view[:4] = b"data"
    memory.release(first)
    again = memory.allocate(10_000)
    assert again.file is first.file
    other = memory.allocate(10_000)
    assert other.file is not first.file


def test_a_much_larger_file_is_not_wasted_on_a_small_region():
    memory = Memory()
    large = memory.allocate(1 << 20)
    memory.release(large)
    assert memory.allocate(4096).file is not large.file


def test_idle_memory_is_bounded_and_what_is_open_is_told():
    memory = Memory(idle_limit=10 * mmap.PAGESIZE)
    regions = [memory.allocate(4 * mmap.PAGESIZE) for _ in range(4)]
    for region in regions:
        memory.release(region)
    assert memory.open == {region.file.number for region in regions[2:]}
    memory.close()
    assert memory.open == set()


def test_more_memory_than_there_is_raises_memory_error():
    with pytest.raises(MemoryError, match="shared with the CPU simulator"):
        Memory().allocate(1 << 60)
