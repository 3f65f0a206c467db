"""Ask a confined process (``machine.py``) to compile kernels, and check its answers."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import signal
from pathlib import Path
from typing import Any

from course_lib.base.errors import EnvironmentFault
from course_lib.base.tab import IN_TAB
from course_lib.base.worker import WorkerFailure
from course_lib.sandbox import jobs
from course_lib.sandbox.isolation import Needs
from course_lib.sandbox.jobs import JobAnswer, JobFailure, ResourceLimits
from course_lib.sandbox.machine import ServerKind
from course_lib.sandbox.stage import Stage

_DOES = "compiles kernels"
KIND = ServerKind("course_lib.compiler.machine:make_machine", needs=Needs.PROGRAMS)
# Ten times the usual need. An endless unrolled loop hits this limit before the machine starts to swap.
_LIMITS = ResourceLimits(address_bytes=8 << 30, memory_bytes=0, file_bytes=16 << 20, open_files=1024, processes=32, log_bytes=1 << 20)


RECORDED = Path(__file__).with_name("recorded.json")  # exists only in a browser tab; the build of the site makes it
_recorded: dict[str, list[dict[str, Any]]] = {}


class CompilerCrash(Exception):
    """The process that compiles crashed or was stopped; ``cause`` is "crash", "timeout" or "flood"."""

    def __init__(self, cause: str, sentence: str):
        super().__init__(sentence)
        self.cause = cause


def ask(kernels: list[dict[str, Any]], limit: float) -> list[dict[str, Any]]:
    """Return the answers to a submission's kernels, up to the first refusal. ``limit``: seconds per kernel.

    A kernel can take over the process that answers. So the shape of the answers is checked here, but their truth cannot be.

    Raises: CompilerCrash; EnvironmentFault if the process does not start.
    """
    if IN_TAB:
        return _recall(kernels)
    limits = dataclasses.replace(_LIMITS, case=limit, total=limit * max(1, len(kernels)))
    try:
        answers = jobs.ask(KIND, {"kernels": kernels}, limits, count=len(kernels))
    except JobFailure as failure:
        raise _describe_failure(failure.answer, limit) from None
    except (WorkerFailure, OSError) as failed:
        raise jobs.describe_not_started(_DOES, failed) from None
    if not _are_answers(answers, kernels):
        raise CompilerCrash("crash", "the compiler gave no answer that makes sense; change the lines you wrote last")
    return answers


def warm() -> None:
    """Start the process that compiles now, so that the first report does not wait for it.

    Raises: EnvironmentFault if it does not start.
    """
    if IN_TAB:
        return
    try:
        jobs.warm(KIND)
    except (WorkerFailure, OSError) as failed:
        raise jobs.describe_not_started(_DOES, failed) from None


def make_key(kernels: list[dict[str, Any]]) -> str:
    """Return the name of a question in the file of recorded answers."""
    return hashlib.sha256(json.dumps(kernels, sort_keys=True).encode()).hexdigest()


def _recall(kernels: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the answers that were recorded when the site was built. It recorded what the lessons' unchanged cells ask.

    Raises: EnvironmentFault if there is no recorded answer.
    """
    if not _recorded:
        _recorded.update(json.loads(RECORDED.read_text(encoding="utf-8")))
    if (answers := _recorded.get(make_key(kernels))) is None:
        raise EnvironmentFault(
            "a browser tab has no compiler for GPUs. Open this lesson on your machine to see what the compiler makes of this kernel."
        )
    return answers


def _describe_failure(answer: JobAnswer, limit: float) -> Exception:
    if answer.stage is Stage.STARTING:
        return jobs.describe_not_started(_DOES, answer)
    if answer.cause_of_end == "timed out":
        return CompilerCrash(
            "timeout",
            f"compiling takes longer than {limit:g} seconds, and was ended; does `tl.static_range` unroll too much, "
            "or BLOCK hold too many elements",
        )
    if answer.cause_of_end in ("flooded", "too many files"):
        return CompilerCrash("flood", "it writes megabytes while it is compiled, and was ended")
    how = answer.cause_of_end if answer.cause_of_end != "crashed" else _describe_end(answer.exit_code)
    return CompilerCrash("crash", f"the compiler itself crashed on this kernel ({how}); change the lines you wrote last")


def _describe_end(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit code {code}"
    known: dict[int, str] = {
        signal.SIGSEGV: "segmentation fault",
        signal.SIGABRT: "it aborted",
        signal.SIGKILL: "killed, most often for lack of memory",
    }
    return known.get(-code, f"signal {-code}")


_TEXT, _NUMBER = (str,), (int,)
_REPORT = {
    "registers": _NUMBER, "spill_bytes": _NUMBER, "shared_bytes": _NUMBER, "ttir": _TEXT, "ttgir": _TEXT, "ptx": _TEXT,
    "sass": (str, type(None)), "loads": (dict, type(None)), "stores": (dict, type(None)), "lines": (list,), "seconds": (int, float),
}  # fmt: skip
_ERROR = {"cause": _TEXT, "sentence": _TEXT, "unit": _NUMBER, "line": _NUMBER, "column": _NUMBER}


def _are_answers(answers: Any, kernels: list[dict[str, Any]]) -> bool:
    """Return whether the answers have the shape that ``machine.py`` writes: one per kernel, up to the first refusal."""
    if not isinstance(answers, list) or not 1 <= len(answers) <= len(kernels):
        return False
    if not all(_is_answer(answer, kernel) for answer, kernel in zip(answers, kernels, strict=False)):
        return False
    return len(answers) == len(kernels) or "error" in answers[-1]


def _is_answer(answer: Any, kernel: dict[str, Any]) -> bool:
    ((kind, content),) = answer.items() if isinstance(answer, dict) and len(answer) == 1 else (("", {}),)
    asked = {"report": _REPORT} if kernel["through"] == "report" else {"taken": {}}
    shape = (asked | {"error": _ERROR}).get(kind)
    if shape is None or not isinstance(content, dict) or content.keys() != shape.keys():
        return False
    if not all(isinstance(content[name], kinds) for name, kinds in shape.items()):
        return False
    return kind != "report" or (_are_counts(content) and all(map(_is_line, content["lines"])))


def _are_counts(report: dict[str, Any]) -> bool:
    counts = {**(report["loads"] or {}), **(report["stores"] or {})}
    return all(width.isdecimal() and type(count) is int for width, count in counts.items())


def _is_line(line: Any) -> bool:
    """Return whether this is a line's number, the numbers of its lines of PTX, and the numbers of its lines of SASS."""
    if not isinstance(line, list) or len(line) != 3 or type(line[0]) is not int:
        return False
    return all(isinstance(made, list) and all(type(number) is int for number in made) for made in line[1:])
