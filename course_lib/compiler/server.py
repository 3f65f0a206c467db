"""The helper process: compiles kernels given as source text, and measures what came out. No GPU is needed.

Started as a script, ``python -P server.py``, in a folder of its own and without ``TRITON_INTERPRET``: a process whose own
Triton interprets cannot compile. One job a line on stdin, one answer a line on what was stdout, both JSON; whatever a kernel,
Triton or LLVM print goes to stderr, a file. It ends when stdin does, and takes its folder with it.

A bad kernel is an answer with a line and a sentence, never a traceback.
"""

from __future__ import annotations

import json
import linecache
import os
import resource
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # a script: what it needs of the course lies two folders up
    sys.path.insert(0, str(Path(__file__).parents[2]))
    os.environ["COURSE_DEFER_CHOICE"] = "1"

import triton

from course_lib.base.worker import take_stdout
from course_lib.compiler.compilation import compile_kernel
from course_lib.compiler.refusals import explain
from course_lib.compiler.units import Units

_ADDRESS_BYTES = 8 << 30  # ten times what it takes; an endless unrolled loop ends here and not in swap


def main(folder: Path) -> None:
    """Answer jobs until stdin ends; then the folder is removed."""
    answers = take_stdout()
    signal.signal(signal.SIGURG, lambda *_: _leave(folder))
    os.environ |= {"TRITON_CACHE_DIR": str(folder / "cache"), "TMPDIR": str(folder)}
    _limit_memory()
    try:
        print(json.dumps({"ready": triton.__version__}), file=answers)
        for number, line in enumerate(sys.stdin):
            job = json.loads(line)
            workplace = folder / str(number)  # a fresh path each time: nothing stale in caches that go by file name
            workplace.mkdir()
            print(json.dumps(_run(job, workplace)), file=answers)
            linecache.clearcache()
            for used in (workplace, folder / "cache"):
                shutil.rmtree(used, ignore_errors=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _leave(folder: Path) -> None:
    """Whoever asked has gone: end at once, with every program of the compiler's that runs, and leave no folder."""
    shutil.rmtree(folder, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = _ADDRESS_BYTES if hard == resource.RLIM_INFINITY else min(_ADDRESS_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _run(job: dict[str, Any], folder: Path) -> dict[str, Any]:
    started = time.perf_counter()
    units = Units(job, folder)
    log_start = os.fstat(2).st_size
    try:
        report = compile_kernel(job, units)
    except BaseException as error:  # a kernel may raise SystemExit while it is imported
        sys.stderr.flush()
        size = os.fstat(2).st_size
        start = log_start if log_start <= size else 0  # the owner empties a log that has become long
        return {"error": explain(error, units, os.pread(2, size - start, start).decode("utf-8", "replace"))}
    return {"report": report | {"seconds": time.perf_counter() - started}}


if __name__ == "__main__":
    main(Path.cwd())
