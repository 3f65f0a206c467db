"""Run ``course grade``: read its options, show the progress, and print at the end the results and
where they lie."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.base.words import list_words
from course_lib.classroom import weeks, workers
from course_lib.classroom.grade_class import (
    GRADEBOOK,
    REGRADES,
    ClassOptions,
    Graded,
    Progress,
    grade_class,
)
from course_lib.classroom.lateness import read_late_rule
from course_lib.classroom.out_folder import is_in_repository
from course_lib.classroom.reports import count_learners
from course_lib.cli.terminal import console, say
from course_lib.sandbox import isolation

TIERS = {
    "namespaces": isolation.NAMESPACES,
    "landlock": isolation.LANDLOCK,
    "limits": isolation.LIMITS,
}
_TIER_NAMES = (N_("namespaces and Landlock"), N_("limits only"))
_SHOWN = 10  # faults and problems; all of them are in the files
NOT_ALL_GRADED = 4  # as for a grader fault


@dataclass(frozen=True, kw_only=True)
class GradeRequest:
    """What was typed behind ``course grade``; the command's help says what each option means."""

    folder: Path
    out: Path | None = None
    show: tuple[str, str] | None = None
    week: str | None = None
    plan: Path | None = None
    only: str | None = None
    everything: bool = False
    workers: int | None = None
    secret_file: Path | None = None
    mapping: Path | None = None
    due: str | None = None
    late: str | None = None
    absent: str | None = None
    weights: str | None = None
    partial: bool | None = None
    change_rules: bool = False
    also: list[Path] | None = None
    anew: bool = False
    accept_names: bool = False
    recheck: str | None = None
    require_tier: str | None = None
    scheduler: str | None = None

    @property
    def tier(self) -> str | None:
        return TIERS[self.require_tier] if self.require_tier else None

    def make_options(self) -> ClassOptions:
        """Return the options for grading a class.

        Raises: CourseError if an option cannot be used.
        """
        asked_ids, deadlines = choose_exercises(self.week, self.plan, self.only, self.everything)
        if self.due:
            deadlines |= dict.fromkeys(asked_ids, weeks.read_moment(self.due, "--due"))
        late_rule = None if self.late is None else read_late_rule(self.late)
        if late_rule and not deadlines:
            raise CourseError(
                _("--late needs a deadline: a line `due` in the plan of the weeks, or --due.")
            )
        return ClassOptions(
            only=asked_ids + _list_tasks(asked_ids),
            recheck=split_list(self.recheck),
            secret_file=self.secret_file,
            mapping=self.mapping,
            due=deadlines,
            weights=self.weights,
            late=late_rule,
            partial=self.partial,
            absent_zero=None if self.absent is None else self.absent == "zero",
            change_rules=self.change_rules,
            anew=self.anew,
            tier=self.tier,
            also=tuple(self.also or ()),
            accept_names=self.accept_names,
        )


def grade(request: GradeRequest) -> int:
    """Grade a class, or write the files that explain one mark; returns 0, or 4 if a file could not
    be graded.

    Raises: CourseError if the options or the folders cannot be used; EnvironmentFault if the
    machine does not let it go on.
    """
    if request.show:
        return _show(request, *request.show)
    if request.out is None:
        raise CourseError(
            _(
                "say where the results go: `-o OUT`. (`--show LEARNER EXERCISE` explains one mark"
                " of the results in FOLDER.)"
            )
        )
    options = request.make_options()
    if request.scheduler:
        start = functools.partial(workers.connect, request.scheduler)
        width = request.workers or workers.count_workers(request.scheduler)
    else:
        width = request.workers or workers.count_processors()
        start = functools.partial(workers.start_processes, width)
    try:
        with _show_progress() as tell:
            # twice as many as workers, so that the next request is ready when a worker has finished
            graded = grade_class(request.folder, request.out, options, start, 2 * width, tell=tell)
    except KeyboardInterrupt:
        say(
            _(
                "course: every verdict so far is kept. The same command goes on where this one"
                " stopped."
            )
        )
        raise
    _say_what_came_out(graded)
    return NOT_ALL_GRADED if graded.faults else 0


def _show(request: GradeRequest, learner: str, exercise: str) -> int:
    """Write the files that explain one mark; returns 0.

    Raises: CourseError if other options are given, which say nothing about one mark; the
    exceptions of :func:`course_lib.classroom.appeal.show_mark`.
    """
    from course_lib.classroom.appeal import show_mark

    if request != GradeRequest(
        folder=request.folder,
        show=request.show,
        secret_file=request.secret_file,
        require_tier=request.require_tier,
    ):
        raise CourseError(
            _(
                "--show takes --secret-file and --require-tier beside it, and no other option:"
                " `course grade OUT --show LEARNER EXERCISE`."
            )
        )
    shown = show_mark(request.folder, learner, exercise, request.secret_file, request.tier)
    print(f"{learner}, {exercise}: {shown.status}. {shown.comparison}")
    print(
        _("{folder} has {files}.").format(
            folder=paths.shown(shown.folder), files=list_words(shown.files)
        )
    )
    return 0


def _list_tasks(asked_ids: Collection[str]) -> tuple[str, ...]:
    """Return the optional tasks of the lessons of these exercises."""
    lessons = {catalog.get(name).lesson for name in asked_ids}
    return tuple(
        exercise.id
        for exercise in catalog.exercises().values()
        if exercise.optional and exercise.lesson in lessons
    )


def split_list(names: str | None) -> tuple[str, ...]:
    """Return the exercises of a list such as ``07a,08a``."""
    return tuple(name.strip() for name in (names or "").split(",") if name.strip())


def choose_exercises(
    week: str | None, plan_file: Path | None, only: str | None, everything: bool
) -> tuple[tuple[str, ...], dict[str, datetime]]:
    """Return the exercises that are asked for, and the deadlines of those that have one.

    Raises: CourseError if it is not said in exactly one way, or the week or exercise is not known.
    """
    if sum((week is not None, only is not None, everything)) != 1:
        raise CourseError(
            _(
                "say which exercises you asked for, so that no other counts as missing: --week 3,"
                " --only 07a,08a, or --all. One of the three."
            )
        )
    file = weeks.find_plan(plan_file)
    plan = weeks.read_plan(file)
    if week is not None:
        asked_ids = tuple(
            name
            for plan_week in weeks.choose_weeks(plan, split_list(week), file)
            for name in plan_week.exercises
        )
        print(
            _("Week {weeks} asks for {exercises} ({file}).").format(
                weeks=list_words(split_list(week)),
                exercises=list_words(asked_ids),
                file=paths.shown(file),
            )
        )
    else:
        asked_ids = tuple(catalog.get(name).id for name in split_list(only)) or tuple(
            catalog.required()
        )
    due = {
        name: plan_week.due
        for plan_week in plan.values()
        for name in plan_week.exercises
        if plan_week.due and name in asked_ids
    }
    return asked_ids, due


@contextlib.contextmanager
def _show_progress() -> Iterator[Callable[[Progress], None]]:
    """Show the progress: in a terminal a bar with the time left, in a file a line now and then."""
    if not console().is_terminal:
        yield _tell_lines()
        return
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn(_("checking")),
        BarColumn(),
        TextColumn("{task.fields[words]}"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Bar(*columns, console=console(), transient=True) as bar:
        task = bar.add_task("", total=None, visible=False, words="")
        yield lambda progress: bar.update(
            task,
            completed=progress.done,
            total=progress.learners,
            visible=True,
            words=_("{progress}, time left").format(progress=_describe_progress(progress)),
        )


def _tell_lines() -> Callable[[Progress], None]:
    last_tenth = -1

    def tell(progress: Progress) -> None:
        nonlocal last_tenth
        tenth = int(10 * progress.done / progress.learners)
        if tenth > last_tenth:
            last_tenth = tenth
            print(_describe_progress(progress), file=sys.stderr, flush=True)

    return tell


def _describe_progress(progress: Progress) -> str:
    return _("{done} of {learners}, {files}").format(
        done=f"{progress.done:.0f}",
        learners=count_learners(progress.learners),
        files=_count_files(progress.files),
    )


def _count_files(count: int) -> str:
    return _("1 file") if count == 1 else _("{count} files").format(count=count)


def _count_verdicts(count: int) -> str:
    return _("1 verdict") if count == 1 else _("{count} verdicts").format(count=count)


def _say_what_came_out(graded: Graded) -> None:
    out = paths.shown(graded.out)
    tier = _(graded.tier)
    if graded.tier != isolation.NAMESPACES:
        tier = _("{tier} or better").format(tier=tier)
    print(
        _("{learners}: {files} checked, {verdicts} kept from before. Isolation: {tier}.").format(
            learners=count_learners(graded.learners),
            files=_count_files(graded.checked),
            verdicts=_count_verdicts(graded.kept),
            tier=tier,
        )
    )
    if graded.torn == 1:
        print(_("1 line of the journal was torn; what it said was checked again."))
    elif graded.torn:
        print(
            _("{count} lines of the journal were torn; what they said was checked again.").format(
                count=graded.torn
            )
        )
    for title, lines in _list_notes(graded):
        if lines:
            print(_("{title} ({count}):").format(title=title, count=len(lines)))
            print("\n".join(f"  {line}" for line in lines[:_SHOWN]))
            if len(lines) > _SHOWN:
                more = _("and {count} more, all in {file}").format(
                    count=len(lines) - _SHOWN, file=f"{out}/{GRADEBOOK}"
                )
                print(f"  {more}")
    if graded.absent:
        names = list_words(graded.absent[:_SHOWN])
        if len(graded.absent) > _SHOWN:
            names = _("{names} and {count} more").format(
                names=names, count=len(graded.absent) - _SHOWN
            )
        print(
            _(
                "Absent, of the runs of before ({count}): {names}. Their cells of this run's"
                " exercises are empty; --absent zero gives 0."
            ).format(count=len(graded.absent), names=names)
        )
    if graded.strays:
        print(
            _("Nobody's submission, and not looked at: {files}.").format(
                files=list_words(graded.strays[:_SHOWN])
            )
        )
    if graded.regraded:
        print(
            _("{count} marks of before have changed: {file} says which, and why.").format(
                count=graded.regraded, file=f"{out}/{REGRADES}"
            )
        )
    files = list_words([f"{out}/{GRADEBOOK}", "canvas.csv", "results.jsonl", "class.html"])
    print(_("{files} and reports/ are written.").format(files=files))
    if is_in_repository(graded.out):
        print(
            _(
                "{folder} lies in a git repository: its .gitignore keeps names, marks and secret"
                " out of commits. The submissions are yours to keep out."
            ).format(folder=out)
        )
    if graded.faults:
        say(
            _(
                "course: not everything could be graded. The same command tries those files again,"
                " and keeps the rest."
            )
        )


def _list_notes(graded: Graded) -> Iterator[tuple[str, list[str]]]:
    """Yield what a teacher has to look at: a title, and a line for each learner or file."""
    yield _("Nothing could be read of"), [f"{name}: {why}" for name, why in graded.problems]
    yield (
        _("Not graded, and no fault of theirs"),
        [f"{name}, {exercise}: {why}" for name, exercise, why in graded.faults],
    )
    yield (
        _("Not read because of their names; --accept-names grades the only one for an exercise"),
        [
            (
                _("{learner}: {path}, probably {exercise}") if exercise else "{learner}: {path}"
            ).format(learner=learner, path=path, exercise=exercise)
            for learner, path, exercise in graded.misnamed
        ],
    )
    yield (
        _("New since the runs of before"),
        [
            _("{name} (is that {like}, who is absent?)").format(name=name, like=like)
            if like
            else name
            for name, like in graded.new
        ],
    )
    yield (
        _("Late by an unknown time; the column late of marks.csv says by how many days"),
        [f"{learner}: {list_words(exercises)}" for learner, exercises in graded.unsettled],
    )
