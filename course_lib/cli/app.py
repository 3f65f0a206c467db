"""The ``course`` command. Exit codes of ``check``: 0 pass, 2 not attempted, 1 fail, 3 error, 4 grader fault."""

from __future__ import annotations

import io
import json
import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.syntax import Syntax
from rich.table import Table

from course_lib import catalog, paths, progress, workspace
from course_lib.cli.verdict_view import STYLES, verdict_view
from course_lib.errors import CourseError, EnvironmentFault, import_fault
from course_lib.grading.check import check as run_check
from course_lib.grading.hidden import read_secret
from course_lib.grading.report import SIGNS
from course_lib.grading.verdict import NOT_ATTEMPTED, PASS, Verdict

USAGE_ERROR = 64  # sysexits' EX_USAGE; typer's own 2 would read as "not attempted"
BAD_REQUEST = 3  # as for a file that cannot be read: there was nothing to judge
BROKEN_ENVIRONMENT = 78  # sysexits' EX_CONFIG: the machine, the installation or a setting is at fault

app = typer.Typer(help="LayerNorm and RMSNorm, from the formula to Triton kernels.", add_completion=False, pretty_exceptions_enable=False)
out = Console()
ExerciseId = Annotated[str, typer.Argument(help="The exercise, such as 06a.", metavar="ID")]


@app.command()
def check(
    exercise_id: ExerciseId,
    file: Annotated[Path | None, typer.Option(help="Check this file instead of yours in exercises/. Progress is then left alone.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdict as JSON, for programs.")] = False,
    secret_file: Annotated[
        Path | None,
        typer.Option(
            help="For instructors: grade with hidden cases, of other shapes and values, drawn from the secret in this file. "
            "Progress is then left alone."
        ),
    ] = None,
) -> int:
    """Grade your file of an exercise."""
    exercise = catalog.get(exercise_id)
    # from a file: what stands on a command line, every process of the machine can read, a submission's too
    secret = read_secret(secret_file) if secret_file else None
    if as_json:
        verdict = run_check(exercise, file, secret=secret)
    else:
        with out.status(f"checking {exercise.id} {exercise.title} ..."):
            verdict = run_check(exercise, file, secret=secret)
    # progress is the learner's: its last verdict is one that Check gives again, and its pass one that Check gave
    if file is None and secret is None:
        _note(verdict)
    if as_json:
        print(verdict.as_json())
    else:
        _show(verdict, exercise)
    return verdict.exit_code


@app.command()
def hint(exercise_id: ExerciseId) -> int:
    """Show the next hint. There are three, each more direct than the last."""
    exercise = catalog.get(exercise_id)
    number = progress.note_hint(exercise.id, len(exercise.hints))
    for shown, text in enumerate(exercise.hints[:number], start=1):
        out.print(f"[bold]Hint {shown} of {len(exercise.hints)}.[/bold] {escape(text)}")
    return 0


@app.command()
def solution(
    exercise_id: ExerciseId,
    yes: Annotated[bool, typer.Option("--yes", help="Show it although the exercise is not passed yet.")] = False,
) -> int:
    """Show the course's solution: after a pass, or when you confirm."""
    exercise = catalog.get(exercise_id)
    if not (yes or progress.record(exercise.id).passed or _confirmed(exercise)):
        return 1
    progress.note_solution_seen(exercise.id)
    out.print(Syntax(workspace.solution_text(exercise), "python", line_numbers=True, theme="ansi_dark"))
    return 0


@app.command()
def reset(exercise_id: ExerciseId) -> int:
    """Start an exercise over. Your file is copied to .course/kept/ first."""
    exercise = catalog.get(exercise_id)
    copy = workspace.reset(exercise)
    progress.note_reset(exercise.id)
    kept = f" Your version is kept as {paths.shown(copy)}." if copy else " There was no work of yours in it."
    out.print(f"{paths.shown(workspace.file_of(exercise))} is as the course wrote it.{escape(kept)}")
    return 0


@app.command()
def status(as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON, for programs.")] = False) -> int:
    """Show every exercise, and how far you are."""
    records = progress.read()
    if as_json:
        print(
            json.dumps({name: {"status": _status(records, name), "hints": _hints(records, name)} for name in catalog.exercises()}, indent=2)
        )
        return 0
    table = Table(title="Exercises", title_justify="left")
    for column in ("", "exercise", "difficulty", "minutes", "status", "hints"):
        table.add_column(column, justify="right" if column == "minutes" else "left")
    for name, exercise in catalog.exercises().items():
        state = _status(records, name)
        effort = "●" * exercise.difficulty + "○" * (5 - exercise.difficulty)
        table.add_row(
            name, exercise.title, effort, str(exercise.minutes), f"[{STYLES[state]}]{SIGNS[state]} {state}[/]", str(_hints(records, name))
        )
    out.print(table)
    done = sum(_status(records, name) == PASS for name in catalog.exercises())
    out.print(f"{done} of {len(catalog.exercises())} passed. Your files are in {paths.shown(paths.exercises())}/.")
    return 0


@app.command()
def watch(exercise_id: Annotated[str | None, typer.Argument(help="Watch only this exercise.", metavar="[ID]")] = None) -> int:
    """Check an exercise again whenever you save it. Ctrl-C ends it."""
    from watchfiles import Change
    from watchfiles import watch as changes

    watched = [catalog.get(exercise_id)] if exercise_id else list(catalog.exercises().values())
    by_path = {workspace.file_of(exercise): exercise for exercise in watched}
    folder = paths.exercises()
    out.print(f"Watching {paths.shown(folder)}/ for {', '.join(e.id for e in watched)}. Save a file to check it; Ctrl-C ends.")
    # editors that save by renaming a new file over the old one show as added, not as modified
    for batch in changes(
        folder, watch_filter=lambda change, path: change != Change.deleted and Path(path) in by_path, raise_interrupt=False
    ):
        for path in sorted({Path(path) for _, path in batch}):
            verdict = run_check(by_path[path])
            _note(verdict)
            _show(verdict, by_path[path])
    return 0


@app.command()
def doctor() -> int:
    """Say whether the course can run here, and what to do about what is wrong."""
    from course_lib import doctor as examiner

    findings = examiner.examine()
    marks = {"ok": "[green]✓[/]", "note": "[yellow]![/]", "problem": "[red]✗[/]"}
    for finding in findings:
        out.print(f"{marks[finding.level]} [bold]{escape(finding.name)}[/bold]: {escape(finding.what)}")
        if finding.remedy:
            out.print(f"    → {escape(finding.remedy)}")
    runs = examiner.can_run(findings)
    out.print("The course can run here." if runs else "[red]The course cannot run here yet.[/] Follow the arrows, from the top.")
    return 0 if runs else 1


@app.command()
def bench(
    kind: Annotated[
        str, typer.Argument(help="forward, backward, long_rows, statistics, host, training, counters, or all.", metavar="KIND")
    ] = "all",
    stored: Annotated[bool, typer.Option("--stored", help="Show the newest stored measurement; measure nothing.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Also draw what came out into this PNG file; of `all`, one file a kind.")] = None,
    columns: Annotated[str | None, typer.Option(help="Only these row lengths, such as 1024,4095.")] = None,
    dtype: Annotated[str | None, typer.Option(help="fp16 (as without it), bf16 or fp32.")] = None,
    providers: Annotated[str | None, typer.Option(help="Only these, such as ours,torch,compile,liger,quack.")] = None,
) -> int:
    """Time the course's kernels against PyTorch and other libraries, over the floor of this GPU, and save what came out."""
    from course_lib.cli import bench as measuring

    for line in measuring.run(kind, stored=stored, plot=plot, columns=columns, dtype=dtype, providers=providers):
        print(line, flush=True)  # plain: a table of numbers that other programs may read
    return 0


@app.command()
def update() -> int:
    """Bring the course up to date. What you wrote stays as it is."""
    from course_lib.update import update as bring_up_to_date

    for line in bring_up_to_date():
        out.print(escape(line))
    return 0


def run(arguments: list[str]) -> int:
    """Run the command; errors meant for people are one line on standard error, never a traceback."""
    warnings.showwarning = lambda message, *rest, **more: print(message, file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without "●", or a message with half a character, is no reason to stop
    try:
        return app(arguments or ["--help"], prog_name="course", standalone_mode=False) or 0
    except typer.TyperException as usage:
        print(f"course: {usage.format_message()} `course --help` lists the commands.", file=sys.stderr)
        return USAGE_ERROR
    except typer.Exit as leave:
        return leave.exit_code
    except (typer.Abort, KeyboardInterrupt):
        print("course: stopped.", file=sys.stderr)
        return 130
    except EnvironmentFault as fault:
        print(f"course: {fault}", file=sys.stderr)
        return BROKEN_ENVIRONMENT
    except CourseError as error:
        print(f"course: {error}", file=sys.stderr)
        return BAD_REQUEST
    except OSError as error:
        print(
            f"course: {error.strerror or error}{f': {error.filename}' if error.filename else ''}. Nothing of yours was changed.",
            file=sys.stderr,
        )
        return BAD_REQUEST
    except Exception as error:  # a command loads what it needs when it runs, and that import can fail
        fault = import_fault(error)
        if fault is None:
            raise
        print(f"course: {fault}", file=sys.stderr)
        return BROKEN_ENVIRONMENT


def _show(verdict: Verdict, exercise: catalog.Exercise) -> None:
    out.print(verdict_view(verdict, exercise))


def _note(verdict: Verdict) -> None:
    """Remember a verdict. It stands, and is shown, even where the progress file cannot be written."""
    try:
        progress.note_verdict(verdict)
    except OSError as error:
        print(f"course: this verdict could not be saved in {paths.shown(progress.file())}: {error.strerror or error}.", file=sys.stderr)


def _confirmed(exercise: catalog.Exercise) -> bool:
    if not sys.stdin.isatty():
        print(
            f"course: {exercise.id} is not passed yet. `course solution {exercise.id} --yes` shows the solution all the same.",
            file=sys.stderr,
        )
        return False
    return typer.confirm(f"{exercise.id} is not passed yet. Show the solution all the same?")


def _status(records: dict[str, progress.Record], name: str) -> str:
    """The last verdict; a pass that was reset since is still a pass."""
    record = records.get(name, progress.Record())
    return PASS if record.passed else record.last.get("status", NOT_ATTEMPTED)


def _hints(records: dict[str, progress.Record], name: str) -> int:
    return records.get(name, progress.Record()).hints
