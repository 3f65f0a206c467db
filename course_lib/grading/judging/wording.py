"""Write a verdict's words from the judged cases: the failing case that is shown, what the failing
cases share, the line."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from course_lib.base.translation import gettext as _
from course_lib.base.words import list_words
from course_lib.catalog import Exercise
from course_lib.grading.cases.plan import Plan
from course_lib.grading.judging import diagnosis, known_lines, location
from course_lib.grading.judging.causes import CAUSES, make_sentence
from course_lib.grading.judging.elements import Element
from course_lib.grading.judging.judge import Deviation, Judged
from course_lib.grading.submission import places
from course_lib.grading.submission.places import Span
from course_lib.grading.verdict import Finding, Place
from course_lib.launching.faults import Fault, FaultKind, Group, Raised

_LARGE = 4096.0  # cases with larger numbers are shown last: they are hard to work out by hand
# allowed errors; a larger multiple says nothing, because almost no error is allowed there
BEYOND = 1e9


def write_message(cause: str, evidence: str, kind: str, entry_points: tuple[str, ...] = ()) -> str:
    """Write cause, evidence and question in one paragraph, for an exercise of this kind with these
    entry points."""
    headline, question = CAUSES[cause].word_for(kind, entry_points)
    return f"{make_sentence(headline)} {evidence} {question}"


def format_multiple(ratio: float) -> str:
    return _("{number} x").format(
        number=f"{ratio:.1f}" if ratio < 100 else f"{ratio:.3g}" if ratio < 1e5 else f"{ratio:.1e}"
    )


def format_number(value: float) -> str:
    """Write a number with six digits; a whole number below 1e12 with all its digits, because a
    count is exact."""
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e12 else f"{value:.6g}"


def count_wrong(
    judged: list[Judged], failed: list[Judged], shown: Judged, as_sentence: bool = False
) -> str:
    """Say how many of the cases are wrong, and what only they have in common, with the case that is
    ``shown``, which may be none of them."""
    words = _("{wrong} of {cases} cases wrong{trait}")
    if as_sentence:
        words = (
            _("{wrong} of {cases} cases is wrong{trait}.")
            if len(failed) == 1
            else _("{wrong} of {cases} cases are wrong{trait}.")
        )
    other = [] if any(shown is j for j in failed) else [shown]
    trait = (
        diagnosis.describe_shared_trait([*judged, *other], [*failed, *other])
        if len(failed) > 1
        else ""
    )
    shared = _(", all {trait}").format(trait=trait) if trait else ""
    return words.format(wrong=len(failed), cases=sum(j.ran for j in judged), trait=shared)


def count_caught(judged: list[Judged]) -> str:
    """Say how many tests of a submission find every wrong kernel and accuse no right one, and what
    the other tests do."""
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
        missed = _("misses {missed} of {wrong} wrong kernels").format(
            missed=len(failed) - accused, wrong=wrong
        )
        unjust = _("accuses {accused} of {right} right ones").format(
            accused=accused, right=len(cases) - wrong
        )
        both = _("{missed} and {unjust}").format(missed=missed, unjust=unjust)
        missing.append(
            f"{name} {missed if not accused else unjust if len(failed) == accused else both}"
        )
    caught = _("{caught} of {bugs} bugs caught").format(
        caught=len(tests) - len(missing), bugs=len(tests)
    )
    return (
        _("{caught}: {missing}").format(caught=caught, missing=_("; ").join(missing))
        if missing
        else caught
    )


def describe_finding(judged: Judged) -> Finding:
    """Describe what is wrong in a failed case, by the first sign of it."""
    case = judged.plan.case.describe()
    if outcome := judged.plan.case.describe_outcome(judged.plan.entry_point, judged.outputs):
        return Finding("", make_sentence(outcome))
    if judged.fault:
        return Finding(case, judged.fault.words)
    if judged.changed:
        name, changed = next(iter(judged.changed.items()))
        words = (
            _("{count} element of the input {name} changed")
            if changed == 1
            else _("{count} elements of the input {name} changed")
        )
        return Finding(case, words.format(count=changed, name=name))
    if _is_about_outside(judged):
        name, positions = next(iter(judged.outside.items()))
        shown = list_words([*map(int, positions[:5]), *(["..."] if len(positions) > 5 else [])])
        shape = str(judged.plan.tensor(name).shape).replace(",)", ")")
        words = _(
            "{count} elements outside {name} were written, at {places} from its start ({name} has"
            " shape {shape})"
        )
        return Finding(
            case, words.format(count=len(positions), name=name, places=shown, shape=shape)
        )
    # the grader makes this output; the learner's code has no name for it
    if judged.plan.constexprs.get("change"):
        return Finding(
            case,
            _(
                "x was changed after the forward pass, and backward ran all the same: PyTorch"
                " checks only what ctx.save_for_backward keeps"
            ),
        )
    return _describe_deviation(case, judged.deviations[0])


def describe_first_failure(judged: Judged, number: int, count: int) -> str:
    """Write one line about a wrong case while other cases still run. ``number`` counts from 0."""
    if judged.deviations and not judged.plan.case.describe_outcome(
        judged.plan.entry_point, judged.outputs
    ):
        worst = next((d for d in judged.deviations if d.kind is Element.OFF), judged.deviations[0])
        words = _describe_extent(worst)
    else:
        words = describe_finding(judged).words
    return _("Case {number} of {count} is wrong ({case}): {words}.").format(
        number=number + 1, count=count, case=judged.plan.case.describe(), words=words
    )


def _describe_extent(deviation: Deviation) -> str:
    """Name the output, and say by how much it is wrong."""
    if deviation.kind is Element.UNWRITTEN:
        words = _("{count} of {size} elements of {output} never written")
        words = _("all of {output} never written") if deviation.count == deviation.size else words
        return words.format(count=deviation.count, size=deviation.size, output=deviation.output)
    if deviation.ratio is None:
        return _describe_numbers(deviation)
    if deviation.ratio < BEYOND:
        words = _("{output} is off by up to {multiple} the allowed error")
        multiple = format_multiple(deviation.ratio)
    else:
        words = _("{output} is off by more than {multiple} the allowed error")
        multiple = _("{number} x").format(number=f"{BEYOND:.0e}")
    return words.format(output=deviation.output, multiple=multiple)


# For causes that only some of the failed cases show: a function that is True for such a case.
_APPLIES: dict[str, Callable[[Judged], bool]] = {
    "input_changed": lambda j: j.changes_input,
    "load_outside": lambda j: j.fault is not None and j.fault.kind is FaultKind.LOAD,
    "store_outside": lambda j: (
        bool(j.outside) or (j.fault is not None and j.fault.kind is FaultKind.STORE)
    ),
    "read_too_early": lambda j: (
        j.fault is not None and j.fault.kind in (FaultKind.STALE, FaultKind.STALE_IN_AN_ORDER)
    ),
    "offset_32_bit": lambda j: j.plan.case.is_far and not j.plan.case.has_far_columns,
    "column_offset_32_bit": lambda j: j.plan.case.has_far_columns,
    **dict.fromkeys(
        ("not_written", "statistics_not_saved", "only_one_block"),
        lambda j: Element.UNWRITTEN in j.kinds,
    ),
    "partly_written": lambda j: any(
        d.kind is Element.UNWRITTEN and d.count < d.size for d in j.deviations
    ),
}


def choose_shown(failed: list[Judged], cause: str) -> Judged:
    """Choose the failing case that is shown: the easiest one that is wrong in the way that the
    cause names."""
    return min(list_alike(failed, cause), key=_measure_size)


def list_alike(failed: list[Judged], cause: str) -> list[Judged]:
    """Return the failing cases of one entry point that are wrong in the way that the cause
    names."""
    applies = _APPLIES.get(cause, lambda j: j.fault is not None and j.fault.kind.cause == cause)
    pool = [j for j in failed if applies(j)] or failed
    smallest = pool[0]
    return [
        j
        for j in pool
        if j.plan.entry_point == smallest.plan.entry_point
        and _name_fault(j) == _name_fault(smallest)
    ]


def list_inputs(
    plan: Plan, parameters: tuple[str, ...], with_values: bool
) -> tuple[tuple[str, str], ...]:
    """Return name and value of what the entry point gets, written for a learner. ``parameters`` are
    the entry point's own names, in order. Without values only sizes and strides are listed.

    Sizes that the case's words already name are left out, and for a kernel with packed rows all
    integers.
    """
    argument_names = {*plan.arguments, "dy"}  # autograd passes dy, so no argument has it
    inputs = [
        (tensor.name, _write_numbers(tensor.values.astype(np.float64).tolist()))
        for tensor in plan.tensors
        if with_values
        and tensor.name in argument_names
        and tensor.values is not None
        and not tensor.scratch
    ]
    shown_numbers = ("M", "N", "n") if not plan.grid or plan.case.layout != "packed" else parameters
    for name, value in zip(parameters, plan.arguments, strict=False):
        if isinstance(value, int) and name not in shown_numbers:
            inputs.append((name, str(value)))
    names = parameters if plan.grid else ["eps"] * len(plan.arguments)
    numbers = zip(names, plan.arguments, strict=False)
    inputs += [
        (name, f"{value:g}") for name, value in numbers if isinstance(value, float) and with_values
    ]
    return tuple(inputs)


def _write_numbers(values: Any) -> str:
    return (
        f"[{', '.join(map(_write_numbers, values))}]"
        if isinstance(values, list)
        else format_number(values)
    )


def _measure_size(judged: Judged) -> tuple[bool, bool, bool, int]:
    """Return a sort key that puts the easiest case first: plain numbers, then few of them."""
    case = judged.plan.case
    # also True for a NaN
    large = any(not (np.abs(values) <= _LARGE).all() for values in judged.plan.inputs.values())
    return case.has_bad_row, case.is_far, large, case.M * case.N


def _name_fault(judged: Judged) -> str | Element:
    if judged.fault:
        return judged.fault.kind
    if judged.changed:
        return "changed"
    if _is_about_outside(judged):
        return "outside"
    return judged.deviations[0].kind


def _describe_deviation(case: str, deviation: Deviation) -> Finding:
    where = [_name_element(deviation.output, index) for index in deviation.where]
    if deviation.kind is Element.UNWRITTEN:
        return Finding(
            case,
            _("{extent}, from {element} on").format(
                extent=_describe_extent(deviation), element=where[0]
            ),
        )
    also = (
        _(" (first: {elements})").format(elements=list_words(where)) if deviation.count > 1 else ""
    )
    numbers = _describe_numbers(deviation)
    wrong = _("{count} of {size} elements{first}").format(
        count=deviation.count, size=deviation.size, first=also
    )
    of_first = {
        "element": where[0],
        "got": deviation.got,
        "want": deviation.want,
        "wrong": deviation.count,
        "size": deviation.size,
    }
    if deviation.ratio is None:
        words = (
            numbers
            if deviation.size == 1
            else _("{numbers}; {wrong}").format(numbers=numbers, wrong=wrong)
        )
        return Finding(case, words, **of_first)
    words = _("{extent} in {wrong}; {numbers}").format(
        extent=_describe_extent(deviation), wrong=wrong, numbers=numbers
    )
    return Finding(case, words, **of_first, ratio=deviation.first_ratio, worst=deviation.ratio)


def _describe_numbers(deviation: Deviation) -> str:
    element = _name_element(deviation.output, deviation.where[0])
    words = _("{element} is {got}, it should be {want}")
    if deviation.kind is Element.WRONG_ZERO:
        words = _("{element} is {got} where {want} belongs")
    return words.format(
        element=element, got=format_number(deviation.got), want=format_number(deviation.want)
    )


def _name_element(output: str, index: tuple[int, ...]) -> str:
    return f"{output}[{', '.join(map(str, index))}]" if index else output


def find_place(
    judged: Judged, cause: str, file: str, text: str, exercise: Exercise
) -> Place | None:
    """Find the line of the learner's ``text`` that the evidence of a failed case points to; return
    None if it points to none.

    The result is the first of these that exists: code with the mistake that the cause names; the
    line of a fault; for a wrong number the only assignment that makes it; the only line that stores
    or returns the wrong output. The mistake itself may be elsewhere than in one of the last two, so
    these get a label that says what the line does.
    """
    tree, entry_points = ast.parse(text), exercise.entry_points
    try:
        slip = None if _is_too_long(tree) else _find_slip(judged, cause, tree, exercise)
    except RecursionError:  # ast.unparse and ast.dump recurse into a nested expression
        slip = None
    if slip is not None:
        return places.make_place(file, text, places.find_span(slip))
    if judged.fault:
        line, label = judged.fault.line, _label_meeting(judged.fault)
        return (
            places.make_place(file, text, places.find_access(tree, line, judged.fault.kind), label)
            if line
            else None
        )
    subject = _find_subject(judged)
    if subject is None or judged.plan.case.describe_outcome(
        judged.plan.entry_point, judged.outputs
    ):
        return None
    is_number = (
        bool(judged.deviations)
        and judged.deviations[0].kind is not Element.UNWRITTEN
        and not judged.changed
    )
    if is_number and (
        span := _find_assignment_of_subject(judged.plan, subject, tree, entry_points)
    ):
        return places.make_place(
            file, text, span, _("{output} is made here").format(output=subject)
        )
    span = _find_writing(judged.plan, subject, tree, entry_points)
    label = _("{output} is stored here") if judged.plan.grid else _("{output} is returned here")
    return span and places.make_place(file, text, span, label.format(output=subject))


def _label_meeting(fault: Fault) -> str:
    """Say what the line of a race or of a deadlock does: what lets it come to that may stand in
    another line."""
    if fault.kind in (FaultKind.DEADLOCK, FaultKind.LIVELOCK):
        return _("a program waits here")
    if fault.kind in (FaultKind.RACE, FaultKind.BOTH_STORE) and fault.tensor:
        return _("two programs meet in {tensor} here").format(tensor=fault.tensor)
    return ""


def _is_too_long(tree: ast.Module) -> bool:
    """Return True if the file has far more syntax nodes than a solution has."""
    return sum(1 for _ in ast.walk(tree)) > 10_000


def _find_slip(
    judged: Judged, cause: str, tree: ast.Module, exercise: Exercise
) -> ast.expr | ast.stmt | None:
    """Find the code with the mistake that ``cause`` names.

    A statement much like that of a known mistake comes first; then what the rule of the cause finds
    among the statements that feed the wrong output, unless the solution has that statement, too.
    For an access outside a tensor, for a write to an input and for a reduction too many, the line
    is known, and known mistakes are not asked.
    """
    flow = _find_flow(judged, tree, exercise.entry_points)
    slip = None if flow is None else location.find_slip(cause, flow)
    if judged.fault and (
        judged.fault.kind.group in _GROUPS_WITH_ACCESS or judged.fault.kind is FaultKind.MEETINGS
    ):
        return slip
    if cause == "wrong_values":  # its known mistakes have nothing in common
        return slip
    known_mistakes = known_lines.read(exercise, cause)
    entry_points, entry_point = exercise.entry_points, judged.plan.entry_point
    statement = known_mistakes.find_wrong(places.list_functions_of(tree, entry_points, entry_point))
    if slip is None:
        return statement
    home = places.find_statement(tree, slip)
    if statement is None:
        return None if known_mistakes.is_right(home) else slip
    return slip if home is statement else statement


def _find_flow(
    judged: Judged, tree: ast.Module, entry_points: tuple[str, ...]
) -> location.Flow | None:
    """Find the flow into the wrong output or the wrong access; return None if there is not exactly
    one store, return or access."""
    plan, subject = judged.plan, _find_subject(judged)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    home = next((node for node in functions if node.name == plan.entry_point), None)
    if home is None:
        return None
    parameters = [argument.arg for argument in (*home.args.posonlyargs, *home.args.args)]
    tensors = {
        name: to
        for to, name in zip(parameters, plan.arguments, strict=False)
        if isinstance(name, str)
    }
    if judged.fault:
        if not (line := judged.fault.line):
            return None
        access = places.find_only_access(tree, line, judged.fault.kind)
        inside = next(
            (node for node in functions if node.lineno <= line <= (node.end_lineno or line)), home
        )
        return access and location.Flow(tree, inside, judged.fault.tensor, access, access, tensors)
    return (
        None
        if judged.changed or subject is None
        else _find_flow_into(subject, plan, tree, entry_points, home, tensors)
    )


def _find_flow_into(
    subject: str,
    plan: Plan,
    tree: ast.Module,
    entry_points: tuple[str, ...],
    home: ast.FunctionDef,
    tensors: dict[str, str],
) -> location.Flow | None:
    """Find the flow into the one value that is returned or stored as ``subject``."""
    if not plan.grid:
        value = places.find_returned(tree, plan.entry_point, *_number_returned(plan, subject))
        return value and location.Flow(tree, home, subject, value, None, tensors)
    store = places.find_only_store(
        tree, entry_points, plan.entry_point, plan.arguments.index(subject)
    )
    value = store and places.find_stored(store[1])
    return (
        location.Flow(tree, store[0], subject, value, store[1], tensors)
        if store and value
        else None
    )


def _find_assignment_of_subject(
    plan: Plan, subject: str, tree: ast.Module, entry_points: tuple[str, ...]
) -> Span | None:
    """Find the one assignment that makes ``subject``."""
    others = (_STATISTICS | {tensor.name for tensor in plan.tensors}) - {subject}
    if plan.grid:
        argument = plan.arguments.index(subject)
        return places.find_assignment_of_stored(
            tree, entry_points, plan.entry_point, argument, others
        )
    return places.find_assignment_of_returned(
        tree, plan.entry_point, *_number_returned(plan, subject), others
    )


def _find_writing(
    plan: Plan, subject: str, tree: ast.Module, entry_points: tuple[str, ...]
) -> Span | None:
    """Find the only store of ``subject``, or the only return; if it returns several values, find
    the one that is ``subject``."""
    if plan.grid:
        return places.find_store(
            tree, entry_points, plan.entry_point, plan.arguments.index(subject)
        )
    number, count = _number_returned(plan, subject)
    value = places.find_returned(tree, plan.entry_point, number, count)
    return (
        places.find_span(value)
        if value is not None and count > 1
        else places.find_return(tree, plan.entry_point)
    )


def _number_returned(plan: Plan, output: str) -> tuple[int, int]:
    """Return the index of ``output`` among the values that the entry point returns, and their
    number."""
    outputs = [tensor.name for tensor in plan.tensors if tensor.is_output]
    names = _GRADIENTS if plan.entry_point == "backward" else outputs
    return names.index(output) if output in names else 0, len(names)


_GRADIENTS = ["dx", "dw", "db", "eps"]  # backward returns a value for each argument of forward
_STATISTICS = frozenset({"mean", "var", "rstd"})
_GROUPS_WITH_ACCESS = (Group.OUTSIDE, Group.INPUT)


def find_return(function: str, file: str, text: str) -> Place | None:
    """Find the line in which the learner's ``function`` returns, if there is only one."""
    span = places.find_return(ast.parse(text), function)
    return span and places.make_place(file, text, span)


def _is_about_outside(judged: Judged) -> bool:
    """Return True if the finding is about stores outside a tensor: no number is off, which would
    show more."""
    return bool(judged.outside) and Element.OFF not in judged.kinds


def _find_subject(judged: Judged) -> str | None:
    """Find the tensor that the finding is about, if the learner's code writes or returns it."""
    if judged.changed:
        return next(iter(judged.changed)) if judged.plan.grid else None
    if _is_about_outside(judged):
        return next(iter(judged.outside))
    # In a case with "change" the output says whether autograd refused a changed x: the learner's
    # code has no such tensor.
    if not judged.deviations or judged.plan.constexprs.get("change"):
        return None
    return judged.deviations[0].output


def find_raise(raised: Raised, file: str, text: str) -> Place | None:
    """Find the line of an exception."""
    line = raised.line
    # line 1 of the code that runs has only imports, among them those of the course
    if not line or line == 1:
        return None
    return places.make_place(file, text, Span(line, raised.column, raised.end_column))
