# SPDX-License-Identifier: Apache-2.0
"""The process of `gpu_worker.py` as its parent sees it: a socket, what it prints, and how it ends."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tilekit.runtime import gpu_worker

COMMAND = (sys.executable, "-P", str(Path(gpu_worker.__file__)))
_DEATH_S = 10.0


class GpuProcess:
    """The child process and our end of its socket."""

    def __init__(self, uuid: bytes) -> None:
        self.control, theirs = socket.socketpair()
        self.printing = os.memfd_create("tilekit-gpu-prints", os.MFD_CLOEXEC)
        self.errors = os.memfd_create("tilekit-gpu-errors", os.MFD_CLOEXEC)
        with theirs:
            self.process = subprocess.Popen(
                [*COMMAND, str(theirs.fileno()), uuid.hex()],
                stdin=subprocess.DEVNULL,
                stdout=self.printing,
                stderr=self.errors,
                pass_fds=[theirs.fileno()],
                env=_environment(),
                start_new_session=True,  # an interrupt of the terminal reaches us alone
            )
        self.interrupted = False
        self.overdue = False
        self._read = 0  # of what was printed
        self._pending = b""
        self._readable = select.poll()
        self._readable.register(self.control, select.POLLIN)

    def ask(
        self, message: dict[str, Any], seconds: float | None, descriptor: int | None = None
    ) -> dict[str, Any] | None:
        """Send a message, with a file beside it, and wait for the answer."""
        line = json.dumps(message).encode() + b"\n"
        # a process that is dead or dying is noticed when it does not answer
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            sent = socket.send_fds(self.control, [line], [] if descriptor is None else [descriptor])
            self.control.sendall(line[sent:])
        return self.receive(seconds)

    def receive(self, seconds: float | None) -> dict[str, Any] | None:
        """The next answer; None if the process has ended, or did not give it in time."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while b"\n" not in self._pending:
            if not self._readable.poll(None if deadline is None else max(0.0, deadline - time.monotonic()) * 1e3):
                self.overdue = True
                return None
            try:
                data = self.control.recv(1 << 16)
            except ConnectionResetError:
                return None
            if not data:
                return None
            self._pending += data
        line, self._pending = self._pending.split(b"\n", 1)
        return json.loads(line)

    def printed(self) -> str:
        """What kernels printed since the last time."""
        new = os.pread(self.printing, os.fstat(self.printing).st_size - self._read, self._read)
        self._read += len(new)
        return new.decode(errors="replace")

    def last_words(self) -> str:
        """What the process wrote to its standard error."""
        size = os.fstat(self.errors).st_size
        return os.pread(self.errors, 2000, max(0, size - 2000)).decode(errors="replace").strip()

    def end(self) -> int:
        """See to it that the process has ended, and return its status: minus the signal that killed it."""
        self.control.close()
        self.process.kill()
        try:
            return self.process.wait(_DEATH_S)
        except subprocess.TimeoutExpired:  # the driver does not let go of the kernel; nothing here waits for that
            return -signal.SIGKILL
        finally:
            os.close(self.printing)
            os.close(self.errors)


def _environment() -> dict[str, str]:
    """Ours, so that the child sees the same GPUs and finds the driver's binding where we found it."""
    found = dict(os.environ, PYTHONPATH=os.pathsep.join(path or os.getcwd() for path in sys.path))
    found.pop("CUDA_LAUNCH_BLOCKING", None)  # the child must be able to look up while a kernel runs
    return found
