"""Names the cause of a failure from its evidence.

In this order: a wrong formula that reproduces every output (suspects.py); what happened to memory; which cases fail and
what only they have in common. If nothing fits, that is said, with the first wrong element.
"""

from __future__ import annotations

from collections.abc import Callable

from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Part
from course_lib.grading.judging import suspects, tolerance
from course_lib.grading.judging.judge import MINOR, Judged

Trait = tuple[str, Callable[[Case], bool]]
# what a run with interleaved programs finds, and the cause it is
INTERLEAVED = {
    "race": "race",
    "deadlock": "deadlock",
    "livelock": "deadlock",
    "no barrier": "barrier_missing",
    "order": "order_dependent",
}


def find_cause(judged: list[Judged], parts: dict[str, Part]) -> str:
    """The identifier of the cause; ``judged`` has at least one failed case, ``parts`` are those of the exercise."""
    failed = [j for j in judged if not j.passed and j.ran]
    if all(j.right for j in failed):
        return next(MINOR[j.fault["kind"]] for j in failed if j.fault)
    if shared := [fault["kind"] for fault in (j.fault for j in failed) if fault and fault["kind"] in INTERLEAVED]:
        # rows of an expanded input lie on one another: who writes to it races, too
        return "input_changed" if any(j.changes_input for j in failed) else INTERLEAVED[shared[0]]
    if cause := suspects.name_cause(judged, parts):
        return cause
    if any(j.changes_input for j in failed):
        return "input_changed"
    entry_points = {j.plan.entry_point: None for j in failed}
    alike = [
        j for j in judged if j.plan.entry_point in entry_points
    ]  # another kernel's passes say nothing about this one
    traits = [trait for entry_point in entry_points for trait in parts[entry_point].traits]
    if all(j.plan.case.layout != "packed" for j in failed):
        return _pick_closest(alike, failed, [*traits, *_LAYOUTS]) or "stride_ignored"
    return _find_memory_cause(failed, parts) or _find_common_cause(alike, failed, traits) or "wrong_values"


def _find_memory_cause(failed: list[Judged], parts: dict[str, Part]) -> str | None:
    if faults := [(j.plan.case, j.fault) for j in failed if j.fault]:
        if all(_has_short_tile(case) and _lies_past_last_row(case, fault) for case, fault in faults):
            return "row_mask"
        return "load_outside" if all(fault["kind"] == "load" for _, fault in faults) else "store_outside"
    if any(j.outside for j in failed):
        outside = [j for j in failed if j.outside]
        return "row_mask" if all(_has_short_tile(j.plan.case) for j in outside) else "store_outside"
    unwritten = [d for j in failed for d in j.deviations if d.kind == "unwritten"]
    if not unwritten:
        return None
    never = [_find_causes_of_unwritten(j, parts[j.plan.entry_point]) for j in failed]
    if all(never):
        return "not_written" if any("not_written" in causes for causes in never) else next(iter(never[0]))
    return "only_one_block" if all(not j.plan.case.one_block for j in failed) else "partly_written"


def _lies_past_last_row(case: Case, fault: dict) -> bool:
    """The fault lies in a row, or for a statistic at an element, from M on."""
    return fault["row"] is None or fault["row"] >= case.M


def _find_causes_of_unwritten(judged: Judged, part: Part) -> list[str]:
    """For each output of which no element was written, what that means for this part."""
    return [
        part.unwritten.get(d.output, "not_written")
        for d in judged.deviations
        if d.kind == "unwritten" and d.count == d.size
    ]


_HALF_PRECISION_LOSS = 2.0**-6  # relative to the terms added up: sums of fp16 or bf16 numbers lose no more

_LAYOUTS: tuple[Trait, ...] = (
    ("offset_32_bit", lambda case: case.layout == "far"),
    ("stride_ignored", lambda case: case.layout != "packed"),
)
# what only some cases have, and what it means if exactly those fail
_TRAITS: tuple[Trait, ...] = (
    ("bad_row_spreads", lambda case: case.has_bad_row),
    (
        "cancellation",
        lambda case: abs(case.mean) >= 100 * case.std or case.fill == "constant" or case.N == 1,
    ),  # or a variance of 0
    ("low_precision", lambda case: case.dtype != "fp32"),
    ("row_mask", lambda case: _has_short_tile(case)),
    ("only_one_block", lambda case: not case.one_block),
    ("mask_missing", lambda case: case.padded_lanes > 0),
)


def _pick_closest(judged: list[Judged], failed: list[Judged], traits: list[Trait]) -> str | None:
    """The cause whose trait all failed cases have and the fewest passed ones; of equals the first."""
    shared = [(cause, trait) for cause, trait in traits if all(trait(j.plan.case) for j in failed)]
    return min(shared, key=lambda pair: sum(j.passed and pair[1](j.plan.case) for j in judged))[0] if shared else None


def _find_common_cause(judged: list[Judged], failed: list[Judged], traits: list[Trait]) -> str | None:
    telling = [
        (cause, trait)
        for cause, trait in (*traits, *_TRAITS)
        if any(j.passed and not trait(j.plan.case) for j in judged)
    ]
    if cause := _pick_closest(judged, failed, telling):
        return cause
    # most, not all: in half precision small squares also vanish altogether
    return "low_precision" if sum(_has_few_digits(j) for j in failed) > 0.6 * len(failed) else None


def _has_few_digits(judged: Judged) -> bool:
    """Wrong by what half-precision arithmetic loses, or overflowed as only it does."""
    return all(
        d.kind == "nan"
        or (d.kind == "value" and d.ratio is not None and d.ratio * tolerance.K * tolerance.UNIT < _HALF_PRECISION_LOSS)
        for d in judged.deviations
    )


def _has_short_tile(case: Case) -> bool:
    return case.M % case.rows != 0


def describe_shared_trait(judged: list[Judged], failed: list[Judged]) -> str:
    """What the failing cases have in common and the passing ones lack, in words for the evidence; empty if nothing."""
    shared = (
        ("with padded lanes", lambda c: c.padded_lanes > 0),
        ("with a mean at least 1000 times the spread", lambda c: abs(c.mean) >= 1000 * c.std),
        ("in half precision", lambda c: c.dtype != "fp32"),
        ("with more than one block a row", lambda c: not c.one_block),
        ("with M no multiple of ROWS", _has_short_tile),
        ("with rows that do not follow each other", lambda c: c.layout != "packed"),
    )
    passed = [j for j in judged if j.passed]
    for words, trait in shared:
        if passed and all(trait(j.plan.case) for j in failed) and not all(trait(j.plan.case) for j in passed):
            return words
    return ""
