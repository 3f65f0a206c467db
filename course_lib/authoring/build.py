"""``make build``: make anew every built file whose sources differ from ``main``, and say what was
built, why, and what is left to a person.

A source that equals ``main`` needs no build: tests refuse a ``main`` whose built files are behind
their sources. ``build/built.json`` keeps what was built here already, so that a second call builds
only what changed since. ``--list`` builds nothing and says what is due, ``--all`` builds all.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polib

from course_lib import catalog
from course_lib.authoring import compiler_answers, notebooks
from course_lib.authoring.quick import list_changed
from course_lib.authoring.translations import list_catalogs
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.files import write_atomic
from course_lib.base.translation import LANGUAGES, find_catalog
from course_lib.catalog import Exercise

_BUILT = paths.ROOT / "build" / "built.json"
_LESSONS = "course_lib/lessons"


@dataclass(frozen=True)
class Target:
    """Files that one command makes.

    Attributes:
        name: what an author calls them; targets of one module run in one command.
        module: of ``course_lib.authoring``.
        sources: a regular expression; the paths from the course's folder that it matches whole.
        arguments: of the module.
    """

    name: str
    module: str
    sources: str
    arguments: tuple[str, ...] = ()

    @property
    def is_part(self) -> bool:
        """Return True if the arguments name a part of what the module builds, so that one command
        can build several parts."""
        return bool(self.arguments) and not self.arguments[0].startswith("--")

    def choose_sources(self, files: Sequence[str]) -> list[str]:
        return [file for file in files if re.fullmatch(self.sources, file)]


def list_targets() -> Iterator[Target]:
    """Yield every target; what a later one reads, an earlier one has made."""
    exercises = list(catalog.exercises().values())
    yield Target("the learners' exercise files", "exercises", r"solutions/.*\.py")
    for source in notebooks.list_sources():
        number = source.stem[:2]
        of_lesson = "|".join(
            [
                rf"notebooks/source/{number}_.*",
                rf"{_LESSONS}/lesson{number}/.*\.(py|toml|json)",
                *(_match_exercise(e, "exercise.toml") for e in exercises if e.lesson == number),
                *map(re.escape, _list_shared_sources(number)),
            ]
        )
        yield Target(f"lesson {number}", "notebooks", of_lesson, (number,))
    yield Target("pictures in all lessons", "notebooks", rf"{_LESSONS}/.*\.js", ("--pictures",))
    yield Target(
        "notebooks for hosted services",
        "hosted",
        r"notebooks/source/00_.*|notebooks/hosted/.*\.py|course_lib/authoring/(hosted|repository).py",
    )
    for exercise in exercises:
        sources = _match_exercise(exercise, r"[^/]*\.(py|toml)")
        for name, module in (
            ("verdicts on", "verdicts"),
            ("cases that kill wrong solutions of", "killing_cases"),
        ):
            yield Target(f"{name} {exercise.id}", module, sources, (exercise.id,))
    yield Target("all verdicts", "verdicts", r"course_lib/grading/judging/.*\.py")
    yield Target(
        "hunts",
        "hunts",
        "|".join(_match_exercise(e, r"(cases\.py|wrong\.toml)") for e in exercises),
    )
    yield Target(
        "tables and commands in README and docs/",
        "readme",
        r"course_lib/bench/results/.*|course_lib/authoring/(readme|repository)\.py|docs/.*\.md"
        r"|README\.md|pyproject\.toml|course_lib/exercises/.*",
    )
    yield Target(
        "translations",
        "translations",
        rf"notebooks/source/.*|solutions/.*|README\.md|docs/.*\.md|{_LESSONS}/.*"
        r"|course_lib/.*\.(py|html|toml|po)",
    )


def _match_exercise(exercise: Exercise, files: str) -> str:
    return rf"(solutions|course_lib/exercises)/{exercise.file}(\.py|/{files})"


def _list_shared_sources(lesson: str) -> list[str]:
    """Return the shared files that the lesson's code reads, as its last recording has them."""
    [notebook] = paths.NOTEBOOKS.glob(f"{lesson}_*.ipynb")
    recorded = compiler_answers.read_kept(notebook).sources
    return [name for name in recorded if name.startswith("course_lib/")]


def find_due(
    targets: Sequence[Target], changed: Sequence[str], built: Mapping[str, str]
) -> list[tuple[Target, list[str]]]:
    """Return each target that has a changed source and was not built from these sources here, with
    these sources."""
    due = []
    for target in targets:
        sources = target.choose_sources(changed)
        if sources and built.get(target.name) != hash_files(sources):
            due.append((target, sources))
    return due


def hash_files(names: Sequence[str]) -> str:
    """Return one hash of the named files: their names and contents, or that one is gone."""
    digest = hashlib.sha256()
    for name in sorted(names):
        file = paths.ROOT / name
        digest.update(name.encode() + (file.read_bytes() if file.is_file() else b"\0gone"))
    return digest.hexdigest()[:16]


def read_built() -> dict[str, str]:
    return json.loads(_BUILT.read_text(encoding="utf-8")) if _BUILT.exists() else {}


def build(due: Sequence[tuple[Target, list[str]]]) -> None:
    """Build the targets in order, those of one module in one command.

    Raises: CourseError if a command fails; what was built before it counts as built.
    """
    built, rest = read_built(), list(due)
    while rest:
        first = rest[0][0]
        together = [pair for pair in rest if _fit_together(pair[0], first)]
        rest = [pair for pair in rest if pair not in together]
        arguments = [word for target, _sources in together for word in target.arguments]
        command = ["-m", f"course_lib.authoring.{first.module}", *dict.fromkeys(arguments)]
        print(f"course: python {' '.join(command)}", flush=True)
        began = time.monotonic()
        if subprocess.run([sys.executable, *command], cwd=paths.ROOT).returncode:
            left = ", ".join(target.name for target, _sources in (*together, *rest))
            raise CourseError(f"this command failed; its words stand above. Still due: {left}.")
        built |= {target.name: hash_files(sources) for target, sources in together}
        write_atomic(_BUILT, json.dumps(built, indent=1, sort_keys=True) + "\n")
        names = ", ".join(target.name for target, _sources in together)
        print(f"course: built in {time.monotonic() - began:.0f} s: {names}", flush=True)


def _fit_together(target: Target, first: Target) -> bool:
    """Return True if one command builds both targets."""
    if target == first:
        return True
    return target.module == first.module and target.is_part and first.is_part


def list_for_people() -> list[str]:
    """Return what no command can do: the texts that lack a translation, by catalog."""
    lines = []
    for language in (language for language in LANGUAGES if language != "en"):
        for name in list_catalogs():
            file = find_catalog(language, name)
            entries = polib.pofile(str(file)) if file.exists() else ()
            missing = [entry for entry in entries if not entry.msgstr or entry.fuzzy]
            if missing:
                places = ", ".join(str(entry.linenum) for entry in missing[:5])
                lines.append(f"{len(missing)} texts to translate in {paths.shown(file)}: {places}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(prog="make build", description=__doc__)
    parser.add_argument("--since", default="main", help="the commit or branch to compare with")
    parser.add_argument("--all", action="store_true", help="build all, whatever changed")
    parser.add_argument("--list", action="store_true", help="say what is due, and build nothing")
    arguments = parser.parse_args()
    os.chdir(paths.ROOT)
    targets = list(list_targets())
    try:
        if arguments.all:
            # the pictures of a lesson are built with it, and the verdicts on an exercise with all
            within = {
                "pictures in all lessons",
                *(t.name for t in targets if t.module == "verdicts" and t.is_part),
            }
            due = [(target, []) for target in targets if target.name not in within]
        else:
            due = find_due(targets, list_changed(arguments.since), read_built())
        for target, sources in due:
            why = f" ({sources[0]}{' ...' * (len(sources) > 1)})" if sources else ""
            print(f"course: due: {target.name}{why}")
        if not due:
            print(f"course: nothing to build: no source differs from {arguments.since}.")
        if not arguments.list:
            build(due)
            for line in list_for_people():
                print(f"course: yours: {line}")
    except CourseError as error:
        sys.exit(f"course: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
