"""``course author check``: all that the tests say of one exercise, with a line for each thing that
was looked at.

The checks are the tests themselves, chosen by the exercise's id, and the build of its lesson.
Nothing is checked in another way here.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from nbclient.exceptions import CellExecutionError, CellTimeoutError

from course_lib.authoring import notebooks, translations
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.translation import LANGUAGES
from course_lib.catalog import Exercise

_FILES = (
    "tests/catalog",
    "tests/grading/test_grading.py",
    "tests/grading/test_causes.py",
    "tests/lessons/test_notebooks.py",
    "tests/authoring/test_prose.py",
    "tests/authoring/test_readme.py",
    "tests/authoring/test_lesson_size.py",
    "tests/classroom/test_weeks.py",
    "tests/test_documents.py",
)
# by words of a test's name, the first that fits: what is looked at
_SUBJECTS = {
    "test_causes": "causes",
    "test_cut": "cut",
    "test_catalog": "catalog",
    "the_solution_passes": "solution",
    "unsolved": "solution",
    "mutant_fails": "mutants",
    "has_mutants": "mutants",
    "variant": "variants",
    "right_but_different": "variants",
    "test_notebooks": "notebook",
    "test_lesson_size": "notebook",
    "test_prose": "prose",
    "test_readme": "README",
    "readme_counts": "README",
    "terms_plan": "README",
    "plan_of_the_instructors": "README",
    "": "causes",
}
_LOOKED_AT = {
    "cut": "the exercise is cut out of its solution, and lies in exercises/",
    "catalog": "every field of exercise.toml, the cases of each entry point",
    "solution": "the solution passes; the unsolved file is not attempted",
    "mutants": "each wrong solution is refused, with its cause",
    "variants": "each right one passes, and is not the solution again",
    "causes": (
        "every cause has its words, every known bug its mutants, docs/verdicts.md counts them"
    ),
    "notebook": (
        "the lesson is built from its source, has the exercise's panel, asks, is short, and runs"
    ),
    "prose": (
        "each number in the lesson's prose is filled from a stored file, or comes from what the"
        " lesson runs"
    ),
    "README": "it, docs/instructors.md and weeks.toml list the lesson",
}
_LEFT_OUT = "not nbval"  # it runs the lesson once more


@dataclass
class SubjectReport:
    """The results of the tests of one subject: their number, and a sentence for each failure."""

    subject: str
    tests: int = 0
    missing: list[str] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        return not self.missing and self.tests > 0

    def as_text(self) -> str:
        sign = "✓" if self.is_right else "✗"
        lines = [f"  {sign} {self.subject:9} {self.tests:3} looked at: {_LOOKED_AT[self.subject]}"]
        return "\n".join([*lines, *(f"      missing: {sentence}" for sentence in self.missing)])


def check_exercise(exercise: Exercise) -> list[SubjectReport]:
    """Look at one exercise. The lesson runs while the tests do.

    Raises: CourseError if the tests cannot be run.
    """
    findings = {subject: SubjectReport(subject) for subject in _LOOKED_AT}
    with tempfile.TemporaryDirectory(prefix="course-author-") as scratch:
        report = Path(scratch) / "report.xml"
        chosen = (
            f"({exercise.id} or test_causes or counts_every_mutant or test_every_lesson_is_linked"
            " or readme_counts or terms_plan_has_every or plan_of_the_instructors or"
            f" {exercise.lesson}_ or [{exercise.lesson}]) and {_LEFT_OUT}"
        )
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            "2",
            "--dist",
            "worksteal",
            "-p",
            "no:cacheprovider",
            f"--junitxml={report}",
        ]
        tests = subprocess.Popen(
            [*command, "-k", chosen, *_FILES],
            cwd=paths.ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        notebook = findings["notebook"]
        notebook.tests += 1
        notebook.missing += _run_lesson(exercise.lesson)
        output, _ = tests.communicate()
        if not report.exists():
            raise CourseError(
                f"the tests of exercise {exercise.id} could not be run. pytest"
                f" says:\n{output.strip()}"
            )
        sentences = set()
        for name, sentence, test in read_report(report):
            finding = findings[find_subject(name)]
            finding.tests += 1
            if sentence and sentence not in sentences:  # several tests may meet one thing
                sentences.add(sentence)
                finding.missing.append(f"{sentence} ({test})")
    for finding in findings.values():
        if not finding.tests:
            finding.missing.append(
                f"no test looks at this: are solutions/{exercise.file}.py and lesson"
                f" {exercise.lesson} in {paths.shown(paths.NOTEBOOK_SOURCES)} there?"
            )
    return list(findings.values())


def check(chosen: list[Exercise]) -> int:
    """Print what is right and what is missing of each exercise; returns the exit code, 1 if
    something is missing."""
    wrong = []
    for exercise in chosen:
        started = time.monotonic()
        findings = check_exercise(exercise)
        print(f"{exercise.id} {exercise.title or '(no title yet)'}")
        print("\n".join(finding.as_text() for finding in findings))
        print(f"  {time.monotonic() - started:.0f} s", flush=True)
        wrong += [exercise.id] if not all(finding.is_right for finding in findings) else []
    print(describe_translations())
    print(f"Something is missing in {', '.join(wrong)}." if wrong else "Nothing is missing.")
    return 1 if wrong else 0


def describe_translations() -> str:
    """Say for each language how much of the course's texts of today is translated, and which
    catalogs have changed texts for a translator to read."""
    lines = []
    for language in LANGUAGES.keys() - {"en"}:
        catalogs = {
            name: translations.update(language, name) for name in translations.list_catalogs()
        }
        translated = sum(
            len(language_catalog.translated_entries()) for language_catalog in catalogs.values()
        )
        total = sum(map(len, catalogs.values()))
        fuzzy = [
            f"{name} ({len(language_catalog.fuzzy_entries())})"
            for name, language_catalog in catalogs.items()
            if language_catalog.fuzzy_entries()
        ]
        read = f"; the English has changed in {', '.join(fuzzy)}" if fuzzy else ""
        lines.append(
            f"{LANGUAGES[language]}: {translated} of {total} texts are translated,"
            f" {100 * translated // total} %{read}."
        )
    return "\n".join(lines)


def find_subject(test: str) -> str:
    """Return the subject of the test with this whole name."""
    return next(subject for words, subject in _SUBJECTS.items() if words in test)


def _run_lesson(lesson: str) -> list[str]:
    """Run the lesson's notebook as a newcomer meets it; a sentence if it cannot be run."""
    source = next(
        (source for source in notebooks.list_sources() if source.name.startswith(f"{lesson}_")),
        None,
    )
    if source is None:
        return [
            f"{paths.shown(paths.NOTEBOOK_SOURCES)} has no lesson {lesson}: `course author new"
            f" lesson {lesson}_NAME` lays one out."
        ]
    try:
        notebooks.run_unsolved(notebooks.read_source(source))
    except (CellExecutionError, CellTimeoutError) as broken:
        return [
            f"{paths.shown(source)} does not run:"
            f" {notebooks.COLOURS.sub('', str(broken)).strip().splitlines()[-1]}"
        ]
    except CourseError as error:
        return [str(error)]
    return []


def read_report(report: Path) -> Iterator[tuple[str, str, str]]:
    """Each test's whole name; if it failed, a sentence about what is missing; and its own name."""
    for case in xml.parse(report).getroot().iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        broken = next((part for part in case if part.tag in ("failure", "error")), None)
        yield (
            name,
            "" if broken is None else _first_sentence(broken.get("message", "")),
            case.get("name", ""),
        )


def _first_sentence(message: str) -> str:
    """The words of an assertion or an exception, without its type and without the values that
    pytest adds."""
    first_line = (message.strip().splitlines() or ["it failed without a word"])[0]
    kind, _, words = first_line.partition(": ")
    return (
        words
        if words and kind.rpartition(".")[2].endswith(("Error", "Failed", "Exception"))
        else first_line
    )
