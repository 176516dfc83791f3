# SPDX-License-Identifier: Apache-2.0
import pytest
import torch

from tests.kernels.machines import EVERYWHERE, on_gpu
from tests.kernels.matmul import scripts
from tests.kernels.matmul.cases import ANY_SIZE, LARGE, check
from tilekit import float32

F16 = scripts.through_shared()
F32_OUT = scripts.through_shared(out=float32)


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("m, n, k", ANY_SIZE)
def test_every_size_agrees_with_torch(run, m, n, k):
    check(run, F16, m, n, k)


@pytest.mark.parametrize("run", EVERYWHERE)
def test_sums_are_kept_in_float32(run):
    check(run, F32_OUT, 65, 33, 500, out=torch.float32)


@pytest.mark.gpu
@pytest.mark.parametrize("m, n, k", LARGE)
def test_large_sizes_agree_with_torch_on_a_gpu(m, n, k):
    check(on_gpu, F16, m, n, k)
