"""The grading of a class, from the folder of submissions to the gradebook. All results lie in one
folder, with those of earlier runs."""

from __future__ import annotations

import difflib
import errno
import functools
import hashlib
import unicodedata
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from course_lib import catalog
from course_lib.base import paths, runtime
from course_lib.base.errors import CourseError, EnvironmentFault
from course_lib.base.files import open_private
from course_lib.base.text import make_visible_line
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.catalog import Exercise, edits, texts
from course_lib.classroom import archives, checking, feedback, gradebook, reports, similarity
from course_lib.classroom.collecting import Collected, Misnamed, collect, read_clock
from course_lib.classroom.computed_values import number_values
from course_lib.classroom.discovery import Submissions, clean_name, discover, list_strays
from course_lib.classroom.engine import CheckAnswer, Engine, Job
from course_lib.classroom.journal import Journal, describe_full_disk
from course_lib.classroom.lateness import LateRule
from course_lib.classroom.marking import Marker, weigh
from course_lib.classroom.out_folder import (
    JOURNAL,
    forget_files,
    keep_file,
    prepare_folder,
    take_secret,
    write_lines,
)
from course_lib.classroom.own_word import MARKS, Word, read_words
from course_lib.classroom.predictions import read_surprises
from course_lib.classroom.record import Attempt, Person, Record, Rules, note_regrades, read_record
from course_lib.grading.cases.hidden import Secret, derive_secret
from course_lib.sandbox import isolation, jobs

GRADEBOOK, CANVAS, RESULTS = "gradebook.csv", "canvas.csv", "results.jsonl"
SIMILAR, TIMINGS, REGRADES = "similar.csv", "timings.csv", "regrades.csv"
_MOST_LINES = 400  # limit on the lines that are shown of each of two similar files
_NOT_SHOWN = (
    b"(This file was compared, and is not in the folders of the last run. A run with that folder"
    b" shows it; --also names an earlier class's.)"
)


@dataclass(frozen=True)
class ClassOptions:
    """The options for grading a class.

    ``only`` names the exercises to grade; if it is empty, all are graded. ``recheck`` names
    exercises to check again although they have verdicts. ``due`` has the deadline of each exercise
    that has one. ``weights``, ``late``, ``partial`` and ``absent_zero`` are the rules for points. A
    rule that is None is taken from earlier runs, or else has its default. ``change_rules`` permits
    rules that differ from those of earlier runs. ``anew`` discards the marks of earlier runs.
    ``also`` has folders of earlier classes: their files are compared with this class's, but not
    graded. ``accept_names`` lets a file count whose name only hints at an exercise, if it is the
    only one.
    """

    only: tuple[str, ...] = ()
    recheck: tuple[str, ...] = ()
    secret_file: Path | None = None
    mapping: Path | None = None
    due: Mapping[str, datetime] = field(default_factory=dict)
    weights: str | None = None
    late: LateRule | None = None
    partial: bool | None = None
    absent_zero: bool | None = None
    change_rules: bool = False
    anew: bool = False
    tier: str | None = None
    also: tuple[Path, ...] = ()
    accept_names: bool = False


@dataclass(frozen=True)
class Progress:
    """The progress of a run: the number of files done, and of learners done out of all
    ``learners``.

    ``done`` counts fractions of a learner: one of three files is a third. The total number of files
    is unknown until the last submission is opened. ``seconds`` is the duration of the check that
    has just ended, or None if the file was not checked in this run.
    """

    files: int
    done: float
    learners: int
    seconds: float | None


@dataclass(frozen=True)
class Graded:
    """The result of a run.

    ``checked`` counts the verdicts made in this run, ``kept`` those taken from the journal,
    ``torn`` the damaged lines of the journal. ``faults`` has learner, exercise and reason of each
    file that could not be graded. ``problems`` has learner and reason of each submission that could
    not be read. ``strays`` are files of the class's folder that belong to no submission.
    ``regraded`` counts the marks whose points differ from those of earlier runs. ``new`` has each
    learner whom no earlier run had, with the absent learner whose name is much like it, or "";
    ``absent`` the learners of earlier runs of whom this run has nothing; both are empty in the
    first run. ``unsettled`` has learner and exercises of what is late by an unknown time.
    ``misnamed`` has learner and file of what was not read because of its name, with the exercise
    that the name hints at, or "".
    """

    out: Path
    learners: int
    checked: int
    kept: int
    torn: int
    tier: str
    faults: tuple[tuple[str, str, str], ...]
    problems: tuple[tuple[str, str], ...]
    strays: tuple[str, ...]
    regraded: int
    new: tuple[tuple[str, str], ...] = ()
    absent: tuple[str, ...] = ()
    unsettled: tuple[tuple[str, tuple[str, ...]], ...] = ()
    misnamed: tuple[tuple[str, str, str], ...] = ()


def grade_class(
    folder: Path,
    out: Path,
    options: ClassOptions,
    start: Callable[[], AbstractContextManager[Executor]],
    width: int,
    *,
    check: Callable[[Any], CheckAnswer] = checking.check_request,
    find_tier: Callable[[], str] | None = None,
    tell: Callable[[Progress], None] = lambda progress: None,
) -> Graded:
    """Grade all learners in ``folder``, and write the results into ``out``.

    A file that was checked before, with the same grader and the same secret, is not checked again.

    Args:
        start: starts the workers.
        width: limit on the checks that are sent off and not yet answered.
        check: the function that a worker runs.
        find_tier: returns the best isolation that this machine has.
        tell: called with the progress after each file, and at the end.

    Raises: CourseError if ``folder``, the options or ``out`` cannot be used; EnvironmentFault if
    the disk is full, or if this machine cannot check files. Verdicts that were reached before the
    exception are kept.
    """
    asked_ids = {catalog.get(name).id for name in options.only} or set(catalog.exercises())
    recheck = {catalog.get(name).id for name in options.recheck}
    if unknown := recheck - asked_ids:
        raise CourseError(
            _("--recheck names {exercises}, which --only leaves out.").format(
                exercises=", ".join(sorted(unknown))
            )
        )
    people = discover(folder, options.mapping)
    earlier = [
        (f"{submissions.learner.learner} ({clean_name(folder_before.resolve().name)})", submissions)
        for folder_before in options.also
        for submissions in discover(folder_before)
    ]
    strays = () if options.mapping else tuple(list_strays(folder))
    prepare_folder(out, folder)
    try:
        with Journal(out / JOURNAL) as journal:
            record = Record() if options.anew else read_record(out)
            if not record.rules and not options.anew and (out / GRADEBOOK).exists():
                raise CourseError(
                    _(
                        "{folder} has a gradebook of an older version of the course, which this run"
                        " would replace: `--anew` allows that. The verdicts are kept."
                    ).format(folder=paths.shown(out))
                )
            record.rules = settle_rules(record.rules, options, out)
            record.asked |= asked_ids
            _refuse_namesakes(record, people)
            words = read_words(out / MARKS, list_names(record, people))
            tier = choose_tier(options.tier, (find_tier or find_best_tier)())
            secret = take_secret(out, options.secret_file)
            exercises = [
                exercise for exercise in catalog.exercises().values() if exercise.id in asked_ids
            ]
            return _Run(
                out,
                options,
                exercises,
                people,
                journal,
                tier,
                secret,
                record,
                words,
                strays,
                earlier,
            ).go(start, width, check, tell)
    except OSError as error:
        if error.errno not in (
            errno.ENOSPC,
            errno.EDQUOT,
            errno.EFBIG,
            errno.EROFS,
            errno.EACCES,
            errno.EPERM,
        ):
            raise
        raise describe_full_disk(
            error, Path(error.filename) if isinstance(error.filename, str) else out
        ) from error


def _refuse_namesakes(record: Record, people: Sequence[Submissions]) -> None:
    """Raise CourseError if a learner of Moodle, whose number is another one in each assignment, has
    the name of several learners of before."""
    present = [submissions.learner.key for submissions in people]
    for submissions in people:
        entry = submissions.learner
        namesakes = record.find_all(entry.key, entry.learner, entry.id, present)
        if len(namesakes) > 1:
            numbers = ", ".join(person.id or person.key for person in namesakes)
            raise CourseError(
                _(
                    "{learner} of this folder may be any of {count} learners of before (Moodle's"
                    " numbers {numbers}): Moodle gives another number in each assignment. Nothing"
                    " was graded. Say who is who with --map: a CSV file with the columns"
                    " learner,path,id and a line for everybody in this folder, with the ID that the"
                    " gradebook has."
                ).format(learner=entry.learner, count=len(namesakes), numbers=numbers)
            )


def find_like_name(name: str, names: Sequence[str]) -> str:
    """Return the name among ``names`` that is most like ``name``, in capitals, accents, spaces or
    a letter or two; "" if none is."""
    plain = {_simplify_name(candidate): candidate for candidate in names}
    near = difflib.get_close_matches(_simplify_name(name), plain, n=1, cutoff=0.8)
    return plain[near[0]] if near else ""


def _simplify_name(name: str) -> str:
    decomposed = unicodedata.normalize("NFKD", name.casefold())
    return "".join(letter for letter in decomposed if letter.isalnum())


def find_best_tier() -> str:
    """Return the best isolation that this machine has. An empty job tries it out.

    Raises: EnvironmentFault if no process starts at all.
    """
    answer = jobs.run(
        archives.KIND, {"name": "probe"}, jobs.ResourceLimits(), inputs={archives.ARCHIVE: b""}
    )
    if answer.tier not in isolation.TIERS:
        raise jobs.describe_not_started(N_("runs submissions"), answer)
    return answer.tier


def choose_tier(required: str | None, best: str) -> str:
    """Return the tier of isolation that every check has to have: ``required``, or ``best`` if none
    was asked for.

    Raises: EnvironmentFault if no tier was asked for and the best is "limits only", which is no
    protection; or if this machine does not have the tier that was asked for.
    """
    if required is None and best == isolation.LIMITS:
        raise EnvironmentFault(
            _(
                "this machine cannot shut a submission in: it has the tier 'limits only', which"
                " stops nobody who means harm. Nothing was run. `course doctor` says what is"
                " missing. If you trust everybody in this class: `--require-tier limits`."
            )
        )
    if required is not None and isolation.TIERS.index(best) > isolation.TIERS.index(required):
        raise EnvironmentFault(
            _(
                "this machine has the tier {best!r} of isolation, and {required!r} was asked for."
                " Nothing was run. `course doctor` says what is missing."
            ).format(best=_(best), required=_(required))
        )
    return required or best


def settle_rules(before: Rules | None, options: ClassOptions, out: Path) -> Rules:
    """Return the rules for points: those of the options, and where an option is None that of
    earlier runs.

    Raises: CourseError if they differ from the rules of earlier runs and ``change_rules`` is not
    set.
    """
    earlier = before or Rules()
    rules = Rules(
        earlier.weights if options.weights is None else options.weights,
        earlier.late if options.late is None else options.late,
        earlier.partial if options.partial is None else options.partial,
        earlier.absent_zero if options.absent_zero is None else options.absent_zero,
    )
    if before and rules != before and not options.change_rules:
        raise CourseError(
            _(
                "every mark in {folder} was given with: {before}. This run would give all of them"
                " anew with: {now}. Nothing was written. `--change-rules` allows it."
            ).format(folder=paths.shown(out), before=before.describe(), now=rules.describe())
        )
    return rules


def list_names(record: Record, people: Sequence[Submissions] = ()) -> list[tuple[str, set[str]]]:
    """Return each learner's key, with the names that ``marks.csv`` may use: name, number, login,
    and each of them defused."""
    present = [person.learner.key for person in people]
    named: dict[str, set[str]] = {}
    for key, names in (
        *((person.key, (person.learner, person.id, person.login)) for person in record),
        *(
            (
                submissions.learner.key,
                (submissions.learner.learner, submissions.learner.id, submissions.learner.login),
            )
            for submissions in people
        ),
    ):
        person = record.find(key, *names[:2], present)
        named.setdefault(person.key if person else key, set()).update(
            cell for name in names if name for cell in (name, gradebook.defuse(name))
        )
    return list(named.items())


@dataclass
class _Submission:
    """The data of one learner's submission that stay in memory until the class is graded. The files
    do not."""

    person: Person
    attempts: dict[str, Attempt]
    misnamed: list[Misnamed]
    # by exercise; arrays take far less memory than sets
    fingerprints: dict[str, array[int]]
    values: dict[str, array[int]]


class _Run:
    def __init__(
        self, out: Path, options: ClassOptions, exercises: Sequence[Exercise],
        people: Sequence[Submissions], journal: Journal, tier: str, secret: bytes,
        record: Record, words: Mapping[tuple[str, str], Word], strays: tuple[str, ...],
        earlier: Sequence[tuple[str, Submissions]],
    ):  # fmt: skip
        self.out = out
        self.options = options
        self.exercises = exercises
        self.people = people
        self.journal = journal
        self.tier, self.secret, self.version = tier, secret, checking.grader_version()
        self.record, self.words, self.strays, self.earlier = record, words, strays, earlier
        self.mode = runtime.current().mode
        self.recheck = {catalog.get(name).id for name in options.recheck}
        self.present = [person.learner.key for person in people]
        self.before = list(record.people)
        self.known: list[_Submission] = []
        self._unsolved: dict[str, frozenset[int]] = {}
        self.done = Fraction()  # in learners
        # by the key of a file: one entry per learner who handed it in, the file's share of that
        # learner's files
        self._parts: dict[str, list[Fraction]] = {}

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

            outcome = Engine(start, check, self.journal, width=width, tell=note).run(
                self._list_jobs()
            )
        tell(Progress(files, float(self.done), len(self.people), None))
        self._add_to_record(outcome.faults)
        marker = Marker(self.record, self.journal.get, self.words)
        regraded = self._write(marker)
        new, absent = self._compare_with_before()
        unsettled = tuple(
            (person.learner, tuple(exercises))
            for person in self.record
            if (exercises := marker.list_unsettled(person))
        )
        return Graded(
            self.out,
            len(self.known),
            outcome.checked,
            outcome.kept,
            self.journal.torn,
            self.tier,
            tuple(
                (collected.person.learner, name, outcome.faults[attempt.key])
                for collected in self.known
                for name, attempt in collected.attempts.items()
                if attempt.key in outcome.faults
            ),
            tuple(
                (collected.person.learner, collected.person.problem)
                for collected in self.known
                if collected.person.problem
            ),
            self.strays,
            regraded,
            new,
            absent,
            unsettled,
            tuple(
                (collected.person.learner, misnamed.path, misnamed.exercise)
                for collected in self.known
                for misnamed in collected.misnamed
            ),
        )

    def _compare_with_before(self) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
        """Return the learners whom no earlier run had, each with the absent learner of a like name,
        and the absent ones."""
        if not self.before:
            return (), ()
        present = {collected.person.key for collected in self.known}
        absent = [person.learner for person in self.record if person.key not in present]
        new = [
            collected.person.learner
            for collected in self.known
            if collected.person.key not in self.before
        ]
        return tuple((name, find_like_name(name, absent)) for name in new), tuple(absent)

    def _list_jobs(self) -> Iterator[Job]:
        """Yield a job per file. Read one learner's submission after the other, so that only one
        learner's files are in memory."""
        for submissions in self.people:
            collected = self._collect(submissions)
            for name in [
                name
                for name, member in collected.files.items()
                if catalog.get(name).optional and _is_unsolved(name, member.data)
            ]:
                del collected.files[name]  # an optional task that nobody began was not handed in
            files, person = collected.files, self._describe(collected)
            attempts = self._list_attempts(collected, person)
            self.known.append(
                _Submission(
                    person,
                    attempts,
                    collected.misnamed,
                    self._take_fingerprints(collected),
                    self._list_values(collected),
                )
            )
            if not files:
                self.done += 1
            for name, member in files.items():
                owner = find_owner(person, name, member.data)
                self._parts.setdefault(attempts[name].key, []).append(Fraction(1, len(files)))
                keep_file(self.out, member.data)
                yield Job(
                    attempts[name].key,
                    checking.Request(
                        name,
                        member.data,
                        derive_owners_secret(self.secret, owner),
                        self.tier,
                        self.mode,
                        self.version,
                    ),
                    anew=name in self.recheck,
                )

    def _collect(self, submissions: Submissions) -> Collected:
        return collect(submissions, self.exercises, self.options.accept_names)

    def _list_attempts(self, collected: Collected, person: Person) -> dict[str, Attempt]:
        """Return the files that one learner handed in, by exercise, without their verdicts."""
        attempts = {}
        for name in [*collected.files, *collected.refused]:
            due = self.options.due.get(name)
            shared = {"due": due.timestamp() if due else 0.0, "marked_late": collected.entry.late}
            if member := collected.files.get(name):
                clock = read_clock(collected.entry, member)
                owner = find_owner(person, name, member.data)
                key = make_verdict_key(name, member.data, self.secret, self.mode, owner)
                file = hashlib.sha256(member.data).hexdigest()
                attempts[name] = Attempt(
                    file, key, self.version, time=clock.time, clock=clock.source,
                    vouched=clock.vouched, **shared,
                )  # fmt: skip
            else:
                attempts[name] = Attempt(
                    "", "", self.version, reason=collected.refused[name],
                    clock=N_("the file cannot be read"), **shared,
                )  # fmt: skip
        return attempts

    def _take_fingerprints(self, collected: Collected) -> dict[str, array[int]]:
        return {
            name: array(
                "I", sorted(similarity.take_fingerprint(member.data, self._hash_unsolved(name)))
            )
            for name, member in collected.files.items()
        }

    def _list_values(self, collected: Collected) -> dict[str, array[int]]:
        return {
            name: array(
                "I", sorted(similarity.list_own_values(member.data, _number_unsolved(name)))
            )
            for name, member in collected.files.items()
        }

    def _hash_unsolved(self, exercise_id: str) -> frozenset[int]:
        """Return the hashes of the unsolved text, which the course wrote and every file of an
        exercise shares."""
        if exercise_id not in self._unsolved:
            self._unsolved[exercise_id] = similarity.take_every_run(
                _make_unsolved_text(exercise_id)
            )
        return self._unsolved[exercise_id]

    def _describe(self, collected: Collected) -> Person:
        """Update the learner's entry in the record, except for the attempts and marks, and return
        it."""
        entry = collected.entry
        person = self.record.find(entry.key, entry.learner, entry.id, self.present) or Person(
            entry.key, entry.learner
        )
        person.learner = entry.learner
        person.id = entry.id or person.id
        person.login = entry.login or person.login
        person.address = entry.address or person.address
        person.feedback_prefix = entry.feedback_prefix
        person.present = sorted({*person.present, *(exercise.id for exercise in self.exercises)})
        person.source = " + ".join(clean_name(source.path.name) for source in entry.sources)
        person.problem = collected.problem
        person.notes |= self._sort_notes(collected)
        person.reasons |= self._find_reasons(collected)
        if collected.progress is not None:
            person.predictions |= read_surprises(collected.progress) or {}
        return person

    def _sort_notes(self, collected: Collected) -> dict[str, list[str]]:
        """Return the notes by exercise. A note on the whole submission belongs to each exercise
        that this run asks for."""
        notes: dict[str, list[str]] = {exercise.id: [] for exercise in self.exercises}
        required = [exercise.id for exercise in self.exercises if not exercise.optional]
        for note in collected.notes:
            subject = collected.subjects.get(note)
            for name in [subject] if subject else required or list(notes):
                notes.setdefault(name, []).append(note)
        return notes

    def _find_reasons(self, collected: Collected) -> dict[str, str]:
        """Return for each exercise that this run asks for why there is no file, as far as the
        submission tells; "" otherwise."""
        misnamed = {m.exercise: m.note for m in collected.misnamed}
        of_all = "" if misnamed else collected.problem
        return {
            exercise.id: "" if exercise.id in collected.files else misnamed.get(exercise.id, of_all)
            for exercise in self.exercises
        }

    def _add_to_record(self, faults: Mapping[str, str]) -> None:
        published = {exercise.id: self._list_published(exercise) for exercise in self.exercises}
        for collected in self.known:
            self.record.people[collected.person.key] = collected.person
            for name, attempt in collected.attempts.items():
                hashes = frozenset(collected.fingerprints.get(name, ()))
                found = similarity.find_resemblance(hashes, published[name])
                collected.person.add(
                    name,
                    replace(
                        attempt,
                        fault=faults.get(attempt.key, ""),
                        published=found.words,
                        published_share=found.shared,
                        published_size=found.size,
                        is_comparable=bool(hashes),
                    ),
                )
        earlier = [
            (name, self._list_values(collect(submissions, self.exercises)))
            for name, submissions in self.earlier
        ]
        for exercise in self.exercises:
            values = {
                collected.person.learner: frozenset(collected.values.get(exercise.id, ()))
                for collected in self.known
            }
            earlier_values = [
                (name, frozenset(values_by_id.get(exercise.id, ())))
                for name, values_by_id in earlier
            ]
            alike = similarity.find_alike([*values.items(), *earlier_values])
            self.record.alike[exercise.id] = similarity.merge_alike(
                self.record.alike.get(exercise.id, ()),
                (group for group in alike if any(name in values for name in group.learners)),
                {
                    collected.person.learner
                    for collected in self.known
                    if exercise.id in collected.attempts
                }
                | {name for name, values_by_id in earlier if exercise.id in values_by_id},
            )

    def _list_published(self, exercise: Exercise) -> list[tuple[str, frozenset[int]]]:
        """Return names and hashes of the published right answers: the course's solution and the
        variants in its tests, where they exist."""
        published = (
            {}
            if paths.is_release()
            else {N_("the published solution"): texts.read_solution(exercise)}
        )
        published |= {
            N_("the published variant {name}").format(name=name): text
            for name, text in edits.read_variants(exercise).items()
        }
        return [
            (name, similarity.take_fingerprint(text.encode(), self._hash_unsolved(exercise.id)))
            for name, text in published.items()
        ]

    def _show_alike(self, exercise: Exercise) -> None:
        """Write two files of each group of similar files side by side. Read the files again,
        because they are not kept in memory."""
        people = dict(self.earlier) | {
            collected.person.learner: submissions
            for collected, submissions in zip(self.known, self.people, strict=True)
        }
        texts_by_name: dict[str, str] = {}
        groups = []
        for group in self.record.alike[exercise.id][: reports.MOST_ALIKE]:
            for name in group.learners[:2]:
                if name not in texts_by_name:
                    member = (
                        self._collect(people[name]).files.get(exercise.id)
                        if name in people
                        else None
                    )
                    data = member.data if member else _NOT_SHOWN
                    lines = data.decode("utf-8", "replace").splitlines()[:_MOST_LINES]
                    texts_by_name[name] = "\n".join(
                        make_visible_line(line.expandtabs()) for line in lines
                    )
            groups.append((group, [(name, texts_by_name[name]) for name in group.learners[:2]]))
        reports.write_alike(self.out, exercise, groups)

    def _write(self, marker: Marker) -> int:
        """Write the record and all files made from it. Return the number of marks that differ from
        those of earlier runs."""
        changed = [
            line
            for person in self.record
            for line in note_regrades(person, marker.summarize(person), lambda: datetime.now(UTC))
        ]
        self.record.regrades += changed
        self.record.write(self.out)
        forget_files(self.out, self.record.list_files())
        rows, exercises = _Rows(self.record, marker), self.record.exercises
        possible = [weigh(exercise, marker.rules.weights) for exercise in exercises]
        write_lines(self.out / GRADEBOOK, gradebook.write_gradebook(rows, exercises, possible))
        write_lines(self.out / CANVAS, gradebook.write_canvas(rows, exercises, possible))
        write_lines(self.out / RESULTS, gradebook.write_results(rows))
        write_lines(self.out / REGRADES, gradebook.write_regrades(self.record.regrades))
        write_lines(self.out / SIMILAR, gradebook.write_similar(self.record.alike))
        for exercise in self.exercises:
            self._show_alike(exercise)
        reports.write_reports(
            self.out, rows, exercises, self.record.alike, self.strays, marker.count_forced()
        )
        feedback.write_feedback(self.out, rows, {known.person.key for known in self.known})
        return len(changed)


def find_owner(person: Person, exercise_id: str, data: bytes) -> str:
    """Return the key of the learner whose hidden cases a file is checked with; "" for the unsolved
    text, which is checked once for all."""
    return "" if _is_unsolved(exercise_id, data) else person.key


def derive_owners_secret(secret: bytes, owner: str) -> bytes:
    """Return the secret of the hidden cases of ``owner``, which :func:`find_owner` returned."""
    return derive_secret(secret, owner) if owner else secret


def make_verdict_key(exercise_id: str, data: bytes, secret: bytes, mode: str, owner: str) -> str:
    """Return the journal's key of the verdict on a file by this grader, in this mode, with the
    hidden cases of ``owner``."""
    setting = f"{checking.grader_version()} {Secret(secret).fingerprint} {mode}"
    return checking.make_key(exercise_id, data, f"{setting} {make_visible_line(owner)}")


def _is_unsolved(exercise_id: str, data: bytes) -> bool:
    return texts.is_unsolved(catalog.get(exercise_id), data)


@functools.cache
def _number_unsolved(exercise_id: str) -> frozenset[int]:
    return number_values(_make_unsolved_text(exercise_id).encode())


@functools.cache
def _make_unsolved_text(exercise_id: str) -> str:
    return texts.make_unsolved_text(catalog.get(exercise_id))


@dataclass(frozen=True)
class _Rows:
    """The rows of all learners. Each iteration makes them anew from the journal, so that a class's
    verdicts are never all in memory."""

    record: Record
    marker: Marker

    def __iter__(self) -> Iterator[gradebook.Row]:
        return (self.marker.make_row(person) for person in self.record)
