# SPDX-License-Identifier: Apache-2.0
"""`self.cuda`, and the instructions that only speak to people or to the compiler."""

import numpy as np
import pytest
import torch

from tests.lang.cells import Inputs, agrees, by_kernel, cell, function_of, kernel, printed
from tilekit.diag import LanguageError, LayoutError
from tilekit.dtypes import float16, float32
from tilekit.ir import evaluator
from tilekit.ir.instructions.assume import AssumeInst
from tilekit.ir.instructions.print import FormatPrintInst
from tilekit.ir.instructions.transform import AnnotateLayoutInst
from tilekit.ir.tools.instruction_collector import collect
from tilekit.lang.cuda import Cuda, DeviceProperties
from tilekit.runtime.device import Gpu

DOT = """
class Kernel(tilus.Script):
    def __init__(self, m=64, n=32, k=16, warps=2):
        super().__init__()
        self.m, self.n, self.k = m, n, k
        self.warps = warps
        self.mma = self.cuda.resolve_dot_config(float16, float32, m=m, n=n, k=k, num_warps=warps)

    def __call__(self, a_ptr: ~float16, b_ptr: ~float16, c_ptr: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = self.warps
        ga = self.global_view(a_ptr, dtype=float16, shape=[self.m, self.k])
        gb = self.global_view(b_ptr, dtype=float16, shape=[self.k, self.n])
        gc = self.global_view(c_ptr, dtype=float32, shape=[self.m, self.n])
        a = self.load_global(ga, offsets=[0, 0], shape=[self.m, self.k])
        b = self.load_global(gb, offsets=[0, 0], shape=[self.k, self.n])
        acc = self.register_tensor(dtype=float32, shape=[self.m, self.n], init=0.0)
        self.annotate_layout(a, self.mma.la)
        self.annotate_layout(b, self.mma.lb)
        self.annotate_layout(acc, self.mma.lc)
        self.dot(a, b, acc, out=acc)
        self.store_global(gc, acc, offsets=[0, 0])
"""


def test_a_kernel_chooses_the_layouts_of_its_dot():
    handle = cell(DOT)["Kernel"]()
    a, b = torch.randn(64, 16).half(), torch.randn(16, 32).half()
    c = torch.full((64, 32), float("nan"))
    annotated = collect(function_of(handle, a, b, c), AnnotateLayoutInst)
    chosen = Cuda(tuple).resolve_dot_config(float16, float32, m=64, n=32, k=16, num_warps=2)
    assert [inst.layout for inst in annotated] == [chosen.la, chosen.lb, chosen.lc]
    handle(a, b, c)
    torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-3, atol=1e-3)


def test_a_dot_that_no_warps_can_share_is_an_error_of_layouts():
    with pytest.raises(LayoutError) as caught:
        function_of(cell(DOT, "Cell In[1]")["Kernel"](m=24), *(torch.zeros(1).half(),) * 2, torch.zeros(1))
    text = caught.value.to_text()
    assert caught.value.code == "TK304" and "no dot of 24 x 32 x 16 in float16" in text
    assert "Kernel.__init__, Cell In[1], line 6" in text


@pytest.mark.parametrize(
    "atom", ["m16n8k16_f16_f32", "m16n8k16_f16_f16", "m16n8k16_bf16_f32", "m8n8k16_i8_i32", "m16n8k16_i8_i32"]
)
def test_atoms_repeat_to_a_block(atom):
    cuda = Cuda(tuple)
    made = getattr(cuda.atomic_mma_configs, atom)(1)
    config = cuda.mma_dot_config(made, (2, 1), (1, 4, 2))
    assert (config.m, config.n, config.k) == (made.m * 2, made.n * 4, made.k * 2)
    assert list(config.la.shape) == [config.m, config.k] and config.la.spatial_size == 64
    assert list(config.lb_T.shape) == [config.n, config.k]
    assert cuda.atomic_mma_configs.from_dtypes(made.operand_type, made.acc_type).operand_type is made.operand_type


def test_a_block_of_too_many_registers_is_refused():
    cuda = Cuda(tuple)
    with pytest.raises(LayoutError):
        cuda.mma_dot_config(cuda.atomic_mma_configs.m16n8k16_f16_f32(1), (1, 1), (8, 8, 4))


def test_layouts_are_asked_for_in_a_kernel():
    text = printed(
        """
        z = self.register_tensor(dtype=int32, shape=[4, 8], init=0)
        s = self.shared_tensor(dtype=int32, shape=[4, 8])
        self.annotate_layout(z, self.cuda.default_register_layout(1, int32, z.shape))
        self.annotate_layout(s, self.cuda.shared_layout(s.shape))
        self.store_shared(s, z)
        self.keep(0, self.load_shared(s)[0])
        """
    )
    assert text.count("annotate_layout(") == 2


def test_the_properties_of_a_gpu_are_asked_for_while_compiling():
    gpu = Gpu(0, "some GPU", (9, 0), 1 << 37, 132, 232448)
    found = Cuda(lambda: (gpu,)).runtime.get_device_properties(0)
    assert found == DeviceProperties("some GPU", 9, 0, 132, 1 << 37, 232448)


def test_without_that_gpu_the_error_says_what_to_do():
    with pytest.raises(LanguageError) as caught:
        Cuda(tuple).runtime.get_device_properties(3)
    assert "there is no GPU 3" in caught.value.to_text() and "__init__" in caught.value.to_text()


def test_fast_divmod_is_that_of_python():
    agrees("q, r = self.fast_divmod(m * 7 - 3, n + 1); self.keep(0, q); self.keep(1, r)")
    agrees("q, r = self.fast_divmod(17, 5); self.keep(0, q + n); self.keep(1, r + n)")
    agrees(
        """
        for i in range(n):
            q, r = self.fast_divmod(i * 5, 3)
            x = x + q * 10 + r
        self.keep(0, x)
        """
    )


@pytest.mark.parametrize("body, code", [("self.fast_divmod(f, 2)", "TK215"), ("self.fast_divmod(n, 0)", "TK104")])
def test_fast_divmod_divides_integers(body, code):
    with pytest.raises(LanguageError) as caught:
        printed(body)
    assert caught.value.code == code


def test_assumptions_are_kept_for_the_compiler():
    inputs = Inputs.fresh(4)
    body = "self.assume(n % 4 == 0 and n > 0); self.assume(True); self.keep(0, x)"
    np.testing.assert_array_equal(by_kernel(body, inputs)[0], inputs.ints[0])
    assert printed(body).count("assume(") == 1


def test_an_assumption_known_to_be_false_is_an_error():
    with pytest.raises(LanguageError) as caught:
        printed("self.assume(self.four == 5)")
    assert caught.value.code == "TK110"


def test_a_kernel_prints_numbers_and_tensors():
    text = """
    class Kernel(tilus.Script):
        def __call__(self, n: int32):
            self.attrs.blocks = [1]
            self.attrs.warps = 1
            self.printf("n is %d\\n", n * 2)
            self.print_tensor("tile", self.register_tensor(dtype=int32, shape=[2, 2], init=lambda i, j: i + j))
    """
    handle = cell(text)["Kernel"]()
    func = function_of(handle, 21)
    (shown,) = collect(func, FormatPrintInst)
    assert shown.fmt == "n is %d\n" and len(shown.args) == 1
    printed_text = evaluator.run(handle._jit_instance_for(21).transpiled_programs[0], [21])
    assert printed_text.count("n is 42\n") == 32, "every thread prints"
    assert printed_text.count("tile") == 1 and "2" in printed_text.partition("tile")[2]


def test_an_assumption_stands_in_the_program():
    handle = kernel("self.assume(n % 2 == 0)")
    func = function_of(handle, 2, 1, 1.0, torch.zeros(16, dtype=torch.int32), torch.zeros(16), torch.zeros(96).double())
    assert len(collect(func, AssumeInst)) == 1
