"""``course author check``: all that the tests say of one exercise, with a line for each thing that
was looked at.

The checks are the tests themselves, chosen by the exercise's id, and the build of its lesson.
Nothing is checked in another way here.
"""

from __future__ import annotations

import contextlib
import os
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
from course_lib.base.translation import LANGUAGES, VARIABLE, choose_language
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.catalog import Exercise, exercises
from course_lib.lessons import prediction, steps

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
    "cut": N_("the exercise is cut out of its solution, and lies in exercises/"),
    "catalog": N_("every field of exercise.toml, the cases of each entry point"),
    "solution": N_("the solution passes; the unsolved file is not attempted"),
    "mutants": N_("each wrong solution is refused, with its cause"),
    "variants": N_("each right one passes, and is not the solution again"),
    "causes": N_(
        "every cause has its words, every known bug its mutants, docs/verdicts.md counts them"
    ),
    "notebook": N_(
        "the lesson is built from its source, has the exercise's panel, asks, is short, and runs"
    ),
    "prose": N_(
        "each number in the lesson's prose is filled from a stored file, or comes from what the"
        " lesson runs"
    ),
    "README": N_("it, docs/instructors.md and weeks.toml list the lesson"),
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
        looked_at = _("{count} looked at: {subject}").format(
            count=f"{self.tests:3}", subject=_(_LOOKED_AT[self.subject])
        )
        missing = [_("missing: {sentence}").format(sentence=line) for line in self.missing]
        return "\n".join(
            [f"  {sign} {self.subject:9} {looked_at}", *(f"      {line}" for line in missing)]
        )


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
        output = tests.communicate()[0]
        if not report.exists():
            raise CourseError(
                _("the tests of exercise {exercise} could not be run. pytest says:\n{text}").format(
                    exercise=exercise.id, text=output.strip()
                )
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
                _(
                    "no test looks at this: are solutions/{file}.py and lesson {lesson} in {folder}"
                    " there?"
                ).format(
                    file=exercise.file, lesson=exercise.lesson,
                    folder=paths.shown(paths.NOTEBOOK_SOURCES),
                )
            )  # fmt: skip
    return list(findings.values())


def check(chosen: list[Exercise]) -> int:
    """Print what is right and what is missing of each exercise; returns the exit code, 1 if
    something is missing."""
    wrong = []
    for exercise in chosen:
        started = time.monotonic()
        findings = check_exercise(exercise)
        print(f"{exercise.id} {exercise.title or _('(no title yet)')}")
        print("\n".join(finding.as_text() for finding in findings))
        print(f"  {time.monotonic() - started:.0f} s", flush=True)
        wrong += [exercise.id] if not all(finding.is_right for finding in findings) else []
    print(describe_translations())
    print(
        _("Something is missing in {exercises}.").format(exercises=", ".join(wrong))
        if wrong
        else _("Nothing is missing.")
    )
    return 1 if wrong else 0


def describe_translations() -> str:
    """Say for each language how much of the course's texts of today is translated, and which
    catalogs have changed texts for a translator to read."""
    lines = []
    for language in LANGUAGES.keys() - {"en"}:
        with _read_english():
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
        changed = _("; the English has changed in {catalogs}").format(catalogs=", ".join(fuzzy))
        lines.append(
            _("{language}: {translated} of {total} texts are translated, {percent} %{changed}.")
            .format(
                language=LANGUAGES[language], translated=translated, total=total,
                percent=100 * translated // total, changed=changed if fuzzy else "",
            )
        )  # fmt: skip
    return "\n".join(lines)


@contextlib.contextmanager
def _read_english() -> Iterator[None]:
    """Read the course's texts in English within the block, whatever language is chosen."""
    chosen = choose_language()
    if chosen == "en":
        yield
        return
    caches = (exercises, prediction.read_lesson, steps.read_lesson)
    os.environ[VARIABLE] = "en"
    for cached in caches:
        cached.cache_clear()
    try:
        yield
    finally:
        os.environ[VARIABLE] = chosen
        for cached in caches:
            cached.cache_clear()


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
            _(
                "{folder} has no lesson {lesson}: `course author new lesson {lesson}_NAME` lays one"
                " out."
            ).format(folder=paths.shown(paths.NOTEBOOK_SOURCES), lesson=lesson)
        ]
    try:
        notebooks.run_unsolved(notebooks.read_source(source))
    except (CellExecutionError, CellTimeoutError) as broken:
        return [
            _("{file} does not run: {reason}").format(
                file=paths.shown(source),
                reason=notebooks.COLOURS.sub("", str(broken)).strip().splitlines()[-1],
            )
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
    first_line = (message.strip().splitlines() or [_("it failed without a word")])[0]
    kind, _colon, words = first_line.partition(": ")
    return (
        words
        if words and kind.rpartition(".")[2].endswith(("Error", "Failed", "Exception"))
        else first_line
    )
