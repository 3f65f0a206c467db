"""Runs a kernel with its programs interleaved, on copies of its tensors, and keeps what every operation found and left.

The schedule, its races and its deadlock are those of :mod:`course_lib.interpreter.schedule`. In CPU mode the kernel runs
in this process. On a GPU this process compiles, so a second one interprets: this file is then a script that stays for
the next job. A learner's file always runs there, where it can be ended.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    sys.path.extend(sys.argv[1:])  # wherever else the process that asks finds its packages
    os.environ["COURSE_DEVICE"] = "cpu"

from course_lib import runtime
from course_lib.errors import CourseError
from course_lib.widgets import access_run
from course_lib.widgets.access_run import Job, Tensor

SECONDS = 90.0  # for the second process, start and all seeds together
MOST_STEPS = 20_000  # of one seed; a kernel of the lessons takes a few hundred


@dataclass(frozen=True)
class Operation:
    """One memory operation, in the order of the schedule.

    ``elements`` are those of ``tensor``, flat, that its lanes touch; ``found`` what stood there before, ``left`` what stands
    there after it. ``changed`` as in :class:`course_lib.interpreter.schedule.Step`. A barrier has no tensor.
    """

    program: int
    kind: str  # "load", "store", "barrier", "cas", "xchg", "add", ...
    line: int
    tensor: str
    elements: tuple[int, ...]
    found: tuple[float, ...]
    left: tuple[float, ...]
    changed: bool

    @property
    def is_atomic(self) -> bool:
        return self.kind not in ("load", "store", "barrier")


@dataclass(frozen=True)
class Clash:
    """A race: the numbers of its two operations in the schedule, where they meet, and the finding in words."""

    first: int
    second: int
    where: str
    message: str


@dataclass(frozen=True, eq=False)
class Interleaving:
    """One seed's run. ``deadlock`` and ``limit`` are findings in words, or ""; ``finished`` is in the order of finishing.

    ``waits`` says of each program that waits forever for whom it does: program, place, and the program that changed that
    place last (None if nobody did).
    """

    kernel: str
    seed: int
    programs: int
    tensors: tuple[Tensor, ...]
    operations: tuple[Operation, ...]
    races: tuple[Clash, ...]
    deadlock: str
    waits: tuple[tuple[int, str, int | None], ...]
    limit: str
    finished: tuple[int, ...]
    memory: tuple[bytes, ...]  # the buffers after the run
    before: tuple[bytes, ...]
    source: Mapping[int, str] = field(default_factory=dict)
    apart: str = ""  # why a second process interpreted it; "" if this one did

    @property
    def complete(self) -> bool:
        """Every program finished."""
        return len(self.finished) == self.programs

    @property
    def findings(self) -> tuple[str, ...]:
        """Everything that was found, in words."""
        return (*(race.message for race in self.races), *(words for words in (self.deadlock, self.limit) if words))

    def result(self, name: str) -> np.ndarray:
        """What the run left in the tensor of parameter ``name``, with or without its ``_ptr``.

        Raises: CourseError if the kernel has no such tensor.
        """
        return _view(self.tensor(name), self.memory)

    def first(self, name: str) -> np.ndarray:
        """What stood in that tensor before the run."""
        return _view(self.tensor(name), self.before)

    def tensor(self, name: str) -> Tensor:
        wanted = name.removesuffix("_ptr")
        for tensor in self.tensors:
            if tensor.name == wanted:
                return tensor
        raise CourseError(f"`{self.kernel}` was given no tensor `{name}`; it has {', '.join(tensor.name for tensor in self.tensors)}.")


def interleaved(
    kernel: Any, grid: Any, *arguments: Any, seeds: Iterable[int] = range(10), resident: int = 8, apart: bool = False, **named: Any
) -> list[Interleaving]:
    """Run ``kernel[grid](*arguments, **named)`` once for each seed, its programs interleaved as the seed draws it.

    Args:
        kernel: a @triton.jit function, interpreted or compiled, or a KernelSource.
        seeds: each draws the order in which programs start, and which one makes the next step.
        resident: how many unfinished programs there may be at once.
        apart: in a second process even if this one interprets; a KernelSource always goes there.

    The tensors stay as they are: every run gets copies. Results are in :meth:`Interleaving.result`.

    Raises: CourseError if the launch does not fit the kernel, is too large, stops with an error, or the second process
        fails; TypeError for what is no kernel.
    """
    from course_lib.compiler import KernelSource, source_text, units_of

    why = ""
    if not runtime.current().interpreted:
        why = "This process compiles its kernels, so a second one interpreted this launch."
    elif isinstance(kernel, KernelSource) or apart:
        why = "A second process interpreted this launch."
    job = access_run._job(kernel, grid, arguments, named)
    wanted = [int(seed) for seed in seeds]
    answers = _second_process(job, units_of(kernel), wanted, resident) if why else [run(kernel, job, seed, resident) for seed in wanted]
    text = source_text(kernel)
    source = dict(enumerate(text.text.split("\n"), text.first_line))
    before = tuple(job.buffers)
    return [
        Interleaving(
            job.kernel, answer["seed"], answer["programs"], tuple(job.tensors),
            tuple(Operation(**operation) for operation in answer["operations"]), tuple(Clash(**race) for race in answer["races"]),
            answer["deadlock"], tuple(answer["waits"]), answer["limit"], tuple(answer["finished"]), tuple(answer["memory"]), before,
            source, why,
        )
        for answer in answers
    ]  # fmt: skip


def run(kernel: Any, job: Job, seed: int, resident: int) -> dict[str, Any]:
    """One seed as plain data. Only where Triton interprets.

    Raises: CourseError with what stopped the kernel.
    """
    from course_lib.interpreter import hooks, launch, schedule
    from course_lib.interpreter.bounds import Region, checked
    from course_lib.interpreter.lock import LOCK

    memory = [np.frombuffer(bytearray(data) + bytes(64), dtype=np.uint8) for data in job.buffers]
    before = [array.copy() for array in memory]
    places = {tensor.name: memory[tensor.buffer].ctypes.data + tensor.start for tensor in job.tensors}
    pointers = {tensor.name: launch.pointer(places[tensor.name], tensor.dtype) for tensor in job.tensors}
    regions = [Region(t.name, places[t.name], t.itemsize, t.shape, t.strides) for t in job.tensors]
    values = [
        pointers[value] if kind == "tensor" else launch.integer(value) if type(value) is int else value for kind, value in job.arguments
    ]
    seen: dict[tuple[int, int, int], list[hooks.Access]] = {}

    def keep(access: hooks.Access) -> None:
        # asked before the scheduler may put the program aside: in a program's own order, which is all that is used
        seen.setdefault(access.program, []).append(access)

    try:
        with LOCK, hooks.observing(keep), checked(regions):
            outcome = schedule.run(kernel, job.grid, *values, seed=seed, resident=resident, max_steps=MOST_STEPS, **job.constexprs)
    except CourseError:
        raise
    except Exception as raised:
        raise CourseError(f"`{job.kernel}` was stopped: {access_run._words(raised)}.") from raised
    replay = _Replay(job, before, places)
    queues = {number: iter(seen.get(index, ())) for number, index in enumerate(outcome.programs)}
    operations = [replay.apply(step, next(queues[step.program])) for step in outcome.steps]
    numbers = {id(step): number for number, step in enumerate(outcome.steps)}
    return {
        "seed": seed,
        "programs": len(outcome.programs),
        "operations": operations,
        "races": [
            asdict(Clash(numbers[id(race.first)], numbers[id(race.second)], race.where.replace("_ptr[", "["), race.message))
            for race in outcome.races
        ],
        "deadlock": outcome.deadlock.message if outcome.deadlock else "",
        "waits": [
            (wait.step.program, wait.where.replace("_ptr[", "["), wait.holder.program if wait.holder else None)
            for wait in (outcome.deadlock.waits if outcome.deadlock else ())
        ],
        "limit": outcome.limit or "",
        "finished": list(outcome.finished),
        "memory": [array[: len(data)].tobytes() for array, data in zip(memory, job.buffers, strict=True)],
    }


class _Replay:
    """The operations once more, in the order of the schedule, on the memory as it was: what each found, and what it left."""

    def __init__(self, job: Job, memory: list[np.ndarray], places: Mapping[str, int]):
        self.job, self.memory, self.places = job, memory, places

    def apply(self, step: Any, access: Any) -> dict[str, Any]:
        plain: dict[str, Any] = {"program": step.program, "kind": step.kind, "line": step.line, "changed": step.changed}
        nothing = {"tensor": "", "elements": (), "found": (), "left": ()}
        if not step.lanes:
            return plain | nothing
        live = access.addresses[access.mask].astype(np.int64)
        tensor = self._tensor(int(live.min()))
        if tensor is None:
            return plain | nothing
        width, flat = access.itemsize, self.memory[tensor.buffer]
        offsets = live - self.places[tensor.name] + tensor.start
        lanes = offsets[:, None] + np.arange(width)
        raw = np.ascontiguousarray(flat[lanes])
        found = _decoded(raw, tensor)
        if access.writes:
            flat[lanes] = self._after(access, raw)
        left = _decoded(np.ascontiguousarray(flat[lanes]), tensor)
        elements = ((offsets - tensor.start) // tensor.itemsize).tolist()
        return plain | {"tensor": tensor.name, "elements": elements, "found": found.tolist(), "left": left.tolist()}

    def _after(self, access: Any, raw: np.ndarray) -> np.ndarray:
        """The bytes that the operation leaves in its live lanes, (lanes, itemsize)."""
        brought = np.ascontiguousarray(np.broadcast_to(access.values, access.addresses.shape)[access.mask])
        old = raw.view(brought.dtype)[:, 0]
        if access.kind in ("store", "xchg"):
            new = brought
        elif access.kind == "cas":
            new = np.where(old == np.broadcast_to(access.expected, access.addresses.shape)[access.mask], brought, old)
        else:
            with np.errstate(over="ignore"):
                new = _ARITHMETIC[access.kind](old, brought)
        return np.ascontiguousarray(new.astype(brought.dtype)).view(np.uint8).reshape(raw.shape)

    def _tensor(self, address: int) -> Tensor | None:
        below = [tensor for tensor in self.job.tensors if self.places[tensor.name] <= address]
        return max(below, key=lambda tensor: self.places[tensor.name]) if below else None


_ARITHMETIC = {
    "add": np.add, "fadd": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "max": np.maximum, "umax": np.maximum, "min": np.minimum, "umin": np.minimum,
}  # fmt: skip


def _decoded(raw: np.ndarray, tensor: Tensor) -> np.ndarray:
    values = raw.view(_dtype(tensor))[:, 0]
    return values.astype(np.float64) if values.dtype.kind not in "iub" else values


def _dtype(tensor: Tensor) -> np.dtype:
    import ml_dtypes

    names = {"fp64": np.float64, "fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16, "int1": np.bool_}
    return np.dtype(names.get(tensor.dtype, tensor.dtype))


def _view(tensor: Tensor, memory: Sequence[bytes]) -> np.ndarray:
    dtype = _dtype(tensor)
    strides = tuple(stride * tensor.itemsize for stride in tensor.strides)
    return np.ndarray(tensor.shape, dtype, memory[tensor.buffer], tensor.start, strides).copy()


# ---- the second process


def _second_process(job: Job, units: list[dict], seeds: list[int], resident: int) -> list[dict[str, Any]]:
    from course_lib.compiler import described

    folder = Path(tempfile.mkdtemp(prefix="course-schedule-"))
    try:
        plain = {
            "kernel": job.kernel, "grid": job.grid, "tensors": [vars(tensor) for tensor in job.tensors],
            "buffers": [base64.b64encode(data).decode() for data in job.buffers],
            "arguments": [(kind, value if kind == "tensor" else described(value)) for kind, value in job.arguments],
            "constexprs": {name: described(value) for name, value in job.constexprs.items()}, "units": units,
            "seeds": seeds, "resident": resident,
        }  # fmt: skip
        (folder / "job.json").write_text(json.dumps(plain, default=str))
        answer = _second.ask(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if answer["refused"]:
        raise CourseError(answer["refused"])
    return [run | {"memory": [base64.b64decode(data) for data in run["memory"]]} for run in answer["runs"]]


class _Second:
    """The process that interprets: started by the first job, kept for the next, started anew after a job that ended it."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.lock = threading.Lock()
        atexit.register(self.end)

    def ask(self, folder: Path) -> dict[str, Any]:
        with self.lock:
            if self.process is None or self.process.poll() is not None:
                self.start()
            self.process.stdin.write(f"{folder}\n".encode())
            self.process.stdin.flush()
            ready, _, _ = select.select([self.process.stdout], [], [], SECONDS)
            if not ready:
                self.end()
                raise CourseError(
                    f"the kernel did not end within {SECONDS:g} seconds in the interpreter, and was stopped. Does a loop wait?"
                )
            self.process.stdout.readline()
            if not (folder / "answer.json").exists():
                code = self.end()
                log = folder / "log"
                said = log.read_bytes()[-1000:].decode("utf-8", "replace").strip().splitlines()[-1:] if log.exists() else []
                raise CourseError(f"the process that interprets the kernel ended with code {code}: {(said or ['it printed nothing'])[0]}")
            return json.loads((folder / "answer.json").read_text())

    def start(self) -> None:
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("COURSE_", "PYTHON", "TRITON_INTERPRET"))}
        self.process = subprocess.Popen(
            [sys.executable, "-I", str(Path(__file__).resolve()), *filter(None, sys.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=environment, start_new_session=True,
        )  # fmt: skip

    def end(self) -> int | None:
        """Ends the process and whatever a kernel's file has started; its exit code."""
        process, self.process = self.process, None
        if process is None:
            return None
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.2)  # its own exit code, if it is about to have one
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.stdin.close()
        process.stdout.close()
        return process.wait()


_second = _Second()


def serve() -> None:
    """The second process: a folder a line on stdin, a line on what was stdout when its job is done."""
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        folder = Path(line.rstrip("\n"))
        log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        main(folder)
        sys.stdout.flush()
        answers.write("done\n")
        answers.flush()


def main(folder: Path) -> None:
    """One job of the second process: run every seed, leave the answers as ``answer.json``."""
    import course_lib  # noqa: F401 - chooses the interpreter and mends its rounding
    from course_lib import compile_server
    from course_lib.interpreter import hooks

    import triton.language  # isort: skip - after the choice
    from triton.runtime.jit import KernelInterface  # isort: skip

    hooks.patch()
    plain = json.loads((folder / "job.json").read_text())
    units = compile_server.Units({"units": plain["units"], "name": plain["kernel"]}, folder)
    units.kind = KernelInterface
    for space in units.spaces:  # the interpreter looks for it among a function's globals, and a helper may not name it
        space["_triton_language"] = triton.language
    try:
        kernel = units.load()
    except compile_server.NoKernel:
        _leave(folder, [], f"{plain['units'][0]['file']} has no @triton.jit function named `{plain['kernel']}`.")
        return
    except BaseException as raised:  # whatever the learner's file does while it is imported
        lines = [frame.lineno for frame in traceback.extract_tb(raised.__traceback__) if frame.filename == str(units.files[0])]
        line = lines[-1] if lines else getattr(raised, "lineno", None)
        _leave(folder, [], f"{plain['units'][0]['file']}{f', line {line}' if line else ''}: {type(raised).__name__}: {raised}.")
        return
    tensors = [
        Tensor(**described | {"shape": tuple(described["shape"]), "strides": tuple(described["strides"])}) for described in plain["tensors"]
    ]
    buffers = [base64.b64decode(data) for data in plain["buffers"]]
    arguments = [(kind, value if kind == "tensor" else units.decode(value)) for kind, value in plain["arguments"]]
    constexprs = {name: units.decode(value) for name, value in plain["constexprs"].items()}
    job = Job(plain["kernel"], tuple(plain["grid"]), tensors, buffers, arguments, constexprs)
    try:
        _leave(folder, [run(kernel, job, seed, plain["resident"]) for seed in plain["seeds"]], "")
    except CourseError as refused:
        _leave(folder, [], str(refused))


def _leave(folder: Path, runs: list[dict[str, Any]], refused: str) -> None:
    plain = [answer | {"memory": [base64.b64encode(data).decode() for data in answer["memory"]]} for answer in runs]
    part = folder / "answer.part"
    part.write_text(json.dumps({"runs": plain, "refused": refused}))
    part.rename(folder / "answer.json")


if __name__ == "__main__":
    serve()
