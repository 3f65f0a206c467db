"""Name the cause of a failure from its evidence.

The evidence is tried in this order: a wrong formula that reproduces every output (suspects.py);
accesses to memory; the size of the errors, and which cases fail (evidence.py). If the evidence fits
several explanations, no cause is named: the verdict says what is wrong, by how much, and what the
failing cases share.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import chain

import numpy as np

from course_lib.base.translation import gettext as _
from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Outputs, Part, Plan, Symptom
from course_lib.grading.judging import evidence, suspects
from course_lib.grading.judging.elements import Element, judge_elements
from course_lib.grading.judging.judge import Judged
from course_lib.launching.faults import Fault, FaultKind, Group, Raised

Trait = tuple[str, Callable[[Case], bool]]
# Causes, and patterns for the errors with which PyTorch refuses an operation
_REFUSALS = (
    ("refused_in_place", re.compile(r"a single memory location|used in an in-?place")),
    (
        "gradients_misreturned",
        re.compile(
            r"Backward returned an? (gradient different than None|incorrect number|invalid"
            r" gradient)"
        ),
    ),
    ("dtypes_differ", re.compile(r"\b(Float|Double|Half|BFloat16) did not match |same dtype")),
)


def find_refusal(raised: Raised) -> str | None:
    """Find the cause of an error that PyTorch raised, from its words; return None for any other
    error."""
    if raised.type != "RuntimeError":
        return None
    return next((cause for cause, words in _REFUSALS if words.search(raised.text)), None)


# Causes, and patterns for the errors with which the system refuses what code asks for: the type of
# the error, and its words
_REFUSALS_OF_SYSTEM = (
    ("not_in_the_sandbox", re.compile(r"^PermissionError: ")),
    ("too_many_processes", re.compile(r"can't start new thread|^BlockingIOError: ")),
    (
        "too_much_memory",
        re.compile(r"^_?(Array)?MemoryError: |^RuntimeError: .*can't allocate memory"),
    ),
    ("writes_files", re.compile(r"^OSError: .*(No space left on device|quota exceeded)")),
)


def find_refusal_of_system(raised: Raised) -> str | None:
    """Find the cause of an error that the system raised, because a check gives no such file,
    process or memory; return None for any other error."""
    said = f"{raised.type}: {raised.text}"
    return next((cause for cause, words in _REFUSALS_OF_SYSTEM if words.search(said)), None)


def find_refusal_of_triton(raised: Raised) -> str | None:
    """Find the cause of an error that Triton raised, from its words; return None for any other
    error."""
    if raised.type == "AssertionError" and "must be 16-byte aligned" in raised.text:
        return "misaligned"
    return "shapes_differ" if explain_shapes(raised) else None


# Triton's words for blocks that do not fit together
_AXIS = re.compile(r"incompatible dimensions at index (\d+): (\d+) and (\d+)")
_ADDRESSES = re.compile(r"Expected pointer argument to have shape (.*) but got (.*)")
_ONE_ADDRESS = re.compile(r"(Value|Mask|Other) argument cannot be block type if pointer argument")


def explain_shapes(raised: Raised) -> str:
    """Say in a learner's words which blocks do not fit together; return "" for an error of another
    kind."""
    if match := _AXIS.search(raised.text):
        axis, first, second = match.groups()
        return _(
            "Along axis {axis} one block has {first} elements and the other {second}. Both need the"
            " same number there, or one of them 1."
        ).format(axis=axis, first=first, second=second)
    if match := _ADDRESSES.search(raised.text):
        needed, given_shape = (
            tuple(map(int, re.findall(r"\d+", shape))) for shape in match.groups()
        )
        return _(
            "The addresses are a block of shape {given}, and what meets them there, a value or a"
            " mask, makes the shape {needed}."
        ).format(given=given_shape, needed=needed)
    if match := _ONE_ADDRESS.search(raised.text):
        return _(
            "There is one address for a whole block of numbers: `{argument}` is a block, and the"
            " pointer is not."
        ).format(argument=match[1].lower())
    return ""


def find_cause(judged: list[Judged], parts: dict[str, Part]) -> str:
    """Find the identifier of the cause. ``judged`` has at least one failed case; ``parts`` are
    those of the exercise."""
    failed = _list_failed(judged)
    if all(j.right for j in failed):
        return _find_minor_cause(failed, parts)
    entry_points = list(dict.fromkeys(j.plan.entry_point for j in failed))
    # Cases of another entry point say nothing about this one.
    alike = [j for j in judged if j.plan.entry_point in entry_points and j.ran]
    of_parts = [parts[entry_point] for entry_point in entry_points]
    return (
        _find_interleaving_cause(failed)
        or suspects.name_cause(judged, parts)
        or _find_input_cause(failed)
        or _find_symptom(chain.from_iterable(part.rare for part in of_parts), failed)
        or _find_layout_cause(failed)
        or _find_memory_cause(failed, parts)
        or _find_common_cause(alike, failed, of_parts)
        or _find_masked_off_cause(alike, failed)
        or _find_spread_cause(failed)
        or "wrong_values"
    )


def find_plain_cause(judged: list[Judged], parts: dict[str, Part]) -> str:
    """Find the cause from accesses to memory alone. A lesson's step has too few cases for other
    evidence, and its check compares the results with those of known mistakes."""
    failed = _list_failed(judged)
    if shared := _list_interleaved(failed):
        return shared[0][0].kind.cause
    return _find_input_cause(failed) or _find_memory_cause(failed, parts) or "wrong_values"


def _list_failed(judged: list[Judged]) -> list[Judged]:
    return [j for j in judged if not j.passed and j.ran]


def _find_minor_cause(failed: list[Judged], parts: dict[str, Part]) -> str:
    """Find the cause if every result is right: the first fault's own, or the one that the part has
    for this kind of fault."""
    fault, part = next((j.fault, parts[j.plan.entry_point]) for j in failed if j.fault)
    cause, trait = part.minor.get(fault.kind, (fault.kind.cause, None))
    return cause if trait is None or all(trait(j.plan.case) for j in failed) else fault.kind.cause


def _find_interleaving_cause(failed: list[Judged]) -> str | None:
    shared = _list_interleaved(failed)
    if not shared:
        return None
    # The rows of an expanded input share memory, so a write to it also races. The write is the
    # cause.
    return _find_input_cause(failed) or (
        "programs_overlap" if _are_plain_stores(shared) else shared[0][0].kind.cause
    )


def _find_input_cause(failed: list[Judged]) -> str | None:
    return "input_changed" if any(j.changes_input for j in failed) else None


def _list_interleaved(failed: list[Judged]) -> list[tuple[Fault, Plan]]:
    return [
        (j.fault, j.plan) for j in failed if j.fault and j.fault.kind.group is Group.INTERLEAVED
    ]


def _are_plain_stores(shared: list[tuple[Fault, Plan]]) -> bool:
    """Return True if all conflicts are between two stores, and the exercise has no lock that a
    program could wait for."""
    return all(
        fault.kind is FaultKind.BOTH_STORE and not any(tensor.scratch for tensor in plan.tensors)
        for fault, plan in shared
    )


def _find_layout_cause(failed: list[Judged]) -> str | None:
    """Find the cause if only cases fail whose rows do not follow each other: an offset of 32 bits
    if all are far, else a stride."""
    if any(j.plan.case.layout == "packed" for j in failed):
        return None
    if all(j.plan.case.is_far for j in failed):
        return name_far_cause([j.plan.case for j in failed])
    return "stride_ignored"


def name_far_cause(far: list[Case]) -> str:
    """Return the cause if only these cases are wrong, and the rows or columns of each lie far
    apart."""
    return "column_offset_32_bit" if all(case.has_far_columns for case in far) else "offset_32_bit"


def _find_memory_cause(failed: list[Judged], parts: dict[str, Part]) -> str | None:
    if any(j.shows_what_was_held for j in failed):
        return _find_row_0_cause(failed, parts) or "output_read_first"
    return _find_outside_cause(failed) or _find_unwritten_cause(failed, parts)


def _find_row_0_cause(failed: list[Judged], parts: dict[str, Part]) -> str | None:
    only_row_0 = all(_has_only_row_0(j, parts[j.plan.entry_point]) for j in failed)
    return "one_row_of_partials" if only_row_0 else None


def _find_outside_cause(failed: list[Judged]) -> str | None:
    """Find the cause of accesses outside a tensor: of the reported ones first, then of stores that
    only the guard bands show."""
    if faults := [(j.plan.case, j.fault) for j in failed if j.fault]:
        if all(
            _has_short_tile(case) and _lies_past_last_row(case, fault) for case, fault in faults
        ):
            return "row_mask"
        return (
            "load_outside"
            if all(fault.kind is FaultKind.LOAD for _case, fault in faults)
            else "store_outside"
        )
    if outside := [j.plan.case for j in failed if j.outside]:
        return "row_mask" if all(map(_has_short_tile, outside)) else "store_outside"
    return None


def _find_unwritten_cause(failed: list[Judged], parts: dict[str, Part]) -> str | None:
    if not any(Element.UNWRITTEN in j.kinds for j in failed):
        return None
    if cause := _find_row_0_cause(failed, parts):
        return cause
    never = [_find_causes_of_unwritten(j, parts[j.plan.entry_point]) for j in failed]
    if all(never):
        return (
            "not_written"
            if any("not_written" in causes for causes in never)
            else next(iter(never[0]))
        )
    return (
        "only_one_block"
        if all(evidence.has_only_first_block(j) for j in failed)
        else "partly_written"
    )


def _has_only_row_0(judged: Judged, part: Part) -> bool:
    """Return True if only row 0 of the partial sums is written, and row 0 is wrong: then the other
    programs wrote there, too."""
    wrong = {(d.output, d.kind): d for d in judged.deviations}
    for name in part.partials:
        programs, columns = judged.plan.tensor(name).shape
        others = wrong.get((name, Element.UNWRITTEN))
        if programs > 1 and (
            others is None or others.where[0][0] != 1 or others.count != others.size - columns
        ):
            return False
        if not any(
            d.output == name and d.kind is not Element.UNWRITTEN and d.where[0][0] == 0
            for d in judged.deviations
        ):
            return False
    return bool(part.partials)


def _lies_past_last_row(case: Case, fault: Fault) -> bool:
    """Return True if the fault lies in row M or later, or its row is unknown. For a statistic the
    row is the element."""
    return fault.row is None or fault.row >= case.M


def _find_causes_of_unwritten(judged: Judged, part: Part) -> list[str]:
    """Return the part's cause for each output of which no element was written."""
    return [
        part.unwritten.get(d.output, "not_written")
        for d in judged.deviations
        if d.kind is Element.UNWRITTEN and d.count == d.size
    ]


def _swallows(plan: Plan, outputs: Outputs) -> bool:
    return plan.case.has_bad_row and _compare_finite(plan, outputs) == {"lost"}


def _spreads(plan: Plan, outputs: Outputs) -> bool:
    return plan.case.has_bad_row and _compare_finite(plan, outputs) == {"gained"}


def _stays_inside(plan: Plan, outputs: Outputs) -> bool:
    """Return True if all that is wrong lies in the row that holds the NaN or Inf. An output that
    sums over rows must be right."""
    bad_row = plan.case.bad_row
    wrong = [judge_elements(actual, plan.expected[name]).wrong for name, actual in outputs.items()]
    return bad_row is not None and all(
        not where.any()
        or (len(where) == plan.case.M and not np.delete(where, bad_row, axis=0).any())
        for where in wrong
    )


def _compare_finite(plan: Plan, outputs: Outputs) -> set[str]:
    """Return "lost" if some number stands where a NaN or Inf belongs, and "gained" if a NaN or Inf
    stands where a number belongs."""
    differences = set()
    for name, actual in outputs.items():
        expected = plan.expected[name]
        judged, finite = ~np.isnan(expected.allowed), np.isfinite(expected.values)
        if (judged & ~finite & np.isfinite(actual)).any():
            differences.add("lost")
        if (judged & finite & ~np.isfinite(actual)).any():
            differences.add("gained")
    return differences


_RARE: tuple[tuple[str, Symptom], ...] = (
    ("bad_row_swallowed", _swallows),
    ("bad_row_inside", _stays_inside),
    ("bad_row_spreads", _spreads),
)
# Causes, each with the trait that some cases have: the cause holds if exactly these cases fail
_TRAITS: tuple[Trait, ...] = (
    ("row_mask", lambda case: _has_short_tile(case)),
    ("only_one_block", lambda case: not case.one_block),
    ("only_last_block", lambda case: not case.one_block),
    ("mask_missing", lambda case: case.padded_lanes > 0),
)
# Each cause says that only rows of this kind are wrong. Cases with such rows may pass, and rivals
# do not count: some formulas fail on no other row.
_KINDS_OF_ROWS: tuple[Trait, ...] = (
    ("one_column", lambda case: case.N == 1 and not case.vector),
    ("flat_row", lambda case: case.fill == "constant" or (case.N == 1 and not case.vector)),
)
# For these causes the wrong elements of each failed case have to fit as well.
_OF_ELEMENTS: dict[str, Callable[[Judged], bool]] = {
    "only_one_block": evidence.has_only_first_block,
    "only_last_block": evidence.has_only_last_block,
}


# Causes that follow from the size of the errors
_OF_ERRORS: tuple[tuple[str, Callable[[list[Judged], list[Judged]], bool]], ...] = (
    ("low_precision", evidence.is_of_half_precision),
    ("cancellation", evidence.is_of_cancellation),
    ("shift_far_out", evidence.is_of_shift),
)


def _find_symptom(causes: Iterable[tuple[str, Symptom]], failed: list[Judged]) -> str | None:
    """Return the first cause whose symptom all failed cases have."""
    return next(
        (cause for cause, symptom in causes if all(symptom(j.plan, j.outputs) for j in failed)),
        None,
    )


def _find_masked_off_cause(judged: list[Judged], failed: list[Judged]) -> str | None:
    """Find the cause if masked lanes bring in NaN: the interpreter puts one into each lane that a
    load without `other` masks off.

    Only cases with masked lanes fail, and all that is wrong is NaN where a number belongs.
    """
    if any(not j.passed and not _has_masked_lanes(j.plan) for j in judged):
        return None
    return "masked_off" if all(_is_nan_for_numbers(j) for j in failed) else None


def _find_spread_cause(failed: list[Judged]) -> str | None:
    """Find the cause if nothing names the other failed cases, and the NaN or Inf of one row is in
    the results of others: the rows share a number. Where the code makes NaN out of numbers it
    proves nothing."""
    spreads = any(_spreads(j.plan, j.outputs) for j in failed)
    ordinary = [j for j in failed if not j.plan.case.has_bad_row]
    makes_nan = any("gained" in _compare_finite(j.plan, j.outputs) for j in ordinary)
    return "bad_row_spreads" if spreads and not makes_nan else None


def _has_masked_lanes(plan: Plan) -> bool:
    case = plan.case
    chunk = getattr(case, "chunk", 0)
    return bool(plan.grid) and (
        case.padded_lanes > 0
        or _has_short_tile(case)
        or (chunk > 0 and (chunk % case.rows != 0 or case.M % chunk != 0))
        or "keep" in plan.inputs
    )


def _is_nan_for_numbers(judged: Judged) -> bool:
    wrong = [
        (judged.outputs[name][elements.wrong], judged.plan.expected[name].values[elements.wrong])
        for name, elements in judged.elements.items()
    ]
    return bool(wrong) and all(
        np.isnan(got).all() and np.isfinite(want).all() for got, want in wrong
    )


def _find_common_cause(judged: list[Judged], failed: list[Judged], parts: list[Part]) -> str | None:
    if cause := _find_symptom(_RARE, failed):
        return cause
    for cause, trait in _KINDS_OF_ROWS:
        if all(trait(j.plan.case) for j in failed) and any(j.passed for j in judged):
            return cause
    # the size of an error says nothing of a row with a NaN, so these cases count only alone
    sized = [j for j in failed if not j.plan.case.has_bad_row] or failed
    for cause, explains in _OF_ERRORS:
        if explains(judged, sized):
            return cause
    if cause := _find_trait_cause(judged, failed, parts):
        return cause
    return "constant_factor" if evidence.is_of_factor(failed) else None


def _find_trait_cause(judged: list[Judged], failed: list[Judged], parts: list[Part]) -> str | None:
    """Find the cause whose trait exactly the failed cases have, if no other fact tells these cases
    from the passed ones."""
    # Between rows that lie gigabytes apart a GPU's memory holds any value, often 0. So a far case
    # that passes proves nothing.
    judged = [j for j in judged if not (j.passed and j.plan.case.is_far)]
    for cause, trait in (*(trait for part in parts for trait in part.traits), *_TRAITS):
        shown = cause not in _OF_ELEMENTS or all(_OF_ELEMENTS[cause](j) for j in failed)
        if (
            shown
            and evidence.is_exactly(trait, judged, failed)
            and not evidence.has_rival(trait, judged, failed)
        ):
            return cause
    return None


def _has_short_tile(case: Case) -> bool:
    return case.M % case.rows != 0


def describe_shared_trait(judged: list[Judged], failed: list[Judged]) -> str:
    """Say what all failing cases have in common and no passing case has; return "" if there is
    nothing."""
    cases = [j.plan.case for j in failed]
    blocks = (
        _("with more than one block")
        if evidence.are_vectors(cases)
        else _("with more than one block per row")
    )
    shared = (
        (_("with padded lanes"), lambda c: c.padded_lanes > 0),
        (blocks, lambda c: not c.one_block),
        (_("with M no multiple of the rows taken at a time"), _has_short_tile),
        (_("with a NaN or an Inf"), lambda c: c.has_bad_row),
        *evidence.list_rivals(cases),
    )
    return next(
        (words for words, trait in shared if evidence.is_exactly(trait, judged, failed)), ""
    )
