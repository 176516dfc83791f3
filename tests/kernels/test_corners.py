# SPDX-License-Identifier: Apache-2.0
"""Kernels at the corners of the language, on every machine."""

import math

import pytest
import torch

import tilekit as tilus
from tests.kernels.machines import EVERYWHERE, evaluate
from tests.lang.cells import cell
from tilekit import boolean, float32, float64, int8, int32, int64, uint8, uint16, uint32, uint64, void_p
from tilekit.diag import CodegenError, KernelError, LanguageError
from tilekit.utils import cdiv

on_every_machine = pytest.mark.parametrize("run", EVERYWHERE)


class Nothing(tilus.Script):
    def __call__(self):
        self.attrs.blocks = [1]
        self.attrs.warps = 1


def test_a_kernel_may_take_nothing_and_do_nothing():
    Nothing()()


class Fill(tilus.Script):
    def __call__(self, blocks: int32, n: int32, y: ~float32):
        self.attrs.blocks = [blocks]
        self.attrs.warps = 2
        gy = self.global_view(y, dtype=float32, shape=[n])
        self.store_global(gy, self.register_tensor(dtype=float32, shape=[64], init=1.0), offsets=[0])


@on_every_machine
@pytest.mark.parametrize(("blocks", "n"), [(0, 10), (1, 0)])
def test_a_grid_without_blocks_and_a_tensor_without_elements_change_nothing(run, blocks, n):
    y = torch.full((10,), 7.0)
    run(Fill(), (blocks, n, y))
    assert (y == 7).all()


def constant_kernel(dtype):
    class Constant(tilus.Script):
        def __call__(self, value: dtype, y: ~dtype):
            self.attrs.blocks = [1]
            self.attrs.warps = 1
            gy = self.global_view(y, dtype=dtype, shape=[3])
            self.store_global(gy, self.register_tensor(dtype=dtype, shape=[4], init=value), offsets=[0])

    return Constant()


@on_every_machine
@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (float64, 0.1),
        (float32, 0.1),
        (float32, math.inf),
        (float32, math.nan),
        (float32, -0.0),
        (int64, 2**40 + 3),
        (uint64, 2**63 + 5),
        (int8, -128),
        (boolean, True),
    ],
    ids=str,
)
def test_a_number_arrives_as_it_is_given(run, dtype, value):
    theirs = getattr(torch, str(dtype))
    y = torch.zeros(3, dtype=theirs)
    run(constant_kernel(dtype), (value, y))
    assert y.numpy().tobytes() == torch.tensor([value] * 3, dtype=theirs).numpy().tobytes()


class Raw(tilus.Script):
    """Reads bytes as float32 and overwrites them as int32."""

    def __call__(self, n: int32, p: void_p):
        self.attrs.blocks = [1]
        self.attrs.warps = 2
        x = self.load_global(self.global_view(p, dtype=float32, shape=[n]), offsets=[0], shape=[128])
        self.sync()
        self.store_global(self.global_view(p, dtype=int32, shape=[n]), x.to(int32), offsets=[0])


@on_every_machine
def test_a_raw_pointer_is_seen_as_any_type(run):
    x = 1000 * torch.randn(128)
    expected = torch.cat([x[:112].int().view(torch.float32), x[112:]])
    run(Raw(), (112, x))
    assert torch.equal(x.view(torch.int32), expected.view(torch.int32))


def test_an_aligned_raw_pointer_is_read_in_vectors():
    kernel = Raw().compile(112, tilus.spec(float32, (128,))).kernels[0]
    assert "tk::load_global_or_zero_8(" in kernel.source or "tk::load_global_8(" in kernel.source


BLOCKS = """
class Blocks(tilus.Script):
    def __call__(self, n: int32, y: ~int32):
        self.attrs.blocks = [{blocks}]
        self.attrs.warps = 1
        gy = self.global_view(y, dtype=int32, shape=[100])
        self.store_global(gy, self.register_tensor(dtype=int32, shape=[1], init=1), offsets=[self.blockIdx.x])
"""


@on_every_machine
@pytest.mark.parametrize(
    "blocks", ["n >> 3", "n << 1", "n & 7", "n & -8", "abs(n - 60)", "min(n, 3) + max(n - 40, 1)", "7 if n > 50 else 2"]
)
def test_a_grid_is_whole_number_arithmetic(run, blocks):
    n = int(torch.randint(0, 50, ()))
    y = torch.zeros(100, dtype=torch.int32)
    run(cell(BLOCKS.format(blocks=blocks))["Blocks"](), (n, y))
    assert int(y.sum()) == eval(blocks)


def test_a_grid_that_cannot_be_computed_before_a_launch_is_an_error_at_its_line():
    kernel = cell(BLOCKS.format(blocks="int(float32(n) * 0.5)"))["Blocks"]()
    with pytest.raises(LanguageError, match=r"TK214 in Blocks.__call__, Cell In\[\d+\], line 3: Cast on int32 "):
        kernel(3, torch.zeros(100, dtype=torch.int32))


def counting(dtype):
    class Counting(tilus.Script):
        """Adds up what ranges of a narrow type give."""

        def __call__(self, low: dtype, high: dtype, y: ~int32):
            self.attrs.blocks = [1]
            self.attrs.warps = 1
            total = self.register_tensor(dtype=int32, shape=[3], init=0)
            for i in range(low, high):
                total += 1000 + i
            for i in range(low, high, 7):
                total = total * 3 + i
            for i in range(high, low, -100):
                total = total * 5 + i
            self.store_global(self.global_view(y, dtype=int32, shape=[3]), total, offsets=[0])

    return Counting()


@on_every_machine
@pytest.mark.parametrize(("dtype", "low", "high"), [(int8, -128, 127), (uint8, 0, 255), (uint8, 9, 7)], ids=str)
def test_a_range_of_narrow_numbers_goes_round_as_in_python(run, dtype, low, high):
    y = torch.zeros(3, dtype=torch.int32)
    run(counting(dtype), (low, high, y))
    total = sum(1000 + i for i in range(low, high))
    for i in range(low, high, 7):
        total = total * 3 + i
    for i in range(high, low, -100):
        total = total * 5 + i
    assert y.tolist() == [torch.tensor(total % 2**32).to(torch.int32).item()] * 3


def guarded_division(dtype):
    class Divide(tilus.Script):
        """x // y and x % y, where y is not 0; also in lanes outside of the tensors, where it is."""

        def __call__(self, n: int32, x: ~dtype, y: ~dtype, z: ~dtype):
            self.attrs.blocks = [1]
            self.attrs.warps = 2
            gz = self.global_view(z, dtype=dtype, shape=[3, n])
            a = self.load_global(self.global_view(x, dtype=dtype, shape=[n]), offsets=[0], shape=[64])
            b = self.load_global(self.global_view(y, dtype=dtype, shape=[n]), offsets=[0], shape=[64])
            quotient, remainder = self.where(b == 0, 1, a // b), self.where(b == 0, 2, a % b)
            self.store_global(gz, quotient, offsets=[0, 0], dims=[1])
            self.store_global(gz, remainder, offsets=[1, 0], dims=[1])
            self.store_global(gz, quotient * 0 + self.max(quotient, dim=0), offsets=[2, 0], dims=[1])

    return Divide()


@on_every_machine
@pytest.mark.parametrize("dtype", [int32, uint8, int8, int64], ids=str)
def test_division_by_zero_can_be_guarded_against(run, dtype):
    theirs = getattr(torch, str(dtype))
    x, y = torch.randint(0, 100, (2, 50)).to(theirs)
    y[::7] = 0
    z = torch.zeros(3, 50, dtype=theirs)
    run(guarded_division(dtype), (50, x, y, z))
    safe = torch.where(y == 0, 1, y)
    quotient = torch.where(y == 0, 1, x // safe)
    assert torch.equal(z, torch.stack([quotient, torch.where(y == 0, 2, x % safe), quotient.max().expand(50)]))


class Overflow(tilus.Script):
    """Numbers that leave their range on the way to what a compiler could have concluded if they did not."""

    def __call__(self, n: int32, x: ~int32, y: ~int64, z: ~int64, p: ~uint16, q: ~uint16):
        self.attrs.blocks = [1]
        self.attrs.warps = 2
        a = self.load_global(self.global_view(x, dtype=int32, shape=[n]), offsets=[0], shape=[64])
        b = self.load_global(self.global_view(y, dtype=int64, shape=[n]), offsets=[0], shape=[64])
        c = self.load_global(self.global_view(p, dtype=uint16, shape=[n]), offsets=[0], shape=[64])
        gz = self.global_view(z, dtype=int64, shape=[6, n])
        self.store_global(gz, (self.square(a) // 7).to(int64), offsets=[0, 0], dims=[1])
        self.store_global(gz, (a + 1 > a).to(int64), offsets=[1, 0], dims=[1])
        self.store_global(gz, (a * 3 // 3).to(int64), offsets=[2, 0], dims=[1])
        self.store_global(gz, (b + b).to(boolean).to(int64), offsets=[3, 0], dims=[1])
        self.store_global(gz, (-b < 0).to(int64), offsets=[4, 0], dims=[1])
        self.store_global(gz, (a - 2000000000).to(int64), offsets=[5, 0], dims=[1])
        self.store_global(self.global_view(q, dtype=uint16, shape=[n]), c * c // 5, offsets=[0])


@on_every_machine
def test_what_overflows_in_a_tile_wraps(run):
    x = torch.randint(-(2**31), 2**31, (50,), dtype=torch.int32)
    y = torch.randint(-(2**63), 2**63 - 1, (50,), dtype=torch.int64)
    x[7], y[3], y[5] = 2**31 - 1, -(2**63), 0
    p, q = (torch.randint(0, 2**16, (50,), dtype=torch.int32).to(torch.uint16) for _ in range(2))
    z = torch.zeros(6, 50, dtype=torch.int64)
    run(Overflow(), (50, x, y, z, p, q))
    expected = [x * x // 7, x + 1 > x, x * 3 // 3, y + y != 0, -y < 0, x - 2000000000]
    assert torch.equal(z, torch.stack([row.long() for row in expected]))
    assert torch.equal(q.int(), (p.int().long() ** 2 % 2**16 // 5).int())


def sized(dtype):
    class Sized(tilus.Script):
        def __call__(self, n: dtype, y: ~int32):
            self.attrs.blocks = [cdiv(n, 32)]
            self.attrs.warps = 1
            gy = self.global_view(y, dtype=int32, shape=[2, n], strides=[n + 1, 1])
            at = self.blockIdx.x * 32
            tile = self.register_tensor(dtype=int32, shape=[2, 32], init=lambda i, j: 100 * i + at + j)
            self.store_global(gy, tile, offsets=[0, at])

    return Sized()


@on_every_machine
@pytest.mark.parametrize("dtype", [int8, uint8, uint16, int32, uint32, int64, uint64], ids=str)
def test_a_size_may_be_of_any_integer_type(run, dtype):
    y = torch.full((2 * 76,), -1, dtype=torch.int32)
    run(sized(dtype), (75, y))
    assert torch.equal(y.view(2, 76)[:, :75], torch.arange(75) + torch.tensor([[0], [100]]))
    assert (y.view(2, 76)[:, 75] == -1).all()


SIZED = """
class Sized(tilus.Script):
    def __call__(self, n: float32, y: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        g = self.global_view(y, dtype=float32, {text})
"""


@pytest.mark.parametrize("text", ["shape=[n]", "shape=[3], strides=[n]", "shape=[n > 3]"])
def test_a_size_that_is_no_integer_is_an_error_at_its_line(text):
    with pytest.raises(LanguageError, match=r"TK215 in Sized.*line 5: (shape|strides) needs integers or integer expr"):
        cell(SIZED.format(text=text))["Sized"]()(3.0, torch.zeros(3))


class Far(tilus.Script):
    """Reads row `row` of a matrix of `n` columns, more than 2^31 elements behind its first."""

    def __call__(self, row: int32, m: int32, n: int32, x: ~float32, y: ~float32):
        self.attrs.blocks = [2]
        self.attrs.warps = 1
        begin = x - int64(row) * n
        end = x + int64(row) * n
        down = self.global_view(begin, dtype=float32, shape=[m, n])
        up = self.global_view(end, dtype=float32, shape=[m, n], strides=[-n, 1])
        gy = self.global_view(y, dtype=float32, shape=[2, 64])
        at = self.blockIdx.x * 32
        self.store_global(gy, self.load_global(down, offsets=[row, at], shape=[1, 32]), offsets=[0, at])
        self.store_global(gy, self.load_global(up, offsets=[row, at], shape=[32], dims=[1]), offsets=[1, at], dims=[1])


@on_every_machine
def test_offsets_count_beyond_32_bits(run):
    x, y = torch.randn(64), torch.zeros(2, 64)
    run(Far(), (2**19 + 1, 2**20, 2**13, x, y))
    assert torch.equal(y, torch.stack([x, x]))


class Küche(tilus.Script):
    def __call__(self, größe: int32, TK_DEVICE: int32, NULL: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        float = self.register_tensor(dtype=float32, shape=[8], init=lambda i: i)
        INT32_MAX = float + 1.0
        for half in range(TK_DEVICE):
            INT32_MAX += float32(half) * 0.0 + 1.0
        self.store_global(self.global_view(NULL, dtype=float32, shape=[größe]), INT32_MAX, offsets=[0])


@on_every_machine
def test_any_python_name_will_do(run):
    y = torch.zeros(8)
    run(Küche(), (8, 3, y))
    assert torch.equal(y, torch.arange(8) + 4.0)


class Zeros(tilus.Script):
    """Zeros that only their signs tell apart, on two paths."""

    def __call__(self, n: int32, y: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        gy = self.global_view(y, dtype=float32, shape=[2])
        chosen = 0.0 if n > 3 else -0.0
        if n > 3:
            bound = 0.0
        else:
            bound = -0.0
        self.store_global(gy, self.register_tensor(dtype=float32, shape=[1], init=chosen), offsets=[0])
        self.store_global(gy, self.register_tensor(dtype=float32, shape=[1], init=bound), offsets=[1])


@on_every_machine
@pytest.mark.parametrize("n", [1, 5])
def test_zeros_keep_their_signs_on_their_paths(run, n):
    y = torch.ones(2)
    run(Zeros(), (n, y))
    assert y.signbit().tolist() == [n <= 3, n <= 3]


NARROW = """
class Narrow(tilus.Script):
    def __call__(self, y: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        t = self.register_tensor(dtype=tilus.{dtype}, shape=[32], init=0.1)
        self.store_global(self.global_view(y, dtype=float32, shape=[32]), t.to(float32), offsets=[0])
"""


@pytest.mark.parametrize("dtype", ["float8_e4m3", "float6_e3m2"])
def test_a_type_that_generated_code_does_not_have_is_an_error_at_its_line(dtype):
    with pytest.raises(CodegenError, match=rf"TK403 in Narrow.__call__, Cell In\[\d+\], line 5: {dtype} has no type"):
        cell(NARROW.format(dtype=dtype))["Narrow"]()(torch.zeros(32))


def test_what_is_nested_too_deeply_is_an_error_in_words():
    text = BLOCKS.format(blocks="1").replace("init=1)", "init=sum([n * k for k in range(400)]))")
    with pytest.raises(LanguageError, match=r"TK115.*nested too deeply"):
        cell(text)["Blocks"]()(3, torch.zeros(100, dtype=torch.int32))


NARROW_MEMORY = """
class NarrowMemory(tilus.Script):
    def __call__(self, x: ~tilus.float8_e4m3, y: ~tilus.float8_e4m3):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        s = self.shared_tensor(dtype=tilus.float8_e4m3, shape=[32])
        self.store_shared(s, self.load_global(self.global_view(x, dtype=tilus.float8_e4m3, shape=[32]), offsets=[0]))
"""


def test_shared_memory_of_such_a_type_is_an_error_at_its_line_too():
    text = NARROW_MEMORY.replace("offsets=[0])", "offsets=[0], shape=[32])")
    with pytest.raises(CodegenError, match=r"TK403 in NarrowMemory.__call__, Cell In\[\d+\], line 5") as caught:
        cell(text)["NarrowMemory"]()(*[torch.zeros(32).to(torch.float8_e4m3fn)] * 2)
    assert caught.value.diagnostic.help == (
        "use float16, and convert the tensor before the call with x.to(torch.float16); where the kernel only moves it, "
        "use uint8, and call it with x.view(torch.uint8)"
    )


@pytest.mark.parametrize("target", ["sm_70", "sm_75"])
def test_a_target_without_code_is_said_once_and_of_the_kernel(target):
    text = BLOCKS.format(blocks="1")
    with pytest.raises(CodegenError, match=rf"TK401 in \w+.__call__, .*sm_80 and newer, not for {target}") as caught:
        cell(text)["Blocks"]().compile(4, torch.zeros(100, dtype=torch.int32), target=target)
    span = caught.value.diagnostic.at
    assert span is not None and span.line == 0


EARLY = """
class Early(tilus.Script):
    def __call__(self, x: ~float32, y: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        s = self.shared_tensor(dtype=float32, shape=[3, 32])
        gx = self.global_view(x, dtype=float32, shape=[32])
        for i in range(3):
            self.copy_async(gx, s[i], offsets=[0])
        early = self.load_shared(s[1])
        self.store_global(self.global_view(y, dtype=float32, shape=[32]), early, offsets=[0])
"""


def test_the_evaluator_shows_the_line_and_names_a_part_of_a_tensor_as_it_is_written():
    with pytest.raises(KernelError, match=r"TK701 in Early.__call__, Cell In\[\d+\], line 10: early\[0\]") as caught:
        evaluate(cell(EARLY)["Early"](), [torch.zeros(32), torch.zeros(32)])
    ((note, _),) = caught.value.diagnostic.notes
    assert note.startswith("s[1] was read while a copy_async into it was on its way")


class Assuming(tilus.Script):
    def __call__(self, n: int32, y: ~int32):
        self.attrs.blocks = [cdiv(n, 100)]
        self.attrs.warps = 1
        rows = n // 2
        self.assume(n % 8 == 0 and rows <= 16 and n > 0)
        view = self.global_view(y, dtype=int32, shape=[n])
        self.store_global(view, self.register_tensor(dtype=int32, shape=[32], init=n), offsets=[0])


@pytest.mark.parametrize("run", EVERYWHERE[:2])
def test_an_assumption_that_does_not_hold_is_an_error_at_its_line_on_the_cpu(run):
    y = torch.zeros(40, dtype=torch.int32)
    run(Assuming(), [32, y])
    assert y.tolist() == [32] * 32 + [0] * 8
    run(Assuming(), [0, y])  # no block comes to it
    for n in (33, 40):
        with pytest.raises(KernelError, match=r"TK706 in Assuming.__call__, .*test_corners.py, line \d+") as caught:
            run(Assuming(), [n, y])
        assert "self.assume(n % 8 == 0 and rows <= 16 and n > 0)" in str(caught.value)
        assert caught.value.kind == "false_assumption"


def test_checking_a_kernel_checks_its_assumptions():
    handle = Assuming()
    y = torch.zeros(40, dtype=torch.int32)
    handle(32, y)
    with pytest.raises(KernelError, match="TK706"):
        handle.last.check(33, y)
