# SPDX-License-Identifier: Apache-2.0
"""A tuning whose schedules are compiled by the processes of a real dask cluster."""

import time

import pytest
import torch

from tests.caches import in_force, new_cache
from tests.jit.tuning.test_on_cpu import Staged
from tests.kernels.matmul import scripts

distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")


@pytest.fixture
def client(tmp_path):
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=str(tmp_path)
        ) as cluster,
        distributed.Client(cluster) as connected,
    ):
        yield connected


@pytest.mark.slow
def test_a_cluster_compiles_and_its_programs_are_here(client, tmp_path):
    with in_force(new_cache(tmp_path / "cache")) as folder:
        Staged.__dict__.get("_handles", {}).clear()
        handle = Staged()
        x, y = torch.randn(1000), torch.zeros(1000)
        found = handle.tune(1000, x, y, executor=client.get_executor())
        assert found.best is not None and found.best.schedule == {"block": 32, "passes": 1}
        assert len(list((folder / "programs").iterdir())) == 4
        handle(1000, x, y)
        assert torch.equal(x, y) and handle.last.schedule == found.best.schedule
        compiled = client.run(lambda: "tilekit.drivers" in __import__("sys").modules)
        assert any(compiled.values()), "they were compiled there"
        assert not any(client.run(lambda: "torch" in __import__("sys").modules).values())


@pytest.mark.gpu
def test_a_cluster_with_gpus_times_what_it_compiles(client, tmp_path):
    with in_force(new_cache(tmp_path / "cache")):
        m, n, k = 1024, 1024, 512
        a, b = torch.randn(m, k, device="cuda").half(), torch.randn(k, n, device="cuda").half()
        c = torch.full((m, n), float("nan"), device="cuda", dtype=torch.half)
        handle = scripts.pipelined()
        begin = time.monotonic()
        found = handle.tune(m, n, k, a, b, c, executor=client.get_executor())
        print(f"tuned by two processes in {time.monotonic() - begin:.1f} s\n{found}")
        assert found.best is not None and found.best.median > 0
        assert all(client.run(lambda: "tilekit.jit.tuning.elsewhere" in __import__("sys").modules).values())
        handle(m, n, k, a, b, c)
        assert handle.last.schedule == found.best.schedule
        assert (c.float() - a.float() @ b.float()).norm() / c.float().norm() < 1e-3
