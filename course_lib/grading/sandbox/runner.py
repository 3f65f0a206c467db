"""Hands a job to a server, and brings its bytes home.

Parent and child are different processes: nothing the child says decides a verdict, only the bytes it leaves behind do.
What it leaves is read as what it may be: the work of someone who wants to fool the reader.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from course_lib.base.errors import EnvironmentFault
from course_lib.base.worker import WorkerFailure
from course_lib.grading.cases.buffers import DTYPES, Tensor
from course_lib.grading.cases.plan import Plan
from course_lib.grading.sandbox import isolation, servers
from course_lib.grading.sandbox.stage import Stage
from course_lib.grading.submission.extract_kernels import Kernels

BEST_TIER = isolation.NAMESPACES  # a lower one is for tests, which prove what each of them stops
_PRINTED_CHARACTERS = 4000
_ERROR_BYTES = 64 << 10
_SIGXCPU = 24


@dataclass(frozen=True)
class ResourceLimits:
    """What one check may take: seconds and bytes; 0 leaves a limit of bytes out.

    ``start``: seconds until the child is ready to run; ``case``: seconds a case may take, ``total``: all of them together.
    ``memory_bytes``: beyond what the libraries take; ``resident_bytes``: with them; ``files`` and ``disk_bytes``: in its folder.
    """

    start: float = 60.0
    case: float = 10.0
    total: float = 60.0
    address_bytes: int = 64 << 30
    memory_bytes: int = 4 << 30
    resident_bytes: int = 5 << 30
    file_bytes: int = 64 << 20
    log_bytes: int = 8 << 20
    disk_bytes: int = 256 << 20
    files: int = 2000
    open_files: int = 256
    processes: int = 8

    @classmethod
    def for_mode(cls, mode: str) -> ResourceLimits:
        if mode in ("torch", "autograd"):
            return cls(start=120.0)  # importing PyTorch takes seconds, on a busy machine many
        if mode != "gpu":
            return cls()
        # a GPU's first case compiles, by other programs, and CUDA reserves more address space than any machine has memory
        return cls(
            start=120.0, case=60.0, total=300.0, address_bytes=0, memory_bytes=0, resident_bytes=24 << 30, disk_bytes=1 << 30, files=20_000,
            open_files=4096, processes=64,
        )  # fmt: skip


@dataclass
class Run:
    """What came back. ``data`` has the bytes of finished cases, ``errors`` what was raised, by case number; both, where a
    finished case did what its outputs do not show: it wrote to an input, or read more than its plan allows.

    ``ended`` is "finished", "crashed" (then ``signal`` may say how), "timed out", "flooded" (it printed too much), "too much
    memory", "too many files", "too many processes" or "died" (the server that watched it, twice; then ``case`` is the one it
    happened in), or "not started" (then ``printed`` says why: that is ours, not the learner's). ``tier`` is the isolation it ran under, ``left_out`` the cases that
    this machine has no room for.
    """

    ended: str
    data: dict[int, bytes] = field(default_factory=dict)
    errors: dict[int, dict] = field(default_factory=dict)
    case: int | None = None
    signal: int | None = None
    reported: str = ""  # what a GPU said as its context was lost
    import_error: dict | None = None
    printed: str = ""
    tier: str = "none"
    left_out: frozenset[int] = frozenset()


def run(kernels: Kernels, plans: list[Plan], mode: str, limits: ResourceLimits | None = None) -> Run:
    """Run every plan in one child process.

    Raises: OSError if the job cannot be written or no process started (disk full, no memory); EnvironmentFault if the GPU
    does not answer, or if what the process needs cannot be imported.
    """
    limits = limits or ResourceLimits.for_mode(mode)
    if mode == "gpu":
        _gpu.check_health()
    folder = Path(tempfile.mkdtemp(prefix="course-check-"))
    try:
        job = _write_job(folder, kernels, plans, limits)
        try:
            answer = servers.ask(mode, job, limits.start + limits.total)
        except WorkerFailure as died:
            # not the first server that this job ended: the second one had been started for it
            stage = Stage.RUNNING if any(folder.glob("*.begin")) else Stage.STARTING
            answer = {
                "tier": "none", "ended": "died", "stage": stage, "exit": None, "printed": died.printed, "left_out": [],
            }  # fmt: skip
        result = _collect(folder, plans, answer)
        _gpu.in_doubt = mode == "gpu" and result.ended != "finished"
        return result
    finally:
        _remove(folder)


class _GpuHealth:
    """After a child that was killed or lost its context, the GPU has to show that it works before the next one."""

    in_doubt = False

    def check_health(self) -> None:
        """Have the GPU compute something, if it is in doubt.

        Raises: EnvironmentFault if it does not answer.
        """
        if not self.in_doubt:
            return
        folder = Path(tempfile.mkdtemp(prefix="course-probe-"))
        try:
            (folder / "kernels.py").write_text("")
            limits = ResourceLimits.for_mode("gpu")
            job = {"folder": str(folder), "cases": [], "limits": asdict(limits), "tier": BEST_TIER}
            # a machine is made, which computes on the GPU; no kernel is run
            answer = servers.ask("gpu", job, limits.start)
        except WorkerFailure as died:
            raise self._describe_silence(died.printed) from None
        finally:
            _remove(folder)
        if answer["stage"] == Stage.STARTING:
            raise self._describe_silence(answer["printed"])
        self.in_doubt = False

    @staticmethod
    def _describe_silence(said: str) -> EnvironmentFault:
        last = (said.strip().splitlines() or ["it said nothing"])[-1]
        return EnvironmentFault(
            f"the GPU does not answer since a kernel crashed on it ({last[-300:]}). `nvidia-smi` shows whether it is there; "
            "`export COURSE_DEVICE=cpu` works meanwhile."
        )


_gpu = _GpuHealth()


def _write_job(folder: Path, kernels: Kernels, plans: list[Plan], limits: ResourceLimits) -> dict:
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
                "reads": plan.reads,
                "spread": plan.spread,
                "calls": plan.calls,
                "tensors": tensors,
            }
        )
    return {"folder": str(folder), "cases": described, "limits": asdict(limits), "tier": BEST_TIER}


def _described(tensor: Tensor, offset: int) -> dict:
    itemsize = DTYPES[tensor.dtype].itemsize
    return {
        "name": tensor.name, "dtype": tensor.dtype, "itemsize": itemsize, "shape": tensor.shape, "strides": tensor.strides,
        "offset": offset, "nbytes": tensor.nbytes, "start": offset + tensor.guard * itemsize, "far": tensor.far, "output": tensor.is_output, "scratch": tensor.scratch,
    }  # fmt: skip


def _collect(folder: Path, plans: list[Plan], answer: dict) -> Run:
    exit_code = answer["exit"]
    result = Run(
        "finished", printed=_without(folder, answer["printed"])[-_PRINTED_CHARACTERS:], tier=answer["tier"], left_out=frozenset(answer["left_out"]),
        signal=-exit_code if exit_code is not None and exit_code < 0 else None,
    )  # fmt: skip
    if answer["stage"] == Stage.STARTING:
        result.ended = "not started"
        return result
    stopped = (
        "timed out" if result.signal == _SIGXCPU else answer["ended"] if answer["ended"] != "finished" else "crashed"
    )
    result.import_error = _raised(folder / "import.error")
    if result.import_error is not None:
        return result
    for number, plan in enumerate(plans):
        if number in result.left_out:
            continue
        data = _bytes(folder / f"{number:02}.out", sum(tensor.nbytes for tensor in plan.tensors))
        raised = _raised(folder / f"{number:02}.error")
        if data is not None:
            result.data[number] = data
            if (
                raised is not None and raised["fault"] is not None
            ):  # it came to its end, and did something else on the way
                result.errors[number] = raised
        elif raised is not None and not raised["lost"]:
            result.errors[number] = raised
        else:
            result.case, result.ended = number, stopped
            # a GPU's context, or the process: not an exception of the kernel's, and nothing ran after it
            if raised is not None:
                result.ended, result.reported = "crashed", (raised["text"].splitlines() or [raised["type"]])[0]
            return result
    if stopped not in ("crashed", "died", "timed out"):  # every result is there, and it was stopped all the same
        result.case, result.ended = len(plans) - 1, stopped
    return result


def _bytes(file: Path, size: int) -> bytes | None:
    """The content of a plain file of that size; None for anything else."""
    data = _read(file, size + 1)
    return data if data is not None and len(data) == size else None


def _read(file: Path, most: int) -> bytes | None:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with open(descriptor, "rb") as opened:
        return opened.read(most) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None


_NUMBER = (int, type(None))
_RAISED = {
    "type": str,
    "text": str,
    "line": _NUMBER,
    "lost": bool,
    "fault": (dict, type(None)),
    "column": _NUMBER,
    "end_column": _NUMBER,
}
_FAULT = {"kind": str, "tensor": str, "row": _NUMBER, "line": _NUMBER}


def _raised(file: Path) -> dict | None:
    """What a case says it raised, if it is put as the child puts it."""
    data = _read(file, _ERROR_BYTES)
    try:
        read = json.loads(data) if data is not None else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(read, dict):
        return None
    raised: dict[str, Any] = {"column": None, "end_column": None} | read  # not every error knows its columns
    if not _fits(raised, _RAISED) or (raised["fault"] is not None and not _fits(raised["fault"], _FAULT)):
        return None
    return raised | {"text": _without(file.parent, raised["text"])}


def _without(folder: Path, text: str) -> str:
    """The text without the folder of this one job: two checks of one file are to say the same."""
    return (
        text.replace(f"{folder}/kernels.py", "your file")
        .replace(f"{folder}/", "")
        .replace(str(folder), "the check's folder")
    )


def _fits(value: object, shape: dict) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == shape.keys()
        and all(isinstance(value[name], kind) for name, kind in shape.items())
    )


def _remove(folder: Path) -> None:
    """Also where someone took pains that it cannot be removed: folders without permissions, or a thousand levels of them."""
    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):
        subprocess.run(
            ["chmod", "-R", "u+rwx", str(folder)], stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        subprocess.run(["rm", "-rf", "--", str(folder)], stdin=subprocess.DEVNULL, capture_output=True, check=False)
