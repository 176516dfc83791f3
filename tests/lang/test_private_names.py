# SPDX-License-Identifier: Apache-2.0
"""Names that begin with two underscores are private to their class, in a kernel as everywhere in Python."""

import pytest
import torch

from tests.lang.cells import cell

CELL = """
class {name}(tilus.Script):
    def __init__(self):
        super().__init__()
        self.__factor = 3

    def __scaled(self, x: RegisterTensor, __by: int32):
        __product = x * __by
        return __product * self.__factor

    def __call__(self, __n: int32, x: ~int32, y: ~int32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        gx = self.global_view(x, dtype=int32, shape=[__n])
        gy = self.global_view(y, dtype=int32, shape=[__n])
        __tile = self.__scaled(self.load_global(gx, offsets=[0], shape=[64]), __n)
        for __i in range(__n):
            __tile += 1
        self.store_global(gy, __tile, offsets=[0])
"""


@pytest.mark.parametrize("name", ["Kernel", "__Kernel", "___"])
def test_private_names_are_found(name):
    x, y = torch.randint(-99, 99, (2, 50), dtype=torch.int32)
    cell(CELL.format(name=name))[name]()(50, x, y)
    assert torch.equal(y, x * 150 + 50)


def test_a_class_inside_of_another_one_has_its_own():
    cell_of = "class Outer:\n" + "\n".join(f"    {line}" for line in CELL.format(name="Inner").splitlines())
    x, y = torch.randint(-99, 99, (2, 50), dtype=torch.int32)
    cell(cell_of)["Outer"].Inner()(50, x, y)
    assert torch.equal(y, x * 150 + 50)


def test_a_class_of_objects_has_its_own():
    text = """
    class Ring(tilus.Class):
        def __init__(self):
            super().__init__()
            self.__stage: int32 = 0

        def __moved(self, by: int32):
            self.__stage += by
            return self.__stage

        def turn(self, by: int32):
            return self.__moved(by)

    class Kernel(tilus.Script):
        def __call__(self, n: int32, y: ~int32):
            self.attrs.blocks = [1]
            self.attrs.warps = 1
            ring = Ring()
            for i in range(n):
                ring.turn(i)
            self.__last = ring.turn(100)
            gy = self.global_view(y, dtype=int32, shape=[8])
            self.store_global(gy, self.register_tensor(dtype=int32, shape=[8], init=self.__last), offsets=[0])
    """
    y = torch.zeros(8, dtype=torch.int32)
    cell(text)["Kernel"]()(5, y)
    assert (y == 110).all()
