# SPDX-License-Identifier: Apache-2.0
"""Programs are compiled by processes that know nothing of the script, and what goes wrong there costs one program."""

import concurrent.futures
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.caches import in_force, new_cache
from tests.promises.kernels import SCHEDULES, description, doubling, programs
from tilekit import config, target
from tilekit.cache.programs import ProgramCache
from tilekit.jit.tuning import build
from tilekit.jit.tuning.build import Answer, Job, compile_all
from tilekit.runtime.tensors import DeviceKind

ROOT = Path(__file__).parents[3]


@pytest.fixture
def cache(tmp_path):
    with in_force(new_cache(tmp_path / "cache")) as folder:
        yield folder


@pytest.fixture
def jobs(cache) -> dict[int, Job]:
    instance = doubling()._jit_instance_for(*description())
    made = (instance.specialized(number) for number in range(len(SCHEDULES)))
    where = (target.parse("sm_80"), DeviceKind.CPU, config.resolve())
    return {number: Job(each.text, each.line_spans, *where) for number, each in enumerate(made)}


def process_of(job: object) -> Answer:
    return Answer(0.0, key=str(os.getpid()))


def dies_if_first(job: Job) -> Answer:
    if "64" in job.text:
        os._exit(3)
    return Answer(0.0)


def sleeps(job: object) -> Answer:
    time.sleep(0.0 if "64" in job.text else 60.0)  # type: ignore[attr-defined]
    return Answer(0.0, key=str(os.getpid()))


def test_processes_leave_programs_in_the_cache_and_import_no_torch(cache, jobs):
    answers = dict(compile_all(jobs.items(), 2))
    assert {number: answer.error for number, answer in answers.items()} == dict.fromkeys(range(len(SCHEDULES)))
    assert len(programs(cache)) == len(SCHEDULES)
    with build._processes(1) as pool:
        assert pool.submit(build.compile_program, jobs[0]).result().error is None
        imported = set(pool.submit(eval, "list(__import__('sys').modules)").result())
    assert "hidet" in imported and not {"torch", "IPython", "pytest"} & imported


def test_one_job_starts_no_process(jobs, monkeypatch):
    monkeypatch.setattr(build, "compile_program", process_of)
    ((_, answer),) = compile_all([(0, jobs[0])], 2)
    assert answer.key == str(os.getpid())
    assert list(compile_all([], 2)) == []


def test_a_process_that_dies_costs_the_program_that_it_was_at(jobs, monkeypatch):
    monkeypatch.setattr(build, "compile_program", dies_if_first)
    answers = dict(compile_all(jobs.items(), 2))
    assert [None if a.error is None else a.error.code for _, a in sorted(answers.items())] == ["TK509", None, None]


def test_jobs_are_compiled_while_others_are_still_made(jobs, monkeypatch):
    monkeypatch.setattr(build, "compile_program", process_of)
    submitted = []

    class Watching(ThreadPoolExecutor):
        def submit(self, *args, **kwargs):
            submitted.append(len(made))
            return super().submit(*args, **kwargs)

    made = []

    def making():
        for pair in jobs.items():
            made.append(pair)
            yield pair

    with Watching(1) as pool:
        assert len(list(compile_all(making(), 2, pool))) == len(jobs)
    assert submitted == [1, 2, 3]


def test_answers_come_before_the_last_job_is_made_while_the_processes_have_enough_to_do(monkeypatch):
    made: list[int] = []
    waiting: list[Future[Answer]] = []

    class Pool(Executor):
        def submit(self, run, /, *args, **kwargs):
            waiting.append(Future())
            if len(waiting) == 1:
                waiting[0].set_result(Answer(0.0))
            return waiting[-1]

    def making(count: int) -> Iterator[tuple[int, Any]]:
        for number in range(count):
            made.append(number)
            yield number, None

    monkeypatch.setattr(build, "_processes", lambda count: Pool())
    answers = compile_all(making(6), 1)
    assert next(answers)[0] == 0
    assert len(made) == 1 + build._AHEAD  # those are under way, so whoever asks may take a while
    for future in waiting[1:]:
        future.set_result(Answer(0.0))
    assert next(answers)[0] == 1
    assert len(made) == 1 + 2 * build._AHEAD  # nothing was under way any more, so jobs came first
    waiting[3].set_result(Answer(0.0))
    waiting[4].set_result(Answer(0.0))
    assert {next(answers)[0] for _ in range(3)} == {2, 3, 4}
    waiting[5].set_result(Answer(0.0))
    assert [number for number, _ in answers] == [5]


def test_whoever_stops_early_stops_the_processes(jobs, monkeypatch):
    monkeypatch.setattr(build, "compile_program", sleeps)
    begin = time.monotonic()
    answers = compile_all(jobs.items(), 2)
    _, first = next(answers)
    answers.close()
    assert time.monotonic() - begin < 40
    with pytest.raises(ProcessLookupError):
        os.kill(int(first.key), 0)


@pytest.mark.parametrize(
    ("jobs_", "limit", "memory", "workers"),
    [(3, 8, 64, 3), (9, 4, 64, 4), (9, None, 2, 2), (9, 8, 0, 1), (1, None, 64, 1)],
)
def test_there_are_no_more_processes_than_jobs_or_memory_for_them(jobs_, limit, memory, workers, monkeypatch):
    monkeypatch.setattr(build, "_available_bytes", lambda: memory * build.WORKER_BYTES)
    assert build.workers_for(jobs_, limit) == workers


def test_a_container_says_how_much_memory_is_left(tmp_path):
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("anon 400\ninactive_file 200\n")
    assert build._cgroup_room(tmp_path) == 500
    (tmp_path / "memory.max").write_text("max\n")
    assert build._cgroup_room(tmp_path) is None
    assert build._available_bytes() > 0


def test_any_executor_will_do_and_files_travel(cache, jobs, tmp_path):
    elsewhere = config.resolve({"cache_dir": new_cache(tmp_path / "elsewhere")})
    away = {0: Job(jobs[0].text, jobs[0].spans, jobs[0].target, jobs[0].device, elsewhere, travels=True)}
    with ThreadPoolExecutor(1) as pool:
        ((_, answer),) = compile_all(away.items(), 2, pool)
    assert answer.error is None and answer.files is not None
    entry = ProgramCache(cache).publish(answer.key, answer.files)
    assert programs(cache) == [entry.folder] and "module/lib.so" in entry.files


def test_an_error_names_the_line_of_the_kernel(jobs):
    broken = jobs[0].text.replace("load_global(", "load_nothing(", 1)
    assert broken != jobs[0].text
    answer = build.compile_program(Job(broken, jobs[0].spans, *(jobs[0].target, jobs[0].device, jobs[0].config)))
    assert answer.error is not None and answer.error.code != "TK409"


def test_a_fault_of_the_compiler_is_an_answer(jobs, monkeypatch):
    def fails(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("tilekit.drivers.build_text", fails)
    answer = build.compile_program(jobs[0])
    assert answer.error is not None and answer.error.code == "TK409"
    assert "ZeroDivisionError: division by zero (test_build.py:" in answer.error.message


_SCRIPT = """
import sys
sys.path.insert(0, {root!r})
print("the script runs", flush=True)
import torch
import tilekit
from tests.promises.kernels import description, doubling

script = doubling()
instance = script.compile(*description(), device="cpu")
print(len(script.kernels[0].schedules), {{row.state.value for row in script.schedules.rows}}, flush=True)
"""


@pytest.mark.slow
def test_a_script_without_a_guard_runs_once(tmp_path):
    file = tmp_path / "script.py"
    file.write_text(textwrap.dedent(_SCRIPT.format(root=str(ROOT))))
    environment = {**os.environ, "TILEKIT_CACHE_DIR": str(new_cache(tmp_path / "cache"))}
    done = subprocess.run([sys.executable, file], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["the script runs", "3 {'compiled'}"]


@pytest.mark.slow
def test_processes_end_with_a_killed_parent(tmp_path):
    program = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.jit.tuning import test_build as t
from tilekit.jit.tuning import build
from types import SimpleNamespace
build.compile_program = t.sleeps
answers = build.compile_all(((i, SimpleNamespace(text=text)) for i, text in enumerate(("64", "0", "0"))), 2)
print(next(answers)[1].key, flush=True)
next(answers)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
        parent.wait()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and Path(f"/proc/{pid}").exists():
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}").exists()


def test_the_pool_is_one_of_the_standard_library():
    with build._processes(1) as pool:
        assert isinstance(pool, ProcessPoolExecutor) and isinstance(pool, concurrent.futures.Executor)
