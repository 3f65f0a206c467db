"""Ask a confined process (``machine.py``) to compile kernels, and check its answers."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from course_lib.base.errors import EnvironmentFault
from course_lib.base.plain import decode, encode
from course_lib.base.tab import IN_TAB
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.base.worker import WorkerFailure
from course_lib.compiler.compile_job import CompileJob, CompilerAnswer
from course_lib.sandbox import jobs
from course_lib.sandbox.isolation import Needs
from course_lib.sandbox.jobs import JobAnswer, JobFailure, ResourceLimits
from course_lib.sandbox.machine import ServerKind
from course_lib.sandbox.stage import Stage

_DOES = N_("compiles kernels")
KIND = ServerKind("course_lib.compiler.machine:make_machine", needs=Needs.PROGRAMS)
# Ten times the usual need. An endless unrolled loop hits this limit before the machine starts to
# swap.
_LIMITS = ResourceLimits(
    address_bytes=8 << 30,
    memory_bytes=0,
    file_bytes=16 << 20,
    open_files=1024,
    processes=32,
    log_bytes=1 << 20,
)


# exists only in a browser tab; the build of the site makes it
RECORDED = Path(__file__).with_name("recorded.json")
_recorded: dict[str, list[dict[str, Any]]] = {}


class CompilerCrash(Exception):
    """The process that compiles crashed or was stopped; ``cause`` is "crash", "timeout" or
    "flood"."""

    def __init__(self, cause: str, sentence: str):
        super().__init__(sentence)
        self.cause = cause


def ask(
    kernels: list[CompileJob], limit: float, is_over: Callable[[], bool] | None = None
) -> list[CompilerAnswer]:
    """Return the answers to a submission's kernels, up to the first refusal. ``limit``: processor
    seconds per kernel. Once ``is_over`` returns True, the answers are no longer needed.

    A kernel can take over the process that answers. So the shape of the answers is checked here,
    but their truth cannot be.

    Raises: CompilerCrash; EnvironmentFault if the process does not start.
    """
    plain = send(encode(list[CompileJob], kernels), limit, is_over)
    try:
        return _read_answers(plain, kernels)
    except ValueError:
        raise CompilerCrash(
            "crash",
            _("the compiler gave no answer that makes sense; change the lines you wrote last"),
        ) from None


def send(
    kernels: list[dict[str, Any]], limit: float, is_over: Callable[[], bool] | None = None
) -> Any:
    """Return the answers as plain data, of any shape. Otherwise as :func:`ask`, to whose kernels
    these are the plain data."""
    if IN_TAB:
        return _recall(kernels)
    limits = dataclasses.replace(_LIMITS, case=limit, total=limit * max(1, len(kernels)))
    try:
        return jobs.ask(KIND, {"kernels": kernels}, limits, count=len(kernels), is_over=is_over)
    except JobFailure as failure:
        raise _describe_failure(failure.answer, limit) from None
    except (WorkerFailure, OSError) as failed:
        raise jobs.describe_not_started(_DOES, failed) from None


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
    """Return the answers that were recorded when the site was built. It recorded what the lessons'
    unchanged cells ask.

    Raises: EnvironmentFault if there is no recorded answer.
    """
    if not _recorded:
        _recorded.update(json.loads(RECORDED.read_text(encoding="utf-8")))
    if (answers := _recorded.get(make_key(kernels))) is None:
        raise EnvironmentFault(
            _(
                "a browser tab has no compiler for GPUs. Open this lesson on your machine to see"
                " what the compiler makes of this kernel."
            )
        )
    return answers


def _describe_failure(answer: JobAnswer, limit: float) -> Exception:
    if answer.stage is Stage.STARTING:
        return jobs.describe_not_started(_DOES, answer)
    if answer.cause_of_end == "timed out":
        return CompilerCrash(
            "timeout",
            _(
                "compiling takes longer than {limit:g} seconds of processor time, and was ended;"
                " does `tl.static_range` unroll too much, or BLOCK hold too many elements"
            ).format(limit=limit),
        )
    if answer.cause_of_end == "waited":
        return CompilerCrash(
            "timeout",
            _(
                "the file waits or sleeps while it is compiled, and was ended; compiling does not"
                " wait"
            ),
        )
    if answer.cause_of_end in ("flooded", "too many files"):
        return CompilerCrash("flood", _("it writes megabytes while it is compiled, and was ended"))
    ending = (
        answer.cause_of_end if answer.cause_of_end != "crashed" else _describe_end(answer.exit_code)
    )
    words = _("the compiler itself crashed on this kernel ({how}); change the lines you wrote last")
    return CompilerCrash("crash", words.format(how=ending))


def _describe_end(code: int | None) -> str:
    if code is None or code >= 0:
        return _("exit code {code}").format(code=code)
    signal_names: dict[int, str] = {
        signal.SIGSEGV: _("segmentation fault"),
        signal.SIGABRT: _("it aborted"),
        signal.SIGKILL: _("killed, most often for lack of memory"),
    }
    return signal_names.get(-code, _("signal {number}").format(number=-code))


def _read_answers(plain: Any, kernels: list[CompileJob]) -> list[CompilerAnswer]:
    """Return the answers: one per kernel, up to the first refusal.

    Raises: ValueError if they have not the form that ``machine.py`` writes.
    """
    answers = decode(list[CompilerAnswer], plain)
    fit = all(
        (answer.report is not None) == (kernel.through == "report" and answer.refusal is None)
        for answer, kernel in zip(answers, kernels, strict=False)
    )
    if (
        not fit
        or not 1 <= len(answers) <= len(kernels)
        or (len(answers) < len(kernels) and answers[-1].refusal is None)
    ):
        raise ValueError("the answers do not fit the kernels")
    return answers
