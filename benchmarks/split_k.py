# SPDX-License-Identifier: Apache-2.0
"""One matmul that shares k between blocks, in 96 schedules that tilekit and tilus 0.2.0 both build.

`python benchmarks/split_k.py tilekit FOLDER` tunes it there, from an empty cache in that folder, and prints what that
took as JSON. `tilus` in place of `tilekit` compiles the same text with tilus.
"""

import importlib
import json
import sys
import time
from collections import Counter

tilus = importlib.import_module(sys.argv[1])
float16, float32, int32 = tilus.float16, tilus.float32, tilus.int32
cdiv = importlib.import_module(f"{sys.argv[1]}.utils").cdiv

M, N, K = 1024, 1024, 8192


@tilus.autotune("block_m, block_n, warps", [(64, 64, 4), (64, 128, 4), (128, 64, 4), (128, 128, 8)])
@tilus.autotune("block_k", [32, 64])
@tilus.autotune("stages", [3, 4, 5])
@tilus.autotune("splits", [1, 2, 4, 8])
class SplitK(tilus.Script):
    def __init__(self, block_m: int, block_n: int, warps: int, block_k: int, stages: int, splits: int):
        super().__init__()
        self.block_m = block_m
        self.block_n = block_n
        self.warps = warps
        self.block_k = block_k
        self.stages = stages
        self.splits = splits

    def __call__(self, m: int32, n: int, k: int, a_ptr: ~float16, b_ptr: ~float16, c_ptr: ~float16):
        rows = cdiv(m, self.block_m)
        columns = cdiv(n, self.block_n)
        self.attrs.blocks = [columns, rows, self.splits]
        self.attrs.warps = self.warps
        row: int32 = self.blockIdx.y * self.block_m
        column: int32 = self.blockIdx.x * self.block_n
        share = cdiv(cdiv(k, self.block_k), self.splits) * self.block_k
        begin: int32 = self.blockIdx.z * share
        ga = self.global_view(a_ptr, dtype=float16, shape=[m, k])
        gb = self.global_view(b_ptr, dtype=float16, shape=[k, n])
        gc = self.global_view(c_ptr, dtype=float16, shape=[m, n])
        sa = self.shared_tensor(dtype=float16, shape=[self.stages, self.block_m, self.block_k])
        sb = self.shared_tensor(dtype=float16, shape=[self.stages, self.block_k, self.block_n])
        acc = self.register_tensor(dtype=float32, shape=[self.block_m, self.block_n], init=0.0)
        for stage in range(self.stages - 1):
            self.copy_async(src=ga, dst=sa[stage], offsets=[row, begin + stage * self.block_k])
            self.copy_async(src=gb, dst=sb[stage], offsets=[begin + stage * self.block_k, column])
            self.copy_async_commit_group()
        self.copy_async_wait_group(n=self.stages - 2)
        self.sync()
        full: int32 = 0
        free: int32 = self.stages - 1
        for depth in self.range(0, share, self.block_k, unroll=self.stages):
            a = self.load_shared(sa[full])
            b = self.load_shared(sb[full])
            self.dot(a, b, acc, out=acc)
            later: int32 = depth + (self.stages - 1) * self.block_k
            if later < share:
                self.copy_async(src=ga, dst=sa[free], offsets=[row, begin + later])
                self.copy_async(src=gb, dst=sb[free], offsets=[begin + later, column])
            self.copy_async_commit_group()
            full = (full + 1) % self.stages
            free = (free + 1) % self.stages
            self.copy_async_wait_group(n=self.stages - 2)
            self.sync()
        self.free_shared(sa)
        self.free_shared(sb)

        if self.splits == 1:
            self.store_global(gc, self.cast(acc, dtype=float16), offsets=[row, column])
        else:
            turns = self.global_tensor(dtype=int32, shape=[rows, columns], requires_clean=True)
            sums = self.global_tensor(dtype=float32, shape=[m, n], requires_clean=False)
            turn = turns[self.blockIdx.y, self.blockIdx.x].item_ptr()
            self.lock_semaphore(turn, self.blockIdx.z)
            if self.blockIdx.z > 0:
                before = self.load_global(sums, offsets=[row, column], shape=[self.block_m, self.block_n])
                self.add(acc, before, out=acc)
            if self.blockIdx.z < self.splits - 1:
                self.store_global(sums, acc, offsets=[row, column])
                self.release_semaphore(turn, self.blockIdx.z + 1)
            else:
                self.store_global(gc, self.cast(acc, dtype=float16), offsets=[row, column])
                self.release_semaphore(turn, 0)


def main(folder: str) -> dict[str, object]:
    import torch

    tilus.option.cache_dir(folder)
    a, b = torch.randn(M, K, device="cuda").half(), torch.randn(K, N, device="cuda").half()
    c = torch.full((M, N), float("nan"), device="cuda", dtype=torch.half)
    args = (M, N, K, a, b, c)
    handle = SplitK()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    handle(*args)
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    reference = a.float() @ b.float()
    found: dict[str, object] = {
        "seconds": round(seconds, 2),
        "relative_error": round(((c.float() - reference).norm() / reference.norm()).item(), 6),
    }
    return found | (_exhaustive(handle, args) if tilus.__name__ == "tilekit" else {})


def _exhaustive(handle: object, args: tuple[object, ...]) -> dict[str, object]:
    """The schedule that tuning chose beside the best of all, each of them timed anew, the best eight in turn."""
    import torch

    from benchmarks import rounds
    from tests.kernels.machines import scheduled
    from tilekit.runtime.benchmark import CudaTimer

    timer = CudaTimer(0)
    kernels = {str(row.schedule): scheduled(handle, row.schedule) for row in handle.schedules.rows}
    launches = {name: (lambda kernel=kernel: kernel(*args)) for name, kernel in kernels.items()}
    glances = {name: rounds.glance(launch, timer) for name, launch in launches.items()}
    chosen = str(handle.last.schedule)
    finalists = {chosen, *sorted(glances, key=glances.__getitem__)[:8]}
    readings = rounds.in_turn({name: launches[name] for name in finalists}, timer)
    best = min(readings, key=lambda name: readings[name].ms)
    torch.cuda.synchronize()
    return {
        "schedules": len(glances),
        "chosen": {"schedule": chosen, **readings[chosen].as_dict()},
        "best": {"schedule": best, **readings[best].as_dict()},
        "chosen_over_best": round(readings[chosen].ms / readings[best].ms, 4),
        "states": dict(Counter(row.state.value for row in handle.schedules.rows)),
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[2])))
