"""The confined process that compiles kernels given as source text, and describes the results. It
needs no GPU.

Triton runs parts of a kernel's text while it compiles it, so the text can do anything in this
process. Therefore each job has its own fork and its own folder, and access to nothing else. The
answer to a bad kernel is a line and a sentence, never a traceback.
"""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
import time
import types
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import triton
from triton.runtime import cache

from course_lib.base.files import TemporaryFolder
from course_lib.base.plain import decode, encode
from course_lib.compiler.compilation import compile_kernel
from course_lib.compiler.compile_job import CompileJob, CompilerAnswer
from course_lib.compiler.refusals import explain
from course_lib.compiler.units import Units
from course_lib.sandbox.machine import Exchange, Machine

_TAIL_BYTES = 64 << 10
_FIRST = CompileJob(
    "copy_one",
    [
        {
            "name": "copy_one",
            "text": "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef "
                    "copy_one(x_ptr, y_ptr):\n    tl.store(y_ptr, tl.load(x_ptr))\n",
            "first_line": 1, "globals": {}, "jit": None,
        }
    ],
    [{"pointer": {"dtype": "float32", "address": 0}},
        {"pointer": {"dtype": "float32", "address": 0}}],
    {},
)  # fmt: skip


def make_machine(_: str) -> Machine:
    return _Compiler()


@contextlib.contextmanager
def put_off_nothing() -> Iterator[None]:
    """Do Triton's delayed start-up work once, before the forks: compile a first kernel. Also skip
    work that no job needs.

    Inside the block Triton has a cache folder, in case the caller wants to build more.
    """
    # Triton's cache key has a hash of Triton's own files, which is slow. Here each job has its own
    # cache, so the version is enough.
    cache.triton_key = lambda: triton.__version__
    before = os.environ.get("TRITON_CACHE_DIR")
    with TemporaryFolder("course-compile-") as folder:
        os.environ["TRITON_CACHE_DIR"] = str(folder)
        try:
            with _tensor_type():
                compile_kernel(_FIRST, Units(_FIRST.units, _FIRST.name, folder))
            yield
        finally:
            del os.environ["TRITON_CACHE_DIR"]
            os.environ |= {} if before is None else {"TRITON_CACHE_DIR": before}
    linecache.clearcache()


@contextlib.contextmanager
def _tensor_type() -> Iterator[None]:
    """Provide a type ``torch.Tensor`` inside the block. Triton's launcher looks it up once, at its
    first launch.

    If PyTorch is not imported, an unused type takes its place, because the arguments here are not
    tensors and PyTorch is large and slow to import. A kernel's text that imports PyTorch afterwards
    gets the real one.
    """
    if "torch" in sys.modules:
        yield
        return
    stand_in = types.ModuleType("torch")
    vars(stand_in)["Tensor"] = type("Tensor", (), {})
    sys.modules["torch"] = stand_in
    try:
        yield
    finally:
        del sys.modules["torch"]


class _Compiler(Machine):
    """The machine that compiles the kernels of one submission, one after another."""

    def __init__(self) -> None:
        with put_off_nothing():
            pass

    def work(self, job: dict[str, Any], exchange: Exchange) -> None:
        answers = []
        for number, kernel in enumerate(decode(list[CompileJob], job["kernels"])):
            exchange.begin_case(number)
            # a new path per kernel, because some caches use file names as keys
            place = exchange.folder / str(number)
            place.mkdir()
            answers.append(_compile(kernel, place))
            if answers[-1].refusal is not None:
                break
        exchange.write_answer(encode(list[CompilerAnswer], answers))


def _compile(kernel: CompileJob, folder: Path) -> CompilerAnswer:
    started = time.perf_counter()
    units = Units(kernel.units, kernel.name, folder)
    log = _start_log(folder)
    try:
        report = compile_kernel(kernel, units)
    except BaseException as error:  # a kernel may raise SystemExit while it is imported
        sys.stderr.flush()
        return CompilerAnswer(refusal=explain(error, units, _read_tail(log)))
    return CompilerAnswer(report and replace(report, seconds=time.perf_counter() - started))


def _read_tail(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        return file.read().decode("utf-8", "replace")


def _start_log(folder: Path) -> Path:
    """Send all output of the compiler to a file. For some refusals, only the output has the place
    and the reason."""
    log = folder / "log"
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for standard in (1, 2):
        os.dup2(descriptor, standard)
    os.close(descriptor)
    return log
