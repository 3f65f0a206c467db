"""Print the state of the learner's work: how much is passed, which exercise comes next, what it
needs."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator

from rich.console import Group
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.catalog import Exercise, step_cells, texts
from course_lib.cli.verdict_view import STYLES
from course_lib.grading.report import SIGNS, describe_status
from course_lib.grading.verdict import NOT_ATTEMPTED, PASS
from course_lib.learner import progress
from course_lib.learner.following import find_next_exercise, find_next_on_path
from course_lib.learner.progress import ExerciseProgress

BAR_COLUMNS = 30
TITLE, _MINUTES, STATE, _HINTS = 2, 4, 5, 6  # columns of the list
PATH_SIGN = "◆"  # marks the exercises of the short path


def choose(exercise_id: str | None) -> Exercise:
    """Return the exercise of that id, or the next one if no id was given.

    Raises: CourseError if there is no such exercise, or none was named and all are passed.
    """
    exercise = catalog.get(exercise_id) if exercise_id else find_next_exercise(progress.read())
    if exercise is None:
        words = _(
            "all {count} exercises are passed. Name the one that you mean: `course status` lists"
            " them."
        )
        raise CourseError(words.format(count=len(catalog.required())))
    return exercise


def state(record: ExerciseProgress | None) -> str:
    """Return the last verdict's status; a pass that was reset since is still a pass."""
    record = record or ExerciseProgress()
    return PASS if record.passed else record.last.get("status", NOT_ATTEMPTED)


def link(exercise: Exercise) -> str:
    """Return the learner's file in rich's markup, as a link for terminals that have links."""
    file = texts.find_file(exercise)
    return f"[link={file.as_uri()}]{escape(paths.shown(file))}[/link]"


def progress_bar(records: dict[str, ExerciseProgress], columns: int = BAR_COLUMNS) -> str:
    """Return a bar with the number of passed exercises beside it, in rich's markup."""
    passed, total = passed_of_all(records)
    filled_sign, empty_sign = "█░" if "utf" in (sys.stdout.encoding or "").lower() else "#-"
    filled = columns * passed // total
    count_text = _("{passed} of {total} passed").format(passed=passed, total=total)
    return f"[green]{filled_sign * filled}[/]{empty_sign * (columns - filled)} {count_text}"


def passed_of_all(records: dict[str, ExerciseProgress]) -> tuple[int, int]:
    """Return how many exercises are passed, and how many there are, both without the optional
    tasks."""
    return _count_passed(catalog.required(), records)


def _count_passed(names: Collection[str], records: dict[str, ExerciseProgress]) -> tuple[int, int]:
    return sum(state(records.get(name)) == PASS for name in names), len(names)


def overview() -> Group:
    """Return the text of `course` alone: the bar, the next exercise and what it needs, and how to
    go on."""
    records = progress.read()
    upcoming = find_next_exercise(records)
    if upcoming is None:
        ways = [
            ("course status", _("lists the exercises")),
            ("course check ID", _("checks one again")),
            ("course --help", _("lists all commands")),
        ]
        return Group(
            progress_bar(records), "", _("You have passed every exercise."), "", _commands(ways)
        )
    ways = [
        ("course check", _("grades your file")),
        ("course watch", _("grades it each time you save it")),
        (
            "course hint",
            (
                _("the next hint")
                if records.get(upcoming.id, ExerciseProgress()).hints
                else _("the first hint")
            ),
        ),
        ("course lab", _("opens the lessons in JupyterLab")),
        ("course --help", _("lists all commands")),
    ]
    return Group(
        progress_bar(records), "", *_describe(upcoming, records, _("Next: ")), "", _commands(ways)
    )


def describe(exercises: list[Exercise]) -> Group:
    """Return the text of `course status 07a`: for each exercise its task, what it needs, and its
    state."""
    records = progress.read()
    return Group(*(part for exercise in exercises for part in _describe(exercise, records)))


def _describe(
    exercise: Exercise, records: dict[str, ExerciseProgress], before: str = ""
) -> tuple[str, Padding]:
    facts = Table.grid(padding=(0, 2))
    for name, text in _facts(exercise, records):
        facts.add_row(f"[dim]{name}[/dim]", text)
    about = (
        _("{exercise}, about {minutes} minutes, optional")
        if exercise.optional
        else _("{exercise}, about {minutes} minutes")
    )
    return before + about.format(exercise=_name(exercise), minutes=exercise.minutes), Padding(
        facts, (0, 2)
    )


def listing() -> Group:
    """Return the table of `course status`: every exercise, its state, and which one comes next."""
    records = progress.read()
    upcoming = find_next_exercise(records)
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for number, column in enumerate(
        ("", "", _("exercise"), _("level"), _("min"), _("status"), _("hints"))
    ):
        table.add_column(
            column,
            justify="right" if number in (_MINUTES, _HINTS) else "left",
            no_wrap=number != TITLE,
        )
    for exercise in catalog.required().values():
        table.add_row(*row(exercise, records, marked=exercise == upcoming))
    tasks = [exercise for exercise in catalog.exercises().values() if exercise.optional]
    if tasks:
        passed, total = _count_passed([task.id for task in tasks], records)
        table.add_section()
        words = _(
            "[bold]Without rails[/]: {passed} of {total} optional tasks passed; they count nowhere."
        )
        table.add_row("", "", words.format(passed=passed, total=total))
        for task in tasks:
            table.add_row(*row(task, records, marked=False))
    closing = _("You have passed every exercise.") if upcoming is None else next_line(upcoming)
    files = _("Your files are in {folder}.").format(
        folder=f"{escape(paths.shown(paths.exercises()))}/"
    )
    path = _(
        "{sign} the path of six hours: these exercises and their lessons; it ends with a model that"
        " trains with your kernels."
    )
    return Group(
        table,
        "",
        path.format(sign=PATH_SIGN),
        progress_bar(records),
        *_tell_predictions(),
        *tell_steps(),
        closing,
        files,
    )


def _tell_predictions() -> list[str]:
    """Return a line with the number of predictions made in the lessons, and of surprises; nothing
    before the first."""
    predictions = progress.read_predictions()
    surprises = sum(prediction.surprised for prediction in predictions.values())
    summary = _(
        "Predictions made in the lessons: {made}, surprises among them: {surprises}."
    ).format(made=len(predictions), surprises=surprises)
    return [summary] if predictions else []


def tell_steps() -> list[str]:
    """Return a line with the number of steps passed, by lesson; nothing before the first."""
    passed = progress.read_steps()
    lessons = sorted({step_id[:2] for step_id in passed})
    counts = [
        (lesson, ids, passed.keys() & ids)
        for lesson in lessons
        if (ids := set(step_cells.list_ids(lesson)))
    ]
    words = _("lesson {lesson} {passed} of {total}")
    lessons_text = _(", ").join(
        words.format(lesson=lesson, passed=len(passed_here), total=len(ids))
        for lesson, ids, passed_here in counts
        if passed_here
    )
    return [_("Steps passed: {told}.").format(told=lessons_text)] if lessons_text else []


def row(
    exercise: Exercise, records: dict[str, ExerciseProgress], *, marked: bool
) -> tuple[str, ...]:
    """Return the cells of an exercise in a list; ``marked`` puts an arrow in front."""
    now = state(records.get(exercise.id))
    level = "●" * exercise.difficulty + "○" * (5 - exercise.difficulty)
    hints = records.get(exercise.id, ExerciseProgress()).hints
    return (
        "→" if marked else " ",
        f"{exercise.id} {PATH_SIGN if exercise.short_path else ' '}",
        escape(exercise.title),
        level,
        str(exercise.minutes),
        _write_state(now),
        str(hints or ""),
    )


def next_line(exercise: Exercise) -> str:
    """Return a line with the exercise that comes next and its command, in rich's markup."""
    on_path = find_next_on_path(progress.read())
    path = (
        _(" On the path of six hours comes {id}.").format(id=on_path.id)
        if on_path and on_path != exercise
        else ""
    )
    words = _("Next: {exercise}, about {minutes} minutes. `course check` grades it.{path}")
    return words.format(exercise=_name(exercise), minutes=exercise.minutes, path=path)


def _name(exercise: Exercise) -> str:
    return f"[bold]{exercise.id} {escape(exercise.title)}[/bold]"


def as_json(exercises: list[Exercise]) -> str:
    """Return the data of `course status --json`: status and hints of each exercise, or of those
    named, by id."""
    records = progress.read()
    return json.dumps(
        {
            name: {
                "status": state(records.get(name)),
                "hints": records.get(name, ExerciseProgress()).hints,
            }
            for name in [exercise.id for exercise in exercises] or catalog.exercises()
        },
        indent=2,
    )


def _facts(exercise: Exercise, records: dict[str, ExerciseProgress]) -> Iterator[tuple[str, str]]:
    yield _("task"), escape(exercise.objective)
    yield _("needs"), "\n".join(_need(text, records) for text in exercise.prerequisites)
    for notebook in sorted((paths.folder() / "notebooks").glob(f"{exercise.lesson}_*.ipynb")):
        yield _("lesson"), f"[link={notebook.as_uri()}]{escape(paths.shown(notebook))}[/link]"
    yield _("your file"), link(exercise)
    record = records.get(exercise.id, ExerciseProgress())
    last_status = record.last.get("status", NOT_ATTEMPTED)
    if last_status != NOT_ATTEMPTED:
        yield _("last check"), _write_state(last_status)
    if record.passed and last_status != PASS:
        yield _("before"), _write_state(PASS)


def _write_state(now: str) -> str:
    return f"[{STYLES[now]}]{SIGNS[now]} {describe_status(now)}[/]"


def _need(text: str, records: dict[str, ExerciseProgress]) -> str:
    """Return the text of a prerequisite; for an exercise, with its title and whether it is
    passed."""
    if text not in catalog.exercises():
        return escape(text)
    now = state(records.get(text))
    return (
        f"{text} {escape(catalog.get(text).title)} ([{STYLES[now]}]{SIGNS[now]}"
        f" {_('passed') if now == PASS else _('not passed yet')}[/])"
    )


def _commands(ways: list[tuple[str, str]]) -> Table:
    grid = Table.grid(padding=(0, 2))
    for command, description in ways:
        grid.add_row(f"  [bold]{command}[/bold]", description)
    return grid
