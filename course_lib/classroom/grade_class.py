"""A class from its folder to its gradebook. Everything that it writes lies in one folder, and grows or is replaced as a whole."""

from __future__ import annotations

import errno
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from course_lib import catalog
from course_lib.base import runtime
from course_lib.base.errors import CourseError, EnvironmentFault
from course_lib.base.files import TemporaryFolder, open_private
from course_lib.catalog import Exercise, texts
from course_lib.classroom import archives, checking, gradebook, reports, similarity
from course_lib.classroom.collecting import Collected, collect
from course_lib.classroom.discovery import Submissions, clean_name, discover
from course_lib.classroom.engine import CheckAnswer, Engine, Job
from course_lib.classroom.gradebook import NO_FILE, NOT_GRADED, Mark, Row
from course_lib.classroom.journal import Journal, describe_full_disk
from course_lib.classroom.out_folder import JOURNAL, prepare_folder, take_secret, write_lines
from course_lib.classroom.predictions import read_surprises
from course_lib.classroom.similarity import Common, Pair
from course_lib.grading.cases.hidden import Secret
from course_lib.grading.verdict import ERROR
from course_lib.sandbox import isolation, jobs

GRADEBOOK, CANVAS, RESULTS, SIMILAR, TIMINGS = (
    "gradebook.csv",
    "canvas.csv",
    "results.jsonl",
    "similar.csv",
    "timings.csv",
)


@dataclass(frozen=True)
class Options:
    """How a class is graded. ``only`` and ``recheck`` are exercises; ``late`` is the moment after which a submission is late."""

    only: tuple[str, ...] = ()
    recheck: tuple[str, ...] = ()
    secret_file: Path | None = None
    mapping: Path | None = None
    late: datetime | None = None
    weights: str = "difficulty"
    tier: str | None = None


@dataclass(frozen=True)
class Progress:
    """How far it is: ``files`` are done, and of ``learners`` as many as ``done`` says, in parts of a learner: one of three files is a third.
    How many files there are nobody knows before the last submission is opened. ``seconds`` are those of the check that has just ended,
    None if the verdict was there."""

    files: int
    done: float
    learners: int
    seconds: float | None


@dataclass(frozen=True)
class Graded:
    """What came out. ``faults``: learner, exercise and reason of each file that could not be graded."""

    out: Path
    learners: int
    checked: int
    kept: int
    torn: int
    tier: str
    faults: tuple[tuple[str, str, str], ...]
    problems: tuple[tuple[str, str], ...]


def grade_class(
    folder: Path,
    out: Path,
    options: Options,
    start: Callable[[], AbstractContextManager[Executor]],
    width: int,
    *,
    check: Callable[[Any], CheckAnswer] = checking.check_request,
    find_tier: Callable[[], str] | None = None,
    tell: Callable[[Progress], None] = lambda progress: None,
) -> Graded:
    """Grade everybody in ``folder``, and write ``out``. What was checked before, with the same grader and the same secret, is not checked again.

    Args:
        start: starts workers, ``width`` of whose checks may be on their way.
        check: what a worker runs; ``find_tier``: the best isolation of this machine.

    Raises: CourseError if folder, options or ``out`` cannot be used; EnvironmentFault if the disk is full, or the machine lets nothing be
    checked. Whatever was graded until then is kept.
    """
    exercises = [catalog.get(name) for name in options.only] or list(catalog.exercises().values())
    exercises = [exercise for exercise in catalog.exercises().values() if exercise in exercises]
    recheck = {catalog.get(name).id for name in options.recheck}
    if unknown := recheck - {exercise.id for exercise in exercises}:
        raise CourseError(f"--recheck names {', '.join(sorted(unknown))}, which --only leaves out.")
    people = discover(folder, options.mapping)
    prepare_folder(out, folder)
    try:
        with Journal(out / JOURNAL) as journal:
            tier = choose_tier(options.tier, (find_tier or find_best_tier)())
            secret = take_secret(out, options.secret_file)
            return _Run(out, options, exercises, people, journal, tier, secret).go(start, width, check, tell)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM):
            raise
        raise describe_full_disk(error, Path(error.filename) if isinstance(error.filename, str) else out) from error


def find_best_tier() -> str:
    """The best isolation that this machine has, found out by a job that does nothing.

    Raises: EnvironmentFault if no process starts at all.
    """
    with TemporaryFolder("course-probe-") as folder:
        answer = jobs.run(archives.KIND, {"archive": "", "name": "probe"}, folder, jobs.ResourceLimits())
    if answer.tier not in isolation.TIERS:
        raise EnvironmentFault(
            f"a confined process did not start ({answer.cause_of_end}). `course doctor` says what is wrong with this machine."
        )
    return answer.tier


def choose_tier(asked: str | None, best: str) -> str:
    """The tier that every check has to have: the one asked for, else the best there is.

    Raises: EnvironmentFault if that is no protection, and nobody said that none is needed; or if the machine has not what was asked for.
    """
    if asked is None and best == isolation.LIMITS:
        raise EnvironmentFault(
            "this machine cannot shut a submission in: it has the tier 'limits only', which stops nobody who means harm. Nothing was run. `course doctor` "
            "says what is missing. If you trust everybody in this class: `--require-tier limits`."
        )
    if asked is not None and isolation.TIERS.index(best) > isolation.TIERS.index(asked):
        raise EnvironmentFault(
            f"this machine has the tier {best!r} of isolation, and {asked!r} was asked for. Nothing was run. `course doctor` says what is missing."
        )
    return asked or best


@dataclass
class _Person:
    """What is kept of a learner while the class is graded; the files are not."""

    row: Row
    keys: dict[str, str]  # by exercise
    refused: dict[str, str]
    fingerprints: dict[str, array[int]]  # a set of as many numbers takes twenty times the room


class _Run:
    def __init__(
        self, out: Path, options: Options, exercises: Sequence[Exercise], people: Sequence[Submissions], journal: Journal, tier: str, secret: bytes,
    ):  # fmt: skip
        self.out, self.options, self.exercises, self.people, self.journal = out, options, exercises, people, journal
        self.tier, self.secret, self.version = tier, secret, checking.grader_version()
        self.mode = runtime.current().mode
        self.setting = f"{self.version} {Secret(secret).fingerprint} {self.mode}"
        self.recheck = {catalog.get(name).id for name in options.recheck}
        self.known: list[_Person] = []
        self._unsolved: dict[str, frozenset[int]] = {}
        self.done = Fraction()  # learners
        self._parts: dict[str, list[Fraction]] = {}  # of a learner, for each time that a file is in the class

    def go(
        self,
        start: Callable[[], AbstractContextManager[Executor]],
        width: int,
        check: Callable[[Any], CheckAnswer],
        tell: Callable[[Progress], None],
    ) -> Graded:
        files = 0
        with open(self.out / TIMINGS, "a", encoding="ascii", opener=open_private) as timings:

            def note(key: str, seconds: float | None) -> None:
                nonlocal files
                files += 1
                self.done += self._parts[key].pop()
                if seconds is not None:
                    timings.write(f"{key},{seconds:.3f}\n")
                tell(Progress(files, float(self.done), len(self.people), seconds))

            outcome = Engine(start, check, self.journal, width=width, tell=note).run(self._list_jobs())
        tell(Progress(files, float(self.done), len(self.people), None))
        rows = _Rows(self, outcome.faults)
        self._write(rows)
        return Graded(
            self.out,
            len(self.known),
            outcome.checked,
            outcome.kept,
            self.journal.torn,
            self.tier,
            tuple(
                (person.row.learner, name, outcome.faults[key])
                for person in self.known
                for name, key in person.keys.items()
                if key in outcome.faults
            ),
            tuple((person.row.learner, person.row.problem) for person in self.known if person.row.problem),
        )

    def _list_jobs(self) -> Iterator[Job]:
        """One learner after the other, so that no more than one's files are held here."""
        for submissions in self.people:
            collected = collect(submissions, self.exercises)
            keys = {
                name: checking.make_key(name, member.data, self.setting) for name, member in collected.files.items()
            }
            fingerprints = {
                name: array("I", sorted(similarity.take_fingerprint(member.data, self._given(name))))
                for name, member in collected.files.items()
            }
            self.known.append(_Person(self._describe(collected), keys, collected.refused, fingerprints))
            if not keys:
                self.done += 1
            for name, key in keys.items():
                self._parts.setdefault(key, []).append(Fraction(1, len(keys)))
                data = collected.files[name].data
                yield Job(
                    key,
                    checking.Request(name, data, self.secret, self.tier, self.mode, self.version),
                    anew=name in self.recheck,
                )

    def _given(self, exercise_id: str) -> frozenset[int]:
        """What every file of an exercise shares, because the course wrote it."""
        if exercise_id not in self._unsolved:
            self._unsolved[exercise_id] = similarity.take_every_run(texts.make_unsolved_text(catalog.get(exercise_id)))
        return self._unsolved[exercise_id]

    def _find_alike(self) -> tuple[list[Pair], list[Common]]:
        pairs, common = [], []
        for exercise in self.exercises:
            known = ((person.row.learner, frozenset(person.fingerprints.get(exercise.id, ()))) for person in self.known)
            of_exercise = similarity.find_pairs(exercise.id, known)
            pairs += of_exercise[0]
            common += of_exercise[1]
        return pairs, common

    def _describe(self, collected: Collected) -> Row:
        """All of a row but its marks."""
        entry, time = collected.entry, collected.time
        submitted = _read_time(time)
        late = "marked late by the system that it comes from" if entry.late else ""
        if not late and self.options.late and submitted and submitted > self.options.late:
            late = "the file is newer than the date given"
        return Row(
            entry.key,
            entry.learner, entry.id, entry.login, (), submitted, late, collected.problem, tuple(collected.notes),
            " + ".join(clean_name(source.path.name) for source in entry.sources),
            (read_surprises(collected.progress) if collected.progress is not None else None) or {},
        )  # fmt: skip

    def make_row(self, person: _Person, faults: dict[str, str]) -> Row:
        return replace(person.row, marks=tuple(self._mark(exercise, person, faults) for exercise in self.exercises))

    def _mark(self, exercise: Exercise, person: _Person, faults: dict[str, str]) -> Mark:
        possible = gradebook.weigh(exercise, self.options.weights)
        key = person.keys.get(exercise.id)
        if key is None:
            refused = person.refused.get(exercise.id, "")
            return Mark(exercise.id, ERROR if refused else NO_FILE, 0.0, reason=refused)
        if key in faults:  # a verdict from before --recheck is not what was asked for
            return Mark(exercise.id, NOT_GRADED, None, reason=faults[key])
        verdict = self.journal.get(key)
        assert verdict is not None, "every file has a verdict or a fault"
        return Mark(exercise.id, verdict["status"], gradebook.give_points(exercise, verdict, possible), verdict)

    def _write(self, rows: Iterable[Row]) -> None:
        weights = self.options.weights
        write_lines(self.out / GRADEBOOK, gradebook.write_gradebook(rows, self.exercises, weights))
        write_lines(self.out / CANVAS, gradebook.write_canvas(rows, self.exercises, weights))
        write_lines(self.out / RESULTS, gradebook.write_results(rows))
        pairs, common = self._find_alike()
        write_lines(self.out / SIMILAR, gradebook.write_similar(pairs))
        reports.write_reports(self.out, rows, self.exercises, weights, pairs, common)


@dataclass(frozen=True)
class _Rows:
    """Everybody's row, made from the journal each time it is asked for: a class's verdicts are never all in memory."""

    run: _Run
    faults: dict[str, str]

    def __iter__(self) -> Iterator[Row]:
        return (self.run.make_row(person, self.faults) for person in self.run.known)


def _read_time(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, UTC) if seconds else None
    except (ValueError, OverflowError, OSError):
        return None  # a file system holds times that no calendar does
