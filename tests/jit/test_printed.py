# SPDX-License-Identifier: Apache-2.0
"""What kernels print: shown as far as anybody reads it, and kept whole."""

import pytest
import torch

import tilekit as tilus
from tilekit import float32, int32
from tilekit.diag import KernelError
from tilekit.jit.printing import SHOWN_LINES, shortened
from tilekit.toolchain import host


class Talker(tilus.Script):
    """Prints n lines from each of its 32 threads, and then reads element `at` of 64."""

    def __call__(self, n: int32, at: int32, x_ptr: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        gx = self.global_view(x_ptr, dtype=float32, shape=[64])
        for i in range(n):
            self.printf("line %d\n", i)
        view = self.global_view(x_ptr, dtype=float32, shape=[100000000])
        self.store_global(gx, self.load_global(view, offsets=[at], shape=[32]), offsets=[0])


def lines(count: int, threads: int = 32) -> list[str]:
    return [f"line {i}" for i in range(count) for _ in range(threads)]


@pytest.fixture(scope="module")
def talker():
    return Talker()


def test_the_first_thousand_lines_are_shown_and_all_are_kept(talker, capsys):
    x = torch.zeros(64)
    talker(50, 0, x)
    *shown, more = capsys.readouterr().out.splitlines()
    assert talker.last.printed == talker.printed
    assert shown == talker.printed.splitlines()[:1000] and more == "… and 600 more lines: kernel.printed has all"
    assert sorted(talker.printed.splitlines()) == sorted(lines(50))
    talker(2, 0, x)
    assert capsys.readouterr().out == talker.printed and sorted(talker.printed.splitlines()) == lines(2)
    talker(0, 0, x)
    assert capsys.readouterr().out == talker.printed == ""


def test_a_check_keeps_what_it_printed(talker, capsys):
    talker.check(3, 0, torch.zeros(64))
    assert sorted(talker.printed.splitlines()) == lines(3) and capsys.readouterr().out == ""


def test_what_a_kernel_printed_before_it_failed_is_shown(talker, capsys):
    with pytest.raises(KernelError):
        talker(4, 90_000_000, torch.zeros(64))
    assert capsys.readouterr().out == talker.printed and "line 0\n" in talker.printed
    with pytest.raises(KernelError):
        talker.check(1, 90_000_000, torch.zeros(64))
    assert "line 0\n" in talker.printed and "line 1\n" not in talker.printed


def test_without_a_compiler_the_evaluator_prints(capsys, monkeypatch):
    class Mute(Talker):
        pass

    monkeypatch.setattr(host, "find_compiler", lambda: None)
    handle = Mute()
    with pytest.warns(UserWarning, match="evaluator"):
        handle(2, 0, torch.zeros(64))
    assert "evaluator" in handle.last.where
    assert capsys.readouterr().out == handle.printed and sorted(set(handle.printed.splitlines())) == lines(2, 1)
    with pytest.raises(KernelError):
        handle(3, 90_000_000, torch.zeros(64))
    assert sorted(set(handle.printed.splitlines())) == lines(3, 1)


@pytest.mark.gpu
def test_on_a_gpu_a_kernel_that_prints_is_waited_for(talker, capfd):
    x = torch.zeros(64, device="cuda")
    talker(50, 0, x)
    assert sorted(talker.printed.splitlines()) == sorted(lines(50))
    *shown, more = capfd.readouterr().out.splitlines()
    assert shown == talker.printed.splitlines()[:1000] and more == "… and 600 more lines: kernel.printed has all"
    talker(0, 0, x)
    assert talker.printed == capfd.readouterr().out == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("x" * 5000, "x" * 5000),
        ("a\n" * SHOWN_LINES, "a\n" * SHOWN_LINES),
        ("a\n" * SHOWN_LINES + "b", "a\n" * SHOWN_LINES + "… and 1 more line: kernel.printed has all\n"),
        ("\n" * (SHOWN_LINES + 2000), "\n" * SHOWN_LINES + "… and 2,000 more lines: kernel.printed has all\n"),
    ],
)
def test_a_text_is_shortened_behind_a_thousand_lines(text, shown):
    assert shortened(text) == shown
