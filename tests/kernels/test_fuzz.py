# SPDX-License-Identifier: Apache-2.0
"""Random kernels mean the same in the evaluator, which knows no layouts, and on the machines that do."""

import random

import pytest
import torch

from tests.kernels.machines import evaluate, on_gpu
from tests.kernels.random_kernels import RandomKernel, random_kernel
from tilekit.toolchain import host

needs_compiler = pytest.mark.skipif(host.find_compiler() is None, reason="no C++ compiler here")


def simulate_in_any_order(handle, args):
    """Run it in the simulator, its blocks and threads in an order that nobody expects."""
    handle.compile(*args)
    handle.last._runner.kernel.launch(args, seed=random.randrange(1, 1 << 60))


def assert_same(kernel: RandomKernel, seed: int, expected: list, found: list) -> None:
    for param, ours, other in zip(kernel.params, expected, found, strict=True):
        if not isinstance(ours, torch.Tensor):
            continue
        same = (ours == other) | (ours.isnan() & other.isnan())
        if param.tolerance is not None:
            relative, absolute = param.tolerance
            same |= (ours.double() - other.double()).abs() <= absolute + relative * ours.double().abs()
        assert same.all(), f"{param.name} of random_kernel({seed}, …): {ours[~same]} and {other[~same]}\n{kernel.text}"


def compare(run, seed: int) -> None:
    kernel = random_kernel(seed, fused=run is on_gpu)
    expected, found = kernel.arguments(), kernel.arguments()
    handle = kernel.handle()
    evaluate(handle, expected)
    run(handle, found)
    assert_same(kernel, seed, expected, found)


@needs_compiler
@pytest.mark.parametrize("number", range(14))
def test_evaluator_and_simulator_agree_on_a_few_random_kernels(number):
    compare(simulate_in_any_order, random.randrange(1 << 32))


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("number", range(300))
def test_evaluator_and_simulator_agree_on_random_kernels(number):
    compare(simulate_in_any_order, random.randrange(1 << 32))


@pytest.mark.gpu
@pytest.mark.parametrize("number", range(100))
def test_evaluator_and_gpu_agree_on_random_kernels(number):
    compare(on_gpu, random.randrange(1 << 32))
