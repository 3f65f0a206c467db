"""Keep hidden cases hidden: remove the submission's own words from a run, because they could
contain values of a case.

Without this, a submission could print an input, raise an exception with the input as its text, or
return an array of the input's shape, and the learner would read it in the verdict.
"""

from __future__ import annotations

import builtins
from dataclasses import replace

from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.grading.cases.plan import Plan
from course_lib.grading.execution.runner import Run
from course_lib.grading.verdict import PRINTED_CHARACTERS
from course_lib.launching.faults import Fault, Raised

_TEXT = N_("with hidden cases its text is not shown")
_RETURNED = N_(
    "The function does not return what it should; with hidden cases it is not shown what came back"
)
_FILE_TOO_LARGE, _CUDA_ERROR = "File too large", "CUDA error"
# Exceptions of Triton, PyTorch and the course that a submission can raise, besides Python's own.
# Their names may be shown.
_KNOWN = frozenset(
    "Refused CompilationError CompileTimeAssertionFailure InterpreterError OutOfResources"
    " AcceleratorError WrongReturn Unplaceable".split()
)


def withhold(run: Run, plans: list[Plan], lines: int) -> Run:
    """Return ``run`` without the submission's own words. Its results stay, and are judged as usual.

    Args:
        lines: the number of lines in the submitted file. A line number outside of the file is
            removed: it could be a value of a case.
    """
    count = len(run.printed)
    words = _("{count} characters were printed; with hidden cases they are not shown.")
    words = (
        _("The last {count} characters were printed; with hidden cases they are not shown.")
        if count >= PRINTED_CHARACTERS
        else words
    )
    return replace(
        run,
        printed=words.format(count=count) if count else "",
        reported=(
            _CUDA_ERROR
            if _CUDA_ERROR in run.reported
            else _("its own words")
            if run.reported
            else ""
        ),
        import_error=run.import_error and _withhold_raised(run.import_error, None, lines),
        errors={
            number: _withhold_raised(raised, plans[number], lines)
            for number, raised in run.errors.items()
        },
    )


def round_error(error: float | None) -> float | None:
    """Round the largest error of a case to one digit. It then shows how far off the case is, and no
    value."""
    return None if error is None else float(f"{error:.1g}")


def _withhold_raised(raised: Raised, plan: Plan | None, lines: int) -> Raised:
    kind, fault = raised.type, raised.fault
    text = (
        _(_RETURNED)
        if kind == "WrongReturn"
        else _FILE_TOO_LARGE
        if _FILE_TOO_LARGE in raised.text
        else _(_TEXT)
    )
    if fault is not None:
        text = _describe_fault(fault, plan)
        fault = replace(fault, line=_check_line(fault.line, lines), words=text)
    is_known = kind in _KNOWN or isinstance(getattr(builtins, kind, None), type)
    line = _check_line(raised.line, lines)
    columns = {} if line else {"column": None, "end_column": None}
    return replace(
        raised,
        type=kind if is_known else _("An exception"),
        text=text,
        line=line,
        fault=fault,
        **columns,
    )


def _describe_fault(fault: Fault, plan: Plan | None) -> str:
    names = [tensor.name for tensor in plan.tensors] if plan else []
    return _(fault.kind.withheld).format(
        tensor=fault.tensor if fault.tensor in names else _("a tensor")
    )


def _check_line(line: int | None, lines: int) -> int | None:
    return line if line is not None and 1 <= line <= lines else None
