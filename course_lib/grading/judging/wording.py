"""A verdict's words, from the judged cases: the first failing case, what the cases share, the line that is shown."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from course_lib.grading.cases.plan import Plan
from course_lib.grading.cases.raised import FaultKind, Raised
from course_lib.grading.judging import diagnosis, location
from course_lib.grading.judging.causes import CAUSES, make_sentence
from course_lib.grading.judging.elements import Element
from course_lib.grading.judging.judge import Deviation, Judged
from course_lib.grading.submission import places
from course_lib.grading.submission.places import Span
from course_lib.grading.verdict import Finding, Place

_LARGE = 4096.0  # a number that nobody works out by hand
BEYOND = 1e9  # allowed errors: where next to none is allowed, how many more says nothing


def write_message(cause: str, evidence: str, kind: str, entry_points: tuple[str, ...] = ()) -> str:
    """Cause, evidence and question in one paragraph, for an exercise of this kind with these entry points."""
    headline, question = CAUSES[cause].word_for(kind, entry_points)
    return f"{make_sentence(headline)} {evidence} {question}"


def format_multiple(ratio: float) -> str:
    return f"{ratio:.1f} x" if ratio < 100 else f"{ratio:.3g} x" if ratio < 1e5 else f"{ratio:.1e} x"


def format_worst(ratio: float) -> str:
    """By how much the worst of several elements is off, after the word "by"."""
    return f"up to {format_multiple(ratio)}" if ratio < BEYOND else f"more than {BEYOND:.0e} x"


def format_number(value: float) -> str:
    """Six digits, or all of a whole number that is not too long: a count is exact."""
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e12 else f"{value:.6g}"


def count_wrong(judged: list[Judged], failed: list[Judged], be: str = "") -> str:
    """How many of the cases are wrong, and what only they have in common; ``be`` is a verb, or nothing."""
    trait = diagnosis.describe_shared_trait(judged, failed) if len(failed) > 1 else ""
    return f"{len(failed)} of {sum(j.ran for j in judged)} cases {be}wrong{f', all {trait}' if trait else ''}"


def count_caught(judged: list[Judged]) -> str:
    """How many of the tests in a submission find every wrong kernel and accuse no right one; what the others do."""
    tests: dict[str, list[Judged]] = {}
    for j in judged:
        tests.setdefault(j.plan.entry_point, []).append(j)
    missing = []
    for name, cases in tests.items():
        failed = [j for j in cases if not j.passed]
        if not failed:
            continue
        accused = sum(not j.plan.expected["raised"].values.any() for j in failed)
        wrong = sum(j.plan.expected["raised"].values.any() for j in cases)
        missed = f"misses {len(failed) - accused} of {wrong} wrong kernels" if len(failed) > accused else ""
        unjust = f"accuses {accused} of {len(cases) - wrong} right ones" if accused else ""
        missing.append(f"{name} {' and '.join(part for part in (missed, unjust) if part)}")
    caught = f"{len(tests) - len(missing)} of {len(tests)} bugs caught"
    return f"{caught}: {'; '.join(missing)}" if missing else caught


def describe_finding(judged: Judged) -> Finding:
    """What is wrong in a failed case, where it shows first."""
    case = judged.plan.case.describe()
    if outcome := judged.plan.case.describe_outcome(judged.plan.entry_point, judged.outputs):
        return Finding("", make_sentence(outcome))
    if judged.fault:
        return Finding(case, judged.fault.words)
    if judged.changed:
        name, changed = next(iter(judged.changed.items()))
        return Finding(case, f"{changed} {'element' if changed == 1 else 'elements'} of the input {name} changed")
    if judged.outside and not any(d.kind is Element.OFF for d in judged.deviations):
        name, positions = next(iter(judged.outside.items()))
        shown = ", ".join(str(int(p)) for p in positions[:5]) + (", ..." if len(positions) > 5 else "")
        shape = str(judged.plan.tensor(name).shape).replace(",)", ")")
        return Finding(
            case,
            f"{len(positions)} elements outside {name} were written, at {shown} from its start ({name} has shape {shape})",
        )
    if judged.plan.constexprs.get("change"):  # nothing of the learner's has this name
        return Finding(
            case,
            "x was changed after the forward pass, and backward ran all the same: PyTorch checks only what ctx.save_for_backward keeps",
        )
    return _describe_deviation(case, judged.deviations[0])


def describe_first_failure(judged: Judged, number: int, count: int) -> str:
    """One line on a case that is wrong, while others still run. ``number`` counts from 0."""
    if judged.deviations and not judged.plan.case.describe_outcome(judged.plan.entry_point, judged.outputs):
        worst = next((d for d in judged.deviations if d.kind is Element.OFF), judged.deviations[0])
        words = _describe_extent(worst)
    else:
        words = describe_finding(judged).words
    return f"Case {number + 1} of {count} is wrong ({judged.plan.case.describe()}): {words}."


def _describe_extent(deviation: Deviation) -> str:
    """The output, and by how much it is wrong."""
    if deviation.kind is Element.UNWRITTEN:
        what = "all of" if deviation.count == deviation.size else f"{deviation.count} of {deviation.size} elements of"
        return f"{what} {deviation.output} never written"
    if deviation.ratio is None:
        return _describe_numbers(deviation)
    return f"{deviation.output} is off by {format_worst(deviation.ratio)} the allowed error"


# of causes that follow from some of the failed cases: whether a case is one of these
_APPLIES: dict[str, Callable[[Judged], bool]] = {
    "input_changed": lambda j: j.changes_input,
    "load_outside": lambda j: j.fault is not None and j.fault.kind is FaultKind.LOAD,
    "store_outside": lambda j: bool(j.outside) or (j.fault is not None and j.fault.kind is FaultKind.STORE),
    "offset_32_bit": lambda j: j.plan.case.is_far and not j.plan.case.has_far_columns,
    "column_offset_32_bit": lambda j: j.plan.case.has_far_columns,
    **dict.fromkeys(
        ("not_written", "statistics_not_saved", "partly_written", "only_one_block"),
        lambda j: any(d.kind is Element.UNWRITTEN for d in j.deviations),
    ),
}


def choose_shown(failed: list[Judged], cause: str) -> Judged:
    """The failing case that is shown: the smallest of those that are wrong in the way the cause is about."""
    return min(list_alike(failed, cause), key=_measure_size)


def list_alike(failed: list[Judged], cause: str) -> list[Judged]:
    """The failing cases of one entry point that are wrong in the way the cause is about."""
    applies = _APPLIES.get(cause)
    pool = [j for j in failed if applies(j)] if applies else []
    pool = pool or failed
    first = pool[0]
    return [j for j in pool if j.plan.entry_point == first.plan.entry_point and _name_fault(j) == _name_fault(first)]


def list_inputs(plan: Plan, parameters: tuple[str, ...], with_values: bool) -> tuple[tuple[str, str], ...]:
    """What the entry point gets, by name, as a person writes it. ``parameters`` are its own names for it, in order. Without values:
    sizes and strides alone.

    Sizes that stand in the case's words are left out, and what a kernel is told of rows that follow each other.
    """
    given = {value for kind, value in plan.arguments if kind == "tensor"} | {"dy"}  # autograd hands dy over itself
    found = [
        (tensor.name, _write_numbers(tensor.values.astype(np.float64).tolist()))
        for tensor in plan.tensors
        if with_values and tensor.name in given and tensor.values is not None and not tensor.scratch
    ]
    told = ("M", "N", "n") if not plan.grid or plan.case.layout != "packed" else parameters
    for name, (kind, value) in zip(parameters, plan.arguments, strict=False):
        found += [(name, str(value))] if kind == "int" and name not in told else []
    found += [("eps", f"{value:g}") for kind, value in plan.arguments if kind == "float" and with_values]
    return tuple(found)


def _write_numbers(values: Any) -> str:
    return f"[{', '.join(map(_write_numbers, values))}]" if isinstance(values, list) else format_number(values)


def _measure_size(judged: Judged) -> tuple[bool, bool, bool, int]:
    """What is easiest to follow comes first: plain numbers, then few of them."""
    case = judged.plan.case
    large = any(not (np.abs(values) <= _LARGE).all() for values in judged.plan.inputs.values())  # or a NaN
    return case.has_bad_row, case.is_far, large, case.M * case.N


def _name_fault(judged: Judged) -> str | Element:
    if judged.fault:
        return judged.fault.kind
    if judged.changed:
        return "changed"
    if judged.outside and not any(d.kind is Element.OFF for d in judged.deviations):
        return "outside"
    return judged.deviations[0].kind


def _describe_deviation(case: str, deviation: Deviation) -> Finding:
    where = [_name_element(deviation.output, index) for index in deviation.where]
    if deviation.kind is Element.UNWRITTEN:
        return Finding(case, f"{_describe_extent(deviation)}, from {where[0]} on")
    also = f" (first: {', '.join(where)})" if deviation.count > 1 else ""
    numbers = _describe_numbers(deviation)
    extent = f"{deviation.count} of {deviation.size} elements{also}"
    of_first = {
        "element": where[0],
        "got": deviation.got,
        "want": deviation.want,
        "wrong": deviation.count,
        "size": deviation.size,
    }
    if deviation.ratio is None:
        return Finding(case, numbers if deviation.size == 1 else f"{numbers}; {extent}", **of_first)
    words = f"{_describe_extent(deviation)} in {extent}; {numbers}"
    return Finding(case, words, **of_first, ratio=deviation.first_ratio, worst=deviation.ratio)


def _describe_numbers(deviation: Deviation) -> str:
    element = _name_element(deviation.output, deviation.where[0])
    if deviation.kind is Element.WRONG_ZERO:
        return f"{element} is {format_number(deviation.got)} where {format_number(deviation.want)} belongs"
    return f"{element} is {format_number(deviation.got)}, it should be {format_number(deviation.want)}"


def _name_element(output: str, index: tuple[int, ...]) -> str:
    return f"{output}[{', '.join(map(str, index))}]" if index else output


def find_place(judged: Judged, cause: str, file: str, text: str, entry_points: tuple[str, ...]) -> Place | None:
    """The line of the learner's ``text`` that the evidence of a failed case points to; None if it points to none.

    That is the line of the cause, where what feeds the wrong output has code of the form that the cause speaks of. Else a fault in memory
    has its line. A wrong number has the line that makes it, if that is one assignment; any other wrong output, and a number made on
    the way, the line that writes it, if there is only one. Where the mistake was made is then another question, so the line is
    labelled with what happens there.
    """
    tree = ast.parse(text)
    flow = _find_flow(judged, tree, entry_points)
    if flow is not None and (slip := location.find_slip(cause, flow)) is not None:
        return places.make_place(file, text, places.find_span(slip))
    if judged.fault:
        line = judged.fault.line
        return places.make_place(file, text, places.find_access(tree, line, judged.fault.kind)) if line else None
    subject = _find_subject(judged)
    if subject is None or judged.plan.case.describe_outcome(judged.plan.entry_point, judged.outputs):
        return None
    entry_point, arguments = judged.plan.entry_point, judged.plan.arguments
    is_number = bool(judged.deviations) and judged.deviations[0].kind is not Element.UNWRITTEN and not judged.changed
    others = (_STATISTICS | {tensor.name for tensor in judged.plan.tensors}) - {subject}
    if judged.plan.grid:
        of_store = tree, entry_points, entry_point, arguments.index(("tensor", subject))
        making = places.find_making_of_stored(*of_store, others) if is_number else None
        span, does = (making, "made") if making else (places.find_store(*of_store), "stored")
    else:
        returned = tree, entry_point, *_number_returned(judged.plan, subject)
        making = places.find_making_of_returned(*returned, others) if is_number else None
        value = places.find_returned(*returned)
        whole = places.find_return(tree, entry_point)
        part = places.find_span(value) if value is not None and returned[-1] > 1 else whole
        span, does = (making, "made") if making else (part, "returned")
    return span and places.make_place(file, text, span, f"{subject} is {does} here")


def _find_flow(judged: Judged, tree: ast.Module, entry_points: tuple[str, ...]) -> location.Flow | None:
    """What feeds the wrong output, or the access that went wrong; None where no one store, return or access is known."""
    plan, subject = judged.plan, _find_subject(judged) if judged.deviations or judged.outside else None
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    home = next((node for node in functions if node.name == plan.entry_point), None)
    if home is None:
        return None
    parameters = [argument.arg for argument in (*home.args.posonlyargs, *home.args.args)]
    tensors = {name: to for to, (kind, name) in zip(parameters, plan.arguments, strict=False) if kind == "tensor"}
    if judged.fault and judged.fault.line:
        line = judged.fault.line
        access = places.find_only_access(tree, line, judged.fault.kind)
        inside = next((node for node in functions if node.lineno <= line <= (node.end_lineno or line)), home)
        return access and location.Flow(tree, inside, judged.fault.tensor, access, access, tensors)
    if judged.fault or judged.changed or subject is None:
        return None
    if not plan.grid:
        value = places.find_returned(tree, plan.entry_point, *_number_returned(plan, subject))
        return value and location.Flow(tree, home, subject, value, None, tensors)
    found = places.find_only_store(tree, entry_points, plan.entry_point, plan.arguments.index(("tensor", subject)))
    value = found and places.find_stored(found[1])
    return location.Flow(tree, found[0], subject, value, found[1], tensors) if found and value else None


def _number_returned(plan: Plan, output: str) -> tuple[int, int]:
    """As which value of how many the entry point returns ``output``."""
    outputs = [tensor.name for tensor in plan.tensors if tensor.is_output]
    names = _GRADIENTS if plan.entry_point == "backward" else outputs
    return names.index(output) if output in names else 0, len(names)


_GRADIENTS = ["dx", "dw", "db", "eps"]  # backward returns a value for each argument of forward
_STATISTICS = frozenset({"mean", "var", "rstd"})


def find_return(function: str, file: str, text: str) -> Place | None:
    """The line in which a function of the learner's returns, if there is only one."""
    span = places.find_return(ast.parse(text), function)
    return span and places.make_place(file, text, span)


def _find_subject(judged: Judged) -> str | None:
    """The tensor that the finding is about, if the learner's code writes or returns it."""
    if judged.changed:
        return next(iter(judged.changed)) if judged.plan.grid else None
    if judged.outside and not any(d.kind is Element.OFF for d in judged.deviations):
        return next(iter(judged.outside))
    output = judged.deviations[0].output
    return (
        None if judged.plan.constexprs.get("change") else output
    )  # autograd's refusal of a changed x is no tensor of theirs


def find_raise(raised: Raised, file: str, text: str) -> Place | None:
    """The line of an exception."""
    line = raised.line
    if not line or line == 1:  # what runs has the course's imports in its first line, and nothing of the learner's
        return None
    return places.make_place(file, text, Span(line, raised.column, raised.end_column))
