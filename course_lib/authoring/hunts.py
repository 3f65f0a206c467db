"""``python -m course_lib.authoring.hunts``: build the hunts from the wrong solutions in
the exercises' wrong.toml.

A wrong solution becomes a hunt if three conditions hold. In CPU mode it ends with wrong results, or
accesses memory outside a tensor. A learner can type an input on which it is wrong and the right
solution is right. Its wrong lines are known: they are the lines that differ from the right
solution's. At most ``MOST`` hunts are taken from each exercise, one per cause, and most of them are
wrong on few inputs only. The remaining hunts of the exercises in ``DAILY`` become hunts of the day.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import io
import sys
import tokenize
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.files import write_atomic
from course_lib.catalog import Exercise, mutants, texts
from course_lib.catalog.cut import drop_marks
from course_lib.exercises import find_parts
from course_lib.grading.cases.case import Case, SharedCase
from course_lib.grading.judging.judge import Judged
from course_lib.grading.kind import find_kind
from course_lib.grading.trials import run_cases
from course_lib.hunt.collection import FILE, IMPORTS, Hunt, pack, read_built, read_hunts
from course_lib.hunt.draw import DAILY
from course_lib.hunt.probe import HAND_COLUMNS, Probe, find_options

MOST = 8  # hunts per exercise
_EASY = 2  # of an exercise's hunts, at least so many are wrong on nearly every input
STARTERS = 3
_MOST_LINES = 3
# A wrong solution with one of these causes is no hunt: it does not end, its results are right, or
# the mistake is obvious.
_CAUSES = {
    "undefined_name", "kernel_raised", "shapes_differ", "time_limit", "would_not_compile",
    "extra_pass", "lanes_meet_often",
    "work_not_shared", "right_only_once", "input_changed",
    "output_read_first", "not_written", "statistics_not_saved",
}  # fmt: skip
# These wrong solutions were written to fool a grader. Such a line is not written by mistake.
_NOBODYS = {
    "zeros", "nothing_from_program_16_on", "row_63_for_all_later_ones",
    "tile_63_for_all_later_ones", "wrong_from_row_128_on", "wrong_from_program_128_on",
    "places_instead_of_values", "a_reciprocal_root_of_0_replaced", "at_most_4096_columns",
    "always_4096_columns", "later_blocks_are_zero",
    "last_x_for_every_block", "shift_of_the_last_block_without_other", "tile_parked_in_y",
    "dy_never_read", "residual_forgotten", "gain_by_row",
    "statistics_of_the_first_row", "one_mean_for_the_tile", "lanes_weigh_the_same",
}  # fmt: skip


def list_exercises() -> list[Exercise]:
    """Return the exercises whose wrong solutions can become hunts: one kernel, and cases that a
    probe can make. An optional task has none."""
    return [
        exercise
        for exercise in catalog.exercises().values()
        if find_kind(exercise.kind).is_of_kernels
        and len(exercise.entry_points) == 1
        and not exercise.optional
        and {type(case) for case in _read_battery(exercise)} <= {Case, SharedCase}
    ]


def list_candidates(exercise: Exercise) -> list[dict]:
    """Return the exercise's wrong solutions that may become hunts. None of them has been run
    yet."""
    return [
        entry
        for entry in mutants.read_mutants(exercise)
        if not entry.get("slow") and entry["id"] not in _NOBODYS and entry["cause"] not in _CAUSES
    ]


def strip(text: str) -> str:
    """Return a file's kernels, from the first decorator on, as a hunt shows them: without comments,
    docstrings and repeated blank lines."""
    lines = text.splitlines(keepends=True)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip() + "\n"
    first_line: int | None = None
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            first_line = first_line or node.decorator_list[0].lineno
            if ast.get_docstring(node) is not None:
                for row in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1):
                    lines[row - 1] = ""
    code_lines: list[str] = []
    for line in lines[(first_line or 1) - 1 :]:
        if line.strip() or (code_lines and code_lines[-1].strip()):
            code_lines.append(line.rstrip(" "))
    return "".join(code_lines).strip("\n") + "\n"


def find_lines(right: str, wrong: str) -> tuple[int, ...]:
    """Return the numbers, from 1, of the lines of ``wrong`` that differ from ``right``. A missing
    line has no number."""
    sides = [[line.strip() for line in text.splitlines()] for text in (right, wrong)]
    numbers: list[int] = []
    for kind, _, _, start, end in difflib.SequenceMatcher(
        None, *sides, autojunk=False
    ).get_opcodes():
        if kind in ("replace", "insert"):
            numbers += [row + 1 for row in range(start, end) if sides[1][row]]
    return tuple(numbers)


def name_hunt(exercise: Exercise, mutant: str) -> str:
    """Return a name that gives nothing away and stays when hunts are added: five letters from the
    hash of exercise and mutant."""
    number = int.from_bytes(
        hashlib.blake2b(f"hunt {exercise.id}/{mutant}".encode(), digest_size=4).digest()
    )
    letters = ""
    for among in ("bdfghjklmnprstvz", "aeiou", "bdfghjklmnprstvz", "aeiou", "bdgklmnrst"):
        number, index = divmod(number, len(among))
        letters += among[index]
    return f"{exercise.id}-{letters}"


def digest(exercise: Exercise) -> str:
    """Return a digest of everything that determines the exercise's hunts: solution, candidates, the
    grader's cases, and the rules above."""
    rules = (
        MOST,
        STARTERS,
        HAND_COLUMNS,
        _EASY,
        _MOST_LINES,
        sorted(_NOBODYS),
        sorted(_CAUSES),
        exercise.id in DAILY,
    )
    return _hash(
        _solution_that_runs(exercise), list_candidates(exercise), _read_battery(exercise), rules
    )


def _solution_that_runs(exercise: Exercise) -> str:
    """Return the solution without its words: a changed sentence changes no measurement."""
    return strip(texts.make_plain_solution(exercise))


def make_text(exercise: Exercise, entry: dict) -> tuple[str, tuple[int, ...]]:
    """Return the part of a wrong solution that a hunt shows, and the numbers of its wrong lines."""
    wrong = strip(drop_marks(mutants.make_text(exercise, entry)))
    return wrong, find_lines(strip(texts.make_plain_solution(exercise)), wrong)


def is_exposed(judged: Judged) -> bool:
    return not judged.right and not judged.changes_input


class Builder:
    """Builder of the hunts. It measures a wrong solution only if its text, the cases or the right
    solution have changed."""

    def __init__(
        self, measurements: dict[str, Any], keep: Callable[[dict[str, Any]], None]
    ) -> None:
        """Take the ``measurements`` measurements.

        ``keep`` is called with all measurements after each exercise, so that an interrupted build
        loses little.
        """
        self._known, self._keep = measurements, keep
        self.measured: dict[str, Any] = {}

    def build(self) -> list[Hunt]:
        """Return every hunt, in the order of the course."""
        names = [
            name_hunt(exercise, entry["id"])
            for exercise in list_exercises()
            for entry in list_candidates(exercise)
        ]
        if len(set(names)) < len(names):
            raise ValueError(
                "two hunts have one name: change what name_hunt begins its hash with."
                f" {sorted(names)}"
            )
        hunts: list[Hunt] = []
        for exercise in list_exercises():
            candidates = [
                hunt
                for entry in list_candidates(exercise)
                if (hunt := self._make(exercise, entry)) is not None
            ]
            of_exercise = choose(candidates, daily=exercise.id in DAILY)
            if not hunts:  # the first exercise of the course
                of_exercise = [
                    replace(hunt, starter=n < STARTERS) for n, hunt in enumerate(of_exercise)
                ]
            hunts += of_exercise
            self._keep(self._known | self.measured)
            print(
                f"{exercise.id}: {len(of_exercise)} hunts of {len(candidates)} that could be",
                flush=True,
            )
        return hunts

    def _make(self, exercise: Exercise, entry: dict) -> Hunt | None:
        text, lines = make_text(exercise, entry)
        if not 0 < len(lines) <= _MOST_LINES:
            return None
        key = _hash(
            exercise.id, text, _solution_that_runs(exercise), _read_battery(exercise), HAND_COLUMNS
        )
        if key not in self.measured:
            self.measured[key] = self._known[key] if key in self._known else measure(exercise, text)
        measured = self.measured[key]
        cause = entry.get("cause_cpu", entry["cause"])
        return measured and Hunt(
            name_hunt(exercise, entry["id"]), exercise.id, text, lines, cause, entry["id"],
            measured["cases"], measured["killers"],
            Probe.from_dict(measured["probe"]),
        )  # fmt: skip


def measure(exercise: Exercise, text: str) -> dict[str, Any] | None:
    """Return the number of the grader's cases, how many of them show the mistake, and the smallest
    input that shows it.

    The result is None if no input that a learner can type shows the mistake, or if the kernel does
    not end.
    """
    options = find_options(exercise.id)
    near = [case for case in _read_battery(exercise) if not case.is_far]
    judged = run_cases(exercise, IMPORTS + text, "hunt.py", near)
    if any(j.raised for j in judged) or not all(j.ran for j in judged):
        return None
    killers = [case for case, j in zip(near, judged, strict=True) if is_exposed(j)]
    probes = {probe for case in killers if (probe := options.find_probe(case)) is not None}
    ordered = sorted(probes, key=lambda p: (p.M * p.N, str(p)))
    if not ordered:
        return None
    cases = [options.make_case(probe) for probe in ordered]
    wrong = run_cases(exercise, IMPORTS + text, "hunt.py", cases)
    right = run_cases(exercise, texts.read_solution(exercise), "solution.py", cases)
    showing = (
        p for p, w, r in zip(ordered, wrong, right, strict=True) if is_exposed(w) and r.passed
    )
    probe = next(showing, None)
    return probe and {"cases": len(near), "killers": len(killers), "probe": probe.as_dict()}


def choose(candidates: list[Hunt], daily: bool) -> list[Hunt]:
    """Choose at most ``MOST`` hunts, one per cause. Hard ones come first: a mistake that nearly
    every input shows is soon found.

    If ``daily`` is true, the remaining hunts are returned, too, as hunts of the day.
    """
    ranked = sorted(candidates, key=lambda h: (h.grader_needs, h.id))
    # the hardest hunt of each cause
    by_cause = list({hunt.cause: hunt for hunt in ranked}.values())
    by_cause.sort(key=lambda h: (h.grader_needs, h.id))
    hard, easy = [h for h in by_cause if h.level > 1], [h for h in by_cause if h.level == 1]
    picked = _spread(hard, MOST - min(_EASY, len(easy)))
    picked += _spread(easy, MOST - len(picked))
    remaining = (
        [replace(hunt, daily=True) for hunt in ranked if hunt not in picked] if daily else []
    )
    return sorted(picked + remaining, key=lambda h: (h.daily, h.grader_needs, h.id))


def _spread(ranked: list[Hunt], most: int) -> list[Hunt]:
    """Return at most ``most`` hunts, spread evenly from the first to the last."""
    count = min(most, len(ranked))
    return [ranked[round(n * (len(ranked) - 1) / max(count - 1, 1))] for n in range(count)]


def _read_battery(exercise: Exercise) -> tuple[Case, ...]:
    ((_, part),) = find_parts(exercise).items()
    return part.battery


def _hash(*parts: object) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=12).hexdigest()


def main() -> int:
    before = read_built()

    def keep(measured: dict[str, Any]) -> None:
        write_atomic(
            FILE,
            pack(
                list(read_hunts().values()) if before else [], before.get("digests", {}), measured
            ),
        )

    builder = Builder(before.get("measured", {}), keep)
    hunts = builder.build()
    digests = {exercise.id: digest(exercise) for exercise in list_exercises()}
    write_atomic(FILE, pack(hunts, digests, builder.measured))
    print(
        f"{paths.shown(FILE)}: {len(hunts)} hunts, {sum(hunt.daily for hunt in hunts)} of them for"
        " the hunts of the day"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
