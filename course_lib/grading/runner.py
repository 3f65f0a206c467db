"""Starts the child, watches it, ends it, and brings its bytes home.

Parent and child are different processes: nothing the child says decides a verdict, only the bytes it leaves behind do.
The child runs in a process group of its own, so that whatever it started ends with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from course_lib import paths
from course_lib.grading.buffers import DTYPES, Tensor
from course_lib.grading.extract import Kernels
from course_lib.grading.plan import Plan

TIER = "limits only"  # resource limits and a process group; no namespaces, no file-system confinement
_CHILD = Path(__file__).with_name("child.py")
_PRINTED_CHARACTERS = 4000
_POLL_SECONDS = 0.01


@dataclass(frozen=True)
class Limits:
    """``start``: seconds until the child is ready to run; ``case``: seconds a case may take; ``address_bytes``: 0 for none."""

    start: float = 60.0
    case: float = 10.0
    address_bytes: int = 64 << 30
    file_bytes: int = 64 << 20

    @classmethod
    def for_mode(cls, mode: str) -> Limits:
        if mode == "torch":
            return cls(start=120.0)  # importing PyTorch takes seconds, on a busy machine many
        # a GPU's first case compiles, and CUDA reserves more address space than any machine has memory
        return cls(start=120.0, case=60.0, address_bytes=0) if mode == "gpu" else cls()


@dataclass
class Run:
    """What came back. ``data`` has the bytes of finished cases, ``errors`` what was raised, by case number.

    ``ended`` is "finished", "crashed" (then ``signal`` may say how), "timed out" (then ``case`` is the one it hung in),
    or "not started" (then ``printed`` says why: that is ours, not the learner's).
    """

    ended: str
    data: dict[int, bytes] = field(default_factory=dict)
    errors: dict[int, dict] = field(default_factory=dict)
    case: int | None = None
    signal: int | None = None
    reported: str = ""  # what a GPU said as its context was lost
    import_error: dict | None = None
    printed: str = ""


def run(kernels: Kernels, plans: list[Plan], mode: str, limits: Limits | None = None) -> Run:
    """Run every plan in one child process.

    Raises: OSError if the job cannot be written or no process started (disk full, no memory): the machine's fault.
    """
    limits = limits or Limits.for_mode(mode)
    folder = Path(tempfile.mkdtemp(prefix="course-check-"))
    try:
        _write_job(folder, kernels, plans, mode, limits)
        return _watch(folder, plans, limits)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write_job(folder: Path, kernels: Kernels, plans: list[Plan], mode: str, limits: Limits) -> None:
    (folder / "kernels.py").write_text(kernels.source, encoding="utf-8")
    described = []
    for number, plan in enumerate(plans):
        tensors, start, parts = [], 0, []
        for tensor in plan.tensors:
            tensors.append(_described(tensor, start))
            parts.append(tensor.initial_bytes())
            start += tensor.nbytes
        (folder / f"{number:02}.in").write_bytes(b"".join(parts))
        described.append(
            {
                "entry_point": plan.entry_point,
                "grid": plan.grid,
                "arguments": plan.arguments,
                "constexprs": plan.constexprs,
                "num_warps": plan.num_warps,
                "interleavings": plan.interleavings,
                "any_order": plan.any_order,
                "tensors": tensors,
            }
        )
    job = {
        "root": str(paths.ROOT), "mode": mode, "cases": described,
        "limits": {"address_bytes": limits.address_bytes, "file_bytes": limits.file_bytes},
    }  # fmt: skip
    (folder / "job.json").write_text(json.dumps(job))


def _described(tensor: Tensor, offset: int) -> dict:
    itemsize = DTYPES[tensor.dtype].itemsize
    return {
        "name": tensor.name, "dtype": tensor.dtype, "itemsize": itemsize, "shape": tensor.shape, "strides": tensor.strides,
        "offset": offset, "nbytes": tensor.nbytes, "start": offset + tensor.guard * itemsize, "far": tensor.far, "output": tensor.is_output,
    }  # fmt: skip


def _watch(folder: Path, plans: list[Plan], limits: Limits) -> Run:
    log = folder / "log"
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("COURSE_", "PYTHON", "TRITON_INTERPRET"))}
    environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # a case is far too small for a thread pool
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-I", "-u", str(_CHILD), str(folder)],
            stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, cwd=folder, env=environment, start_new_session=True,
        )  # fmt: skip
    try:
        hung = _wait(process, folder, len(plans), limits)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return _collect(folder, plans, process.returncode, hung, log)


def _wait(process: subprocess.Popen, folder: Path, count: int, limits: Limits) -> bool:
    """Wait until the child ends, or makes no progress for as long as the limits allow; True if it was the latter."""
    begun, since = -1, time.monotonic()
    while process.poll() is None:
        time.sleep(_POLL_SECONDS)
        now = time.monotonic()
        if begun < count and (folder / ("ready" if begun < 0 else f"{begun:02}.begin")).exists():
            begun, since = begun + 1, now
        elif now - since > (limits.start if begun < 0 else limits.case):
            return True
    return False


def _collect(folder: Path, plans: list[Plan], exit_code: int, hung: bool, log: Path) -> Run:
    printed = log.read_bytes()[-4 * _PRINTED_CHARACTERS :].decode("utf-8", "replace")[-_PRINTED_CHARACTERS:]
    result = Run("finished", printed=printed, signal=-exit_code if exit_code < 0 and not hung else None)
    if (folder / "import.error").exists():
        result.import_error = json.loads((folder / "import.error").read_text())
        return result
    for number, plan in enumerate(plans):
        out, error = folder / f"{number:02}.out", folder / f"{number:02}.error"
        wanted = sum(tensor.nbytes for tensor in plan.tensors)
        if out.is_file() and out.stat().st_size == wanted:
            result.data[number] = out.read_bytes()
        elif error.is_file():
            raised = json.loads(error.read_text())
            if raised["lost"]:  # a GPU's context, or the process: not an exception of the kernel's, and nothing ran after it
                result.case, result.ended, result.reported = number, "crashed", raised["text"].splitlines()[0]
                break
            result.errors[number] = raised
        else:
            result.case = number
            result.ended = "timed out" if hung else "crashed"
            break
    if not (folder / "ready").exists():
        result.ended = "not started"
    return result
