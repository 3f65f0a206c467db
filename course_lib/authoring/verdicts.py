"""``python -m course_lib.authoring.verdicts``: write docs/verdicts.md, which shows for every cause
a verdict that the grader gave.

The verdicts on the page are those on the mutants, so they are the grader's own words. A test runs
every mutant and compares its verdict with the page. With ids (``verdicts 06a``) only these
exercises are checked, and the causes that the page does not show on the same mutant.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from course_lib.base import paths
from course_lib.base.files import write_atomic
from course_lib.catalog import Exercise, get, mutants
from course_lib.grading.check import check
from course_lib.grading.judging.causes import CAUSES
from course_lib.grading.report import make_report, quote_line
from course_lib.grading.verdict import Verdict

PAGE = paths.ROOT / "docs" / "verdicts.md"
FILE = "mine.py"  # the name of the mutant's file in the messages
_HEAD = """# What the grader says, cause by cause

A failing verdict names a cause, shows the smallest case that fails and a line, asks a question whose answer is the remedy, and says what
else fails. The line is the cause's, or, after "The error shows here:", the one in which the error comes out. Where the code is wrong in the same way on a case that a person can work out by hand, that one is
shown, with its inputs; it is none of the check's own cases. This page has one real verdict for each cause: a wrong solution was handed in as `mine.py`, in CPU
mode, and this came back. It is made by `python -m course_lib.authoring.verdicts`, and `make test` fails when the grader's words are no
longer these.
"""  # noqa: E501
_OTHERS = """## Other ends

Causes that no wrong solution of the collection has by itself: {causes}.
"""


def choose_mutants() -> dict[str, tuple[Exercise, dict]]:
    """Return for each cause the first mutant that has it in CPU mode.

    Mutants of optional tasks come after all others, and those that only a time limit ends come
    last.
    """
    mutants_by_cause: dict[str, tuple[Exercise, dict]] = {}
    for exercise, entry in sorted(
        mutants.list_mutants(), key=lambda pair: (bool(pair[1].get("slow")), pair[0].optional)
    ):
        mutants_by_cause.setdefault(entry.get("cause_cpu", entry["cause"]), (exercise, entry))
    return dict(sorted(mutants_by_cause.items()))


def check_mutant(exercise: Exercise, entry: dict, folder: Path) -> Verdict:
    """Check the mutant in CPU mode and return the verdict."""
    file = folder / FILE
    file.write_text(mutants.make_text(exercise, entry), encoding="utf-8")
    return check(exercise, file, mode="cpu")


def write_source(exercise: Exercise, entry: dict) -> str:
    """Return the line of a section that says which mutant it shows."""
    return f"Exercise {exercise.id}, mutant `{entry['id']}`:"


def write_section(cause: str, exercise: Exercise, entry: dict, verdict: Verdict) -> str:
    """Return the page's section for one cause: the parts of the verdict in the order in which a
    learner sees them."""
    headline = f": {CAUSES[cause].headline}" if cause in CAUSES else ""
    report = make_report(verdict, exercise)
    pieces = [f"**{report.cause}**", f"Smallest failing case: {report.case}" if report.case else ""]
    if report.numbers:
        column = max(len(name) for name, _ in report.numbers) + 1
        pieces.append(
            "\n".join(
                ["```text", *(f"{name:{column}}{value}" for name, value in report.numbers), "```"]
            )
        )
    pieces.append(report.words)
    if report.place:
        quoted = quote_line(report.place)
        below = [f"{quoted.below}{quoted.carets} {quoted.label}".rstrip()] if quoted.carets else []
        where = f"{report.place.lead} `{FILE}:{report.place.line}`".lstrip()
        pieces.append(
            "\n".join([where, "```python", f"{quoted.gutter}{quoted.source}", *below, "```"])
        )
    text = "\n\n".join(piece for piece in (*pieces, report.question, report.common) if piece)
    quotation = "\n".join(f"> {line}".rstrip() for line in text.splitlines())
    return f"## {cause}{headline}\n\n{write_source(exercise, entry)}\n\n{quotation}\n"


def write_page(sections: Mapping[str, str]) -> str:
    """Return the whole page from its ``sections`` by cause."""
    counts = Counter(exercise.id for exercise, _ in mutants.list_mutants())
    table = "\n".join(f"| {exercise} | {number} |" for exercise, number in sorted(counts.items()))
    total = (
        f"| Exercise | Wrong solutions |\n|---|---|\n{table}\n| all | {sum(counts.values())} |\n"
    )
    silent = sorted(CAUSES.keys() - sections.keys())
    silent_section = (
        [_OTHERS.format(causes=", ".join(f"`{cause}`" for cause in silent))] if silent else []
    )
    return "\n".join([_HEAD, total, *sections.values(), *silent_section])


def read_sections(page: str) -> dict[str, str]:
    """Return the sections of a written page by cause."""
    return {
        text.split(":")[0].split("\n")[0]: f"## {text.rstrip()}\n"
        for text in re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    }


def main(argv: list[str]) -> int:
    chosen = {get(exercise).id for exercise in argv}
    stored = read_sections(PAGE.read_text(encoding="utf-8")) if chosen else {}
    sections = {}
    with tempfile.TemporaryDirectory(prefix="course-verdicts-") as scratch:
        for cause, (exercise, entry) in choose_mutants().items():
            stored_section = stored.get(cause, "")
            if (
                exercise.id not in chosen
                and f"\n\n{write_source(exercise, entry)}\n\n" in stored_section
            ):
                sections[cause] = stored_section
                continue
            sections[cause] = write_section(
                cause, exercise, entry, check_mutant(exercise, entry, Path(scratch))
            )
            print(f"{cause}: {exercise.id} {entry['id']}", flush=True)
    PAGE.parent.mkdir(exist_ok=True)
    write_atomic(PAGE, write_page(sections))
    print(f"{paths.shown(PAGE)}: {len(sections)} causes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
