"""What ``course grade`` does: reads its options, shows how far it is, and says at the end what came out and where it lies."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.words import agree, format_count
from course_lib.classroom import workers
from course_lib.classroom.grade_class import GRADEBOOK, Graded, Options, Progress, grade_class
from course_lib.cli.terminal import console, say
from course_lib.sandbox import isolation

_TIERS = {"namespaces": isolation.NAMESPACES, "landlock": isolation.LANDLOCK, "limits": isolation.LIMITS}
_SHOWN = 10  # faults and problems; all of them are in the files
NOT_ALL_GRADED = 4  # as for a grader fault


def grade(
    folder: Path,
    out: Path,
    *,
    only: str | None,
    recheck: str | None,
    count: int | None,
    secret_file: Path | None,
    mapping: Path | None,
    late: str | None,
    weights: str,
    tier: str | None,
    resume: bool | None,
    scheduler: str | None,
) -> int:
    """Grade a class; returns 0, or 4 if a file could not be graded.

    Raises: CourseError if the options or the folders cannot be used; EnvironmentFault if the machine does not let it go on.
    """
    if resume is False and out.exists() and any(out.iterdir()):
        raise CourseError(
            f"{paths.shown(out)} is there already. Choose another folder, or leave out --no-resume to go on with it."
        )
    if resume and not out.exists():
        raise CourseError(f"there is no {paths.shown(out)} to go on with. Leave out --resume to begin it.")
    options = Options(
        split_list(only),
        split_list(recheck),
        secret_file,
        mapping,
        read_moment(late),
        weights,
        _TIERS[tier] if tier else None,
    )
    if scheduler:
        start, width = functools.partial(workers.connect, scheduler), count or workers.count_workers(scheduler)
    else:
        width = count or workers.count_processors()
        start = functools.partial(workers.start_processes, width)
    try:
        with _show_progress() as tell:
            # as many again on their way: a worker that is done finds the next one waiting
            graded = grade_class(folder, out, options, start, 2 * width, tell=tell)
    except KeyboardInterrupt:
        say("course: every verdict so far is kept. The same command goes on where this one stopped.")
        raise
    _say_what_came_out(graded)
    return NOT_ALL_GRADED if graded.faults else 0


def split_list(names: str | None) -> tuple[str, ...]:
    """The exercises of a list such as ``07a,08a``."""
    return tuple(name.strip() for name in (names or "").split(",") if name.strip())


def read_moment(text: str | None) -> datetime | None:
    """A date, which then ends with its day, or a date and a time; in this machine's time zone if it names none.

    Raises: CourseError if it is neither.
    """
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise CourseError(
            f"--late {text!r} is no date. Write 2026-12-01, 2026-12-01T18:00, or 2026-12-01T18:00+01:00."
        ) from None
    if len(text) <= len("2026-12-01"):
        moment = moment.replace(hour=23, minute=59, second=59)
    return moment.astimezone()


@contextlib.contextmanager
def _show_progress() -> Iterator[Callable[[Progress], None]]:
    """A bar with the time left in a terminal; a line now and then where output goes to a file."""
    if not console().is_terminal:
        yield _tell_lines()
        return
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("checking"),
        BarColumn(),
        TextColumn("{task.completed:.0f} of {task.fields[learners]}, {task.fields[files]}, time left"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Bar(*columns, console=console(), transient=True) as bar:
        task = bar.add_task("checking", total=None, visible=False, learners="", files="")
        yield lambda progress: bar.update(
            task,
            completed=progress.done,
            total=progress.learners,
            visible=True,
            learners=format_count(progress.learners, "learner"),
            files=format_count(progress.files, "file"),
        )


def _tell_lines() -> Callable[[Progress], None]:
    last = -1

    def tell(progress: Progress) -> None:
        nonlocal last
        tenth = int(10 * progress.done / progress.learners)
        if tenth > last:
            last = tenth
            print(
                f"{progress.done:.0f} of {format_count(progress.learners, 'learner')}, {format_count(progress.files, 'file')}",
                file=sys.stderr,
                flush=True,
            )

    return tell


def _say_what_came_out(graded: Graded) -> None:
    out = paths.shown(graded.out)
    better = "" if graded.tier == isolation.NAMESPACES else " or better"
    print(
        f"{format_count(graded.learners, 'learner')}: {format_count(graded.checked, 'file')} checked, "
        f"{format_count(graded.kept, 'verdict')} kept from before. Isolation: {graded.tier}{better}."
    )
    if graded.torn:
        lines = agree(graded.torn, "line of the journal was torn; what it", "lines of the journal were torn; what they")
        print(f"{graded.torn} {lines} said was checked again.")
    for title, lines in (
        ("Nothing could be read of", [f"{learner}: {why}" for learner, why in graded.problems]),
        (
            "Not graded, and no fault of theirs",
            [f"{learner}, {exercise}: {why}" for learner, exercise, why in graded.faults],
        ),
    ):
        if lines:
            print(f"{title} ({len(lines)}):")
            print("\n".join(f"  {line}" for line in lines[:_SHOWN]))
            if len(lines) > _SHOWN:
                print(f"  and {len(lines) - _SHOWN} more, all in {out}/{GRADEBOOK}")
    print(f"{out}/{GRADEBOOK}, canvas.csv, results.jsonl, class.html and reports/ are written.")
    if graded.faults:
        say("course: not everything could be graded. The same command tries those files again, and keeps the rest.")
