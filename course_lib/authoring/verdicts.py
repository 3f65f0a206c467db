"""``python -m course_lib.authoring.verdicts``: writes docs/verdicts.md, every cause with a message that the grader really gave.

The page is made from the mutants, so it cannot say what the grader does not. A test runs every mutant anyway, and compares.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from course_lib import paths
from course_lib.authoring import mutants
from course_lib.catalog import Exercise
from course_lib.files import write_atomic
from course_lib.grading.causes import CAUSES
from course_lib.grading.check import check

PAGE = paths.ROOT / "docs" / "verdicts.md"
FILE = "mine.py"  # what the mutant's file is called in the messages
_HEAD = """# What the grader says, cause by cause

A failing verdict names a cause, shows the evidence, and asks a question whose answer is the remedy. This page has one real message for
each cause: a wrong solution was handed in, in CPU mode, and this came back. It is made by `python -m course_lib.authoring.verdicts`, and
`make test` fails when the grader's words are no longer these.
"""
_OTHERS = """## Other ends

Causes that no wrong solution of the collection has by itself: {causes}.
"""


def chosen() -> dict[str, tuple[Exercise, dict]]:
    """For each cause the first mutant that has it in CPU mode; those that only a time limit ends come last."""
    found: dict[str, tuple[Exercise, dict]] = {}
    for exercise, entry in sorted(mutants.every(), key=lambda pair: bool(pair[1].get("slow"))):
        found.setdefault(entry.get("cause_cpu", entry["cause"]), (exercise, entry))
    return dict(sorted(found.items()))


def message_of(exercise: Exercise, entry: dict, folder: Path) -> str:
    """The verdict's message on the mutant, checked in CPU mode."""
    file = folder / FILE
    file.write_text(mutants.text_of(exercise, entry), encoding="utf-8")
    return check(exercise, file, mode="cpu").message


def section(cause: str, exercise: Exercise, entry: dict, message: str) -> str:
    """One cause of the page."""
    headline = f": {CAUSES[cause].headline}" if cause in CAUSES else ""
    return f"## {cause}{headline}\n\nExercise {exercise.id}, mutant `{entry['id']}`:\n\n> {message}\n"


def page(messages: dict[str, str]) -> str:
    """The whole page; ``messages`` by cause."""
    picked = chosen()
    counts = Counter(exercise.id for exercise, _ in mutants.every())
    table = "\n".join(f"| {exercise} | {number} |" for exercise, number in sorted(counts.items()))
    total = f"| Exercise | Wrong solutions |\n|---|---|\n{table}\n| all | {sum(counts.values())} |\n"
    sections = [section(cause, *picked[cause], message) for cause, message in messages.items()]
    silent = sorted(CAUSES.keys() - picked.keys())
    other = [_OTHERS.format(causes=", ".join(f"`{cause}`" for cause in silent))] if silent else []
    return "\n".join([_HEAD, total, *sections, *other])


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="course-verdicts-") as scratch:
        messages = {}
        for cause, (exercise, entry) in chosen().items():
            messages[cause] = message_of(exercise, entry, Path(scratch))
            print(f"{cause}: {exercise.id} {entry['id']}", flush=True)
    PAGE.parent.mkdir(exist_ok=True)
    write_atomic(PAGE, page(messages))
    print(f"{paths.shown(PAGE)}: {len(messages)} causes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
