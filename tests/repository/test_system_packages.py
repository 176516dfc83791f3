# SPDX-License-Identifier: Apache-2.0
"""What `make` does about a missing browser or compiler."""

import pathlib
import shutil
import subprocess

import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / ".ci" / "system-packages"


class Machine:
    """A PATH with a few ordinary tools, a user, and an apt-get that writes down what it is asked."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.asked = folder / "asked"
        for tool in ("bash", "env", "mktemp", "tail", "rm"):
            path = shutil.which(tool)
            assert path is not None
            (folder / tool).symlink_to(path)

    def add(self, tool: str, says: str = ":"):
        (self.folder / tool).write_text(f"#!{self.folder / 'bash'}\n{says}\n")
        (self.folder / tool).chmod(0o755)

    def add_apt_get(self, code: int = 0):
        self.add("apt-get", f'echo "$@" >>{self.asked}; exit {code}')

    def become(self, user: int):
        self.add("id", f"echo {user}")

    def run(self, *tools: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.folder / "bash", SCRIPT, *tools],
            env={"PATH": str(self.folder)},
            capture_output=True,
            text=True,
            check=True,
        )

    def installed(self) -> str:
        return self.asked.read_text() if self.asked.exists() else ""


@pytest.fixture
def machine(tmp_path: pathlib.Path) -> Machine:
    return Machine(tmp_path)


INSTALL = "install -y --no-install-recommends chromium fonts-dejavu-core fonts-liberation"


def test_root_installs_what_is_missing_and_nothing_else(machine: Machine):
    machine.become(0)
    machine.add_apt_get()
    machine.add("g++")
    machine.run("g++", "chromium")
    assert machine.installed() == f"update\n{INSTALL}\n"


def test_a_user_with_passwordless_sudo_installs(machine: Machine):
    machine.become(1000)
    machine.add_apt_get()
    machine.add("sudo", 'shift; exec "$@"')
    machine.add("true")
    machine.run("chromium")
    assert machine.installed() == f"update\n{INSTALL}\n"


def test_nothing_is_done_where_all_is_here(machine: Machine):
    machine.become(0)
    machine.add_apt_get()
    machine.add("clang++")
    machine.add("chromium")
    done = machine.run("g++", "chromium")
    assert machine.installed() == done.stdout == done.stderr == ""


@pytest.mark.parametrize("case", ["no leave", "no apt-get", "apt-get fails"])
def test_elsewhere_it_says_what_to_install(machine: Machine, case: str):
    machine.become(1000 if case == "no leave" else 0)
    machine.add("false", "exit 1")
    if case != "no apt-get":
        machine.add_apt_get(code=100)
    done = machine.run("g++", "chromium")
    assert "Missing here, please install: g++ chromium fonts-dejavu-core fonts-liberation" in done.stderr
    assert "install -y" not in machine.installed()
