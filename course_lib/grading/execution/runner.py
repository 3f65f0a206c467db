"""Send a job to a server, and return the bytes of its outputs.

Parent and child are different processes. Only the bytes of the outputs decide a verdict; the
child's own report does not. The parent treats the files of the job as a possible forgery, because
the learner's code may have written them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from course_lib.base.errors import EnvironmentFault
from course_lib.base.plain import decode, encode
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.grading.cases.plan import CaseLaunch, Plan
from course_lib.grading.execution.case_runner import (
    CODE,
    IMPORT_ERROR,
    KERNEL_NAMES,
    name_counts,
    name_error,
    name_input,
    name_output,
)
from course_lib.grading.kind import Mode, find_mode
from course_lib.grading.submission.source import Kernels
from course_lib.grading.verdict import PRINTED_CHARACTERS
from course_lib.launching.far import measure_far
from course_lib.launching.faults import Raised
from course_lib.sandbox import jobs
from course_lib.sandbox.jobs import JobAnswer, ResourceLimits
from course_lib.sandbox.stage import Stage

_NO_CASES: dict[str, Any] = {"cases": [], "rules": None}  # a job that only imports the file
_ERROR_BYTES = 64 << 10
_COUNTS_BYTES = 4 << 10
_MOST_COUNTED = 2**50
_MOST_LINES = 10_000_000
# the most characters of an exception's text, of a fault's words and of a type's name
_TEXT_CHARACTERS, _WORDS_CHARACTERS, _NAME_CHARACTERS = 4000, 1000, 200


@dataclass
class Run:
    """The result of a run. By case number, ``data`` has the bytes of finished cases and ``errors``
    the reported exceptions and faults.

    A case is in both if it finished and has a fault that its outputs do not show: it wrote to an
    input, or read more than its plan allows.

    ``ended`` says how the run ended:

    - "finished".
    - "crashed": ``signal`` may have the signal.
    - "killed": SIGKILL came from outside, twice. The operating system sends it if memory runs out.
    - "died": the server that watched the process ended, twice.
    - "timed out": its processor time was over. "waited": its time by the clock was over.
    - "flooded": it printed too much.
    - "too much memory", "too many files" or "too many processes".
    - "not started": ``printed`` says why. The reason lies in the machine or the course, not in the
      learner's code.

    ``counts`` has what the child counted in the cases whose plans ask for it.

    ``case`` is the case in which the run ended early. ``tier`` is the isolation under which it ran,
    ``left_out`` the cases that this machine has no room for.
    """

    ended: str
    data: dict[int, bytes] = field(default_factory=dict)
    errors: dict[int, Raised] = field(default_factory=dict)
    counts: dict[int, dict[str, int]] = field(default_factory=dict)
    case: int | None = None
    signal: int | None = None  # the number of the signal
    reported: str = ""  # the error of a GPU whose context was lost
    import_error: Raised | None = None
    printed: str = ""
    tier: str = "none"
    left_out: frozenset[int] = frozenset()


def run(
    kernels: Kernels,
    plans: list[Plan],
    mode: str,
    limits: ResourceLimits | None = None,
    take: Callable[[int, bytes], None] | None = None,
    is_over: Callable[[], bool] | None = None,
) -> Run:
    """Run every plan in one child process. If the process is killed from outside, run them once
    more.

    ``take`` gets the number and the bytes of each finished case while others still run. The child
    may change these bytes later: only the returned ones count. Once ``is_over`` returns True, the
    run is stopped, and ends as "timed out".

    Raises: OSError if the job cannot be written or no process started (disk full, no memory);
    EnvironmentFault if the GPU does not answer, if what the process needs cannot be imported, or if
    this machine has not the tier that was asked for.
    """
    way = find_mode(mode)
    if way.compiles:
        _gpu.check_health()
    result = _run_once(kernels, plans, way, limits or way.limits, take, is_over)
    if result.ended == "killed":
        result = _run_once(kernels, plans, way, limits or way.limits, take, is_over)
    return result


def _run_once(
    kernels: Kernels,
    plans: list[Plan],
    mode: Mode,
    limits: ResourceLimits,
    take: Callable[[int, bytes], None] | None,
    is_over: Callable[[], bool] | None,
) -> Run:
    job = {"cases": [encode(CaseLaunch, plan) for plan in plans], "rules": kernels.rules}
    # On a CPU, reserve the address space of rows far apart beforehand. On a GPU the child allocates
    # them, and reports if it cannot.
    sizes = (
        [] if mode.compiles else [measure_far(decode(CaseLaunch, case)) for case in job["cases"]]
    )
    outputs = {IMPORT_ERROR: _ERROR_BYTES}
    for number, plan in enumerate(plans):
        # one byte more, to see one that is too long
        outputs |= {name_output(number): plan.nbytes + 1, name_error(number): _ERROR_BYTES}
        if plan.counted:
            outputs[name_counts(number)] = _COUNTS_BYTES
    answer = jobs.run(
        mode.server,
        job,
        limits,
        inputs=_list_inputs(kernels, plans),
        outputs=outputs,
        count=len(plans),
        reserve={number: size for number, size in enumerate(sizes) if size},
        look=None if take is None else _Arrivals(plans, take).look,
        is_over=is_over,
    )
    result = _collect(plans, answer)
    _gpu.in_doubt = mode.compiles and result.ended != "finished"
    return result


def run_rest(kernels: Kernels, mode: str) -> tuple[int, str] | None:
    """Import the whole file, in a process that runs no case, and check that its own code keeps
    within limits.

    Returns: the line, and words for what the code did; None if it did nothing that an instructor or
    its author should know.
    """
    way = find_mode(mode)
    limits = replace(way.limits, case=_REST_SECONDS, total=_REST_SECONDS)
    answer = jobs.run(
        way.server,
        _NO_CASES,
        limits,
        inputs={CODE: kernels.rest.encode()},
        outputs={IMPORT_ERROR: _ERROR_BYTES},
        count=0,
    )
    raised = _read_raised(answer, IMPORT_ERROR)
    if answer.stage is Stage.STARTING or (raised is None and answer.exit_code == 0):
        return None
    if raised is not None:
        words = _("raises {type} when the file is imported").format(type=raised.type)
        if raised.type == "PermissionError":
            words = _("asked for what the sandbox refuses")
        return raised.line or kernels.rest_line, words
    words = _(_ENDS.get(answer.cause_of_end, _ENDED))
    return kernels.rest_line, words.format(seconds=f"{_REST_SECONDS:g}")


_REST_SECONDS = 3.0
_ENDS = {
    "timed out": N_("did not end within {seconds} s of processor time"),
    "waited": N_("waited or slept until its time was over"),
    "too many processes": N_("started more processes than a check allows"),
    "too much memory": N_("took more memory than a check allows"),
    "too many files": N_("wrote more files than a check allows"),
    "flooded": N_("printed more than a check allows"),
}
_ENDED = N_("ended its own process")


class _Arrivals:
    """Passes on the bytes of each case once, as soon as they are complete."""

    def __init__(self, plans: list[Plan], take: Callable[[int, bytes], None]):
        self.take = take
        self.awaited = {number: plan.nbytes for number, plan in enumerate(plans)}

    def look(self, read: jobs.Read) -> None:
        for number, size in list(self.awaited.items()):
            data = read(name_output(number), size + 1)
            if data is not None and len(data) == size:
                del self.awaited[number]
                self.take(number, data)


class _GpuHealth:
    """Checks the GPU after a child was killed or lost its context, before the next child uses
    it."""

    in_doubt = False

    def check_health(self) -> None:
        """Have the GPU compute something, if it is in doubt.

        Raises: EnvironmentFault if it does not answer.
        """
        if not self.in_doubt:
            return
        gpu = find_mode("gpu")
        # Making a context is enough, because it uses the GPU. No kernel is run.
        answer = jobs.run(gpu.server, _NO_CASES, gpu.limits, inputs={CODE: b""}, count=0)
        if answer.stage is Stage.STARTING:
            raise self._describe_silence(answer.printed)
        self.in_doubt = False

    @staticmethod
    def _describe_silence(output: str) -> EnvironmentFault:
        last = (output.strip().splitlines() or [_("it said nothing")])[-1]
        return EnvironmentFault(
            _(
                "the GPU does not answer since a kernel crashed on it ({said}). `nvidia-smi` shows"
                " whether it is there; `export COURSE_DEVICE=cpu` works meanwhile."
            ).format(said=last[-300:])
        )


_gpu = _GpuHealth()


def _list_inputs(kernels: Kernels, plans: list[Plan]) -> dict[str, bytes]:
    """Return what the child gets, by name: the code, and the memory of each case."""
    inputs = {CODE: kernels.source.encode()}
    for number, plan in enumerate(plans):
        inputs[name_input(number)] = b"".join(tensor.initial_bytes() for tensor in plan.tensors)
    under_test = [
        (plan.kernel_under_test, bool(plan.constexprs["backward"]))
        for plan in plans
        if plan.kernel_under_test
    ]
    return inputs | ({KERNEL_NAMES: json.dumps(under_test).encode()} if under_test else {})


def _collect(plans: list[Plan], answer: JobAnswer) -> Run:
    result = Run(
        "finished", printed=_without(answer.folder, answer.printed)[-PRINTED_CHARACTERS:],
        tier=answer.tier, left_out=answer.left_out,
        signal=answer.signal,
    )  # fmt: skip
    if answer.stage is Stage.STARTING:
        result.ended = "not started"
        return result
    stopped = answer.cause_of_end
    result.import_error = _read_raised(answer, IMPORT_ERROR)
    if result.import_error is not None:
        return result
    for number, plan in enumerate(plans):
        if number in result.left_out:
            continue
        data = answer.outputs.get(name_output(number))
        raised = _read_raised(answer, name_error(number))
        if data is not None and len(data) == plan.nbytes:
            result.data[number] = data
            if plan.counted:
                result.counts[number] = _read_counts(answer, name_counts(number))
            # The case finished, and has a fault.
            if raised is not None and raised.fault is not None:
                result.errors[number] = raised
        elif raised is not None and not raised.lost:
            result.errors[number] = raised
        else:
            result.case, result.ended = number, stopped
            # The context or the process was lost. The kernel did not raise an exception, and no
            # later case ran.
            if raised is not None:
                first_line = (raised.text.splitlines() or [raised.type])[0]
                result.ended, result.reported = "crashed", first_line[:_NAME_CHARACTERS]
            return result
    # All results have arrived, and the process was stopped afterwards.
    if stopped not in ("crashed", "killed", "died", "timed out", "waited"):
        result.case, result.ended = len(plans) - 1, stopped
    return result


def _read_raised(answer: JobAnswer, name: str) -> Raised | None:
    """Return the exception that a case reports, if the report has the form in which the child
    writes it."""
    try:
        raised = decode(Raised, json.loads(answer.outputs.get(name, b"")))
    except (ValueError, RecursionError):
        return None
    most = _TEXT_CHARACTERS if raised.fault is None else _WORDS_CHARACTERS
    text = _without(answer.folder, raised.text)[-most:]
    fault = raised.fault and replace(raised.fault, words=text)
    line = raised.line if 0 < (raised.line or 0) < _MOST_LINES else None
    return replace(raised, type=raised.type[:_NAME_CHARACTERS], text=text, line=line, fault=fault)


def _read_counts(answer: JobAnswer, name: str) -> dict[str, int]:
    """Return what a case counted, if the report has the form in which the child writes it. A count
    is shown, and decides nothing."""
    try:
        counts = decode(dict[str, int], json.loads(answer.outputs.get(name, b"{}")))
    except (ValueError, RecursionError):
        return {}
    return counts if all(0 <= count <= _MOST_COUNTED for count in counts.values()) else {}


def _without(folder: str, text: str) -> str:
    """Return the text without the job's folder, so that two checks of one file give the same
    message. ``folder`` is "" if nothing could name it."""
    if not folder:
        return text
    return (
        text.replace(f"{folder}/{CODE}", _("your file"))
        .replace(f"{folder}/", "")
        .replace(folder, _("the check's folder"))
    )
