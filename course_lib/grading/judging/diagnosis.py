"""Names the cause of a failure from its evidence.

In this order: a wrong formula that reproduces every output (suspects.py); what happened to memory; how large the errors are,
and which cases fail (evidence.py). What the evidence does not tell from something else has no cause: then the verdict says what
is wrong, by how much, and what the failing cases share.
"""

from __future__ import annotations

from collections.abc import Callable

from course_lib.grading.cases.case import Case
from course_lib.grading.cases.plan import Part
from course_lib.grading.judging import evidence, suspects
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
    # another kernel's passes say nothing about this one
    alike = [j for j in judged if j.plan.entry_point in entry_points and j.ran]
    of_parts = [parts[entry_point] for entry_point in entry_points]
    if all(j.plan.case.layout != "packed" for j in failed):
        return _find_layout_cause(alike, failed)
    return _find_memory_cause(failed, parts) or _find_common_cause(alike, failed, of_parts) or "wrong_values"


def _find_layout_cause(judged: list[Judged], failed: list[Judged]) -> str:
    """Packed rows are right. Far ones alone, or at least nothing else than rows that do not follow each other, are wrong."""
    if all(j.plan.case.is_far for j in failed):
        return "offset_32_bit"
    return "stride_ignored"


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


_RARE: tuple[Trait, ...] = (("bad_row_spreads", lambda case: case.has_bad_row),)
# what only some cases have, and what it means if exactly those fail
_TRAITS: tuple[Trait, ...] = (
    ("row_mask", lambda case: _has_short_tile(case)),
    ("only_one_block", lambda case: not case.one_block),
    ("mask_missing", lambda case: case.padded_lanes > 0),
)


def _find_common_cause(judged: list[Judged], failed: list[Judged], parts: list[Part]) -> str | None:
    for cause, trait in (*(rare for part in parts for rare in part.rare), *_RARE):
        if all(trait(j.plan.case) for j in failed):
            return cause
    if evidence.is_of_half_precision(judged, failed):
        return "low_precision"
    if evidence.is_of_cancellation(judged, failed):
        return "cancellation"
    for cause, trait in (*(trait for part in parts for trait in part.traits), *_TRAITS):
        if evidence.is_exactly(trait, judged, failed) and not evidence.has_rival(trait, judged, failed):
            return cause
    return None


def _has_short_tile(case: Case) -> bool:
    return case.M % case.rows != 0


def describe_shared_trait(judged: list[Judged], failed: list[Judged]) -> str:
    """What the failing cases have in common and no passing one has, in words; empty if there is no such thing."""
    shared = (
        ("with padded lanes", lambda c: c.padded_lanes > 0),
        ("with more than one block a row", lambda c: not c.one_block),
        ("with M no multiple of the rows taken at a time", _has_short_tile),
        ("with a NaN or an Inf", lambda c: c.has_bad_row),
        *evidence.list_rivals([j.plan.case for j in failed]),
    )
    return next((words for words, trait in shared if evidence.is_exactly(trait, judged, failed)), "")
