"""Hidden cases stay hidden: of what a submission said while it ran on them, only what holds none of their values is passed on.

A learner who reads the verdict could otherwise print an input, raise it as text, or return an array of its shape.
"""

from __future__ import annotations

import builtins
from dataclasses import replace

from course_lib.grading.cases.plan import Plan
from course_lib.grading.execution.runner import Run
from course_lib.grading.verdict import PRINTED_CHARACTERS

_TEXT = "with hidden cases its text is not shown"
_RETURNED = "The function does not return what it should; with hidden cases it is not shown what came back"
_FILE_TOO_LARGE, _CUDA_ERROR = "File too large", "CUDA error"
# the exceptions of Triton, PyTorch and the course that a submission meets, besides Python's own
_KNOWN = frozenset(
    "Refused CompilationError CompileTimeAssertionFailure InterpreterError OutOfResources AcceleratorError WrongReturn Unplaceable".split()
)
_OPERATIONS = frozenset("load store add and cas exch fadd max min or umax umin xchg xor".split())
_OTHER_FAULTS = {
    "input": "{tensor} is an input, and is written",
    "empty": "Most loads have no lane",
    "alone": "One program does the work of the others",
    "calls": "An entry point leaves its work to another",
    "uncalled": "An entry point does not use the one that it is to use",
    "ctx": "A tensor is kept on ctx as an attribute",
    "unwritten": "{tensor} is read before it is written",
    "reads": "It reads {tensor} more often than the exercise allows",
    "race": "Two programs touch {tensor} with nothing to order them",
    "both store": "Two programs store into {tensor} with nothing to order them",
    "gave up": "A program gives up a wait, and touches {tensor} all the same",
    "no barrier": "A barrier is missing before {tensor} is touched",
    "deadlock": "The programs wait for one another",
    "livelock": "The programs wait for one another",
    "order": "{tensor} depends on the order of the programs",
}


def withhold(run: Run, plans: list[Plan], lines: int) -> Run:
    """``run`` without words of the submission's. ``lines``: how many its file has; no other number is taken for one of them.

    Its results stay whole: what is wrong with them is judged as ever.
    """
    count = len(run.printed)
    last = "The last " if count >= PRINTED_CHARACTERS else ""
    return replace(
        run,
        printed=f"{last}{count} characters were printed; with hidden cases they are not shown." if count else "",
        reported=_CUDA_ERROR if _CUDA_ERROR in run.reported else "its own words" if run.reported else "",
        import_error=run.import_error and _withhold_raised(run.import_error, None, lines),
        errors={number: _withhold_raised(raised, plans[number], lines) for number, raised in run.errors.items()},
    )


def round_error(error: float | None) -> float | None:
    """The largest error of a case to one digit: it says how far off the case is, and holds no value."""
    return None if error is None else float(f"{error:.1g}")


def _withhold_raised(raised: dict, plan: Plan | None, lines: int) -> dict:
    kind, fault = raised["type"], raised["fault"]
    text = _RETURNED if kind == "WrongReturn" else _FILE_TOO_LARGE if _FILE_TOO_LARGE in raised["text"] else _TEXT
    if fault is not None:
        fault = fault | {"line": _check_line(fault["line"], lines)}
        text = _describe_fault(fault, plan)
    known = kind in _KNOWN or isinstance(getattr(builtins, kind, None), type)
    line = _check_line(raised["line"], lines)
    columns = {} if line else {"column": None, "end_column": None}
    return raised | columns | {"type": kind if known else "An exception", "text": text, "line": line, "fault": fault}


def _describe_fault(fault: dict, plan: Plan | None) -> str:
    names = [tensor.name for tensor in plan.tensors] if plan else []
    tensor = fault["tensor"] if fault["tensor"] in names else "a tensor"
    if fault["kind"] in _OPERATIONS:
        deed = "reads" if fault["kind"] == "load" else "writes"
        return f"It {deed} outside {tensor}; with hidden cases it is not shown where"
    return _OTHER_FAULTS.get(fault["kind"], "It does with {tensor} what it must not").format(tensor=tensor)


def _check_line(line: int | None, lines: int) -> int | None:
    return line if line is not None and 1 <= line <= lines else None
