"""The ``course`` command: its commands with their options, and what an error becomes.

Each command loads what it needs when it runs, so that ``course --help`` and completion answer at
once.
"""

from __future__ import annotations

import contextlib
import enum
import io
import os
import platform
import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer

from course_lib.base import paths
from course_lib.base.errors import CourseError, EnvironmentFault
from course_lib.base.installation import find_version, import_fault
from course_lib.base.translation import (
    LANGUAGES,
    VARIABLE,
    choose_language,
    join_sentences,
    translate_filled,
)
from course_lib.base.translation import gettext as _
from course_lib.cli.help import AUTHOR, KEEP, LEARN, MEASURE, START, TEACH, GroupedCommands
from course_lib.cli.terminal import Output, open_nowhere, say

USAGE_ERROR = 64  # sysexits' EX_USAGE; typer's own 2 would read as "not attempted"
OUTPUT_ERROR = 74  # sysexits' EX_IOERR; 3 would read as a fault of the file that was checked
BAD_REQUEST = 3  # as for a file that cannot be read: there was nothing to judge
# sysexits' EX_CONFIG: the machine, the installation or a setting is at fault
BROKEN_ENVIRONMENT = 78
INTERRUPTED = 130
NOBODY_READS = 141  # a shell's exit code for a program that SIGPIPE ended

# and the rest in a course folder only
_WORK_ANYWHERE = ("init", "doctor", "bench", "grade", "author", "release")

app = typer.Typer(
    cls=GroupedCommands,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _complete_exercise(incomplete: str) -> list[tuple[str, str]]:
    from course_lib import catalog

    return [
        (name, exercise.title)
        for name, exercise in catalog.exercises().items()
        if name.startswith(incomplete)
    ]


def _complete_kind(incomplete: str) -> list[tuple[str, str]]:
    from course_lib.cli.bench import KINDS

    return [
        (name, _(description)) for name, description in KINDS.items() if name.startswith(incomplete)
    ]


def _print_versions(is_set: bool) -> None:
    if not is_set:
        return
    import course_lib

    torch, triton = (find_version(name) or _("not installed") for name in ("torch", "triton"))
    print(
        f"course {course_lib.__version__}, Python {platform.python_version()}, torch {torch},"
        f" triton {triton}"
    )
    raise typer.Exit


def _set_language(language: str | None) -> None:
    """Set the language of this call and of all that it starts, such as JupyterLab."""
    if language is None:
        return
    os.environ[VARIABLE] = language
    try:
        choose_language()
    except CourseError:
        del os.environ[VARIABLE]  # the message needs a language, too
        raise typer.BadParameter(
            f"the course has {' and '.join(LANGUAGES)}, and no other language."
        ) from None


# The words of three options. Typer knows Literal since 0.19 only, and a learner may have an older
# one.
Tier = enum.StrEnum("Tier", "NAMESPACES LANDLOCK")  # the tiers of isolation that one can insist on
GradingTier = enum.StrEnum("GradingTier", "NAMESPACES LANDLOCK LIMITS")  # LIMITS asks for no tier
Absent = enum.StrEnum("Absent", "ZERO EMPTY")
Weights = enum.StrEnum("Weights", "DIFFICULTY MINUTES EQUAL")  # the sources of an exercise's points
ExerciseId = Annotated[
    str,
    typer.Argument(
        help="The exercise, such as 07a.", metavar="ID", autocompletion=_complete_exercise
    ),
]
ExerciseIds = Annotated[
    list[str] | None,
    typer.Argument(
        help="Exercises, such as 07a, or lessons, such as 07.",
        metavar="[ID]...",
        autocompletion=_complete_exercise,
    ),
]
ExerciseIdOrNext = Annotated[
    str | None,
    typer.Argument(
        help="The exercise, such as 07a; without it the next one.",
        metavar="ID",
        autocompletion=_complete_exercise,
    ),
]


@app.callback(
    invoke_without_command=True,
    epilog="`course` alone says where you are. `course COMMAND --help` explains a command.",
)
def main(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the versions of the course, Python, PyTorch and Triton.",
            is_eager=True,
            callback=_print_versions,
        ),
    ] = False,
    language: Annotated[
        str | None,
        typer.Option(
            "--lang",
            help="The language, en or zh; without it, that of COURSE_LANG.",
            metavar="LANG",
            is_eager=True,  # before --help, which speaks it
            callback=_set_language,
        ),
    ] = None,
) -> int:
    """LayerNorm and RMSNorm, from the formula to Triton kernels."""
    if context.invoked_subcommand is None:
        from course_lib.cli import status
        from course_lib.cli.terminal import show

        show(status.overview())
    return 0


@app.command(
    rich_help_panel=START,
    epilog="""In a folder that has work in it, nothing that you wrote is changed.

    \b
    Examples: course init my-course
              course init /content/my-course --newest""",
)
def init(
    folder: Annotated[
        Path | None, typer.Argument(help="The folder to make, such as my-course.", metavar="DIR")
    ] = None,
    newest: Annotated[
        bool,
        typer.Option(
            "--newest",
            help=(
                "Use this Python and its own PyTorch and Triton, which stay as they are, and"
                " install here what it lacks. Without it, "
                "`course lab` makes an environment with pinned versions."
            ),
        ),
    ] = False,
    renew: Annotated[bool, typer.Option("--renew", hidden=True)] = False,
) -> int:
    """Make a course folder: exercises, lessons, your progress."""
    if folder is None and paths.is_installed():
        raise typer.BadParameter(
            _("name the folder to make: `{program} init my-course`.").format(
                program=paths.name_program()
            ),
            param_hint="DIR",
        )
    from course_lib.cli import folder as folders

    return folders.init(folder or Path(), newest, renew)  # a checkout refuses any


@app.command(rich_help_panel=START)
def env() -> int:
    """Make the course folder's environment without opening JupyterLab."""
    from course_lib.cli import folder as folders

    return folders.env()


@app.command(
    rich_help_panel=START,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    epilog="""Options that are not named here go to JupyterLab as they are.

    \b
    Examples: course lab
              course lab --no-browser --port 8899""",
)
def lab(context: typer.Context) -> int:
    """Open lesson 00 in JupyterLab, and before that, the first time, make the environment."""
    from course_lib.cli import folder as folders

    return folders.lab(context.args)


@app.command(
    rich_help_panel=LEARN,
    epilog="""Exit codes: 0 pass, 1 fail, 2 not attempted, 3 the file cannot be read or imported (or there is no such exercise), 4 the grader
    is at fault, which never counts against you; 64 wrong use of the command, 74 the output could not be written, 78 the
    installation or a setting is at fault, 141 whoever read the output has left.

    \b
    Examples: course check
              course check 07a 08a
              course check 07a --file other.py --json""",  # noqa: E501
)
def check(
    exercise_ids: ExerciseIds = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help="Check this file instead of yours in exercises/. Progress is then left alone."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the verdict as JSON, for programs.")
    ] = False,
    secret_file: Annotated[
        Path | None,
        typer.Option(
            help=(
                "For instructors: grade with hidden cases, of other shapes and values, drawn from"
                " the secret in this file. "
                "Progress is then left alone."
            )
        ),
    ] = None,
    require_tier: Annotated[
        Tier | None,
        typer.Option(
            help=(
                "For instructors: run the file only where this machine shuts it in at least so"
                " well; docs/security.md says what "
                "each tier promises."
            )
        ),
    ] = None,
) -> int:
    """Grade your file of an exercise, such as 07a, or of all of a lesson, such as 07; without an
    ID, of the next one.

    Of several, the worst verdict decides the exit code.
    """
    if not exercise_ids and (file or secret_file):
        raise typer.BadParameter(
            _("name the exercise that the file belongs to: `course check ID --file PATH`."),
            param_hint="ID",
        )
    from course_lib import catalog
    from course_lib.grading import kind, warming

    exercises = catalog.find(exercise_ids or [])
    names = [exercise.id for exercise in exercises]
    if len(names) > 1 and (file or as_json):
        raise typer.BadParameter(
            _("these are {ids}: with --file or --json, name one of them.").format(
                ids=", ".join(names)
            ),
            param_hint="ID",
        )
    if exercises:
        # These processes start while this one imports what judges and prints. If this machine has
        # no mode for a check, the check says so.
        with contextlib.suppress(CourseError):
            warming.prepare(kind.find_kind(exercises[0].kind).choose_mode(None))
    from course_lib.cli import exercise

    return max(
        exercise.check(name, file, secret_file, as_json, require_tier) for name in names or [None]
    )


@app.command(
    rich_help_panel=LEARN,
    epilog="""Without a terminal (in a pipe) it prints one verdict after another, of the exercise named or of any that is saved.

    Example: course watch 07a""",  # noqa: E501
)
def watch(exercise_id: ExerciseIdOrNext = None) -> int:
    """Check an exercise each time you save it, with keys for hints and for the next one."""
    from course_lib.cli import watch as watching

    return watching.watch(exercise_id)


@app.command(rich_help_panel=LEARN, epilog="Example: course hint 07a")
def hint(exercise_id: ExerciseIdOrNext = None) -> int:
    """Show the next of three hints, each more direct than the last."""
    from course_lib.cli import exercise

    return exercise.hint(exercise_id)


@app.command(
    rich_help_panel=LEARN,
    epilog="""Into a file or a pipe it prints the source text alone.

    Example: course solution 07a --yes > solution.py""",
)
def solution(
    exercise_id: ExerciseId,
    yes: Annotated[
        bool, typer.Option("--yes", help="Show it although the exercise is not passed yet.")
    ] = False,
) -> int:
    """Show the course's solution: after a pass, or when you confirm."""
    from course_lib.cli import exercise

    return exercise.solution(exercise_id, yes)


@app.command(rich_help_panel=LEARN, epilog="Example: course reset 07a")
def reset(exercise_id: ExerciseId) -> int:
    """Start an exercise over; a copy of your file is kept in .course/kept/."""
    from course_lib.cli import exercise

    return exercise.reset(exercise_id)


@app.command(
    rich_help_panel=LEARN,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    epilog="Options go to JupyterLab as they are. Example: course hunt --no-browser",
)
def hunt(context: typer.Context) -> int:
    """Find what is wrong in a kernel with as few questions as you can: opens hunt.ipynb in
    JupyterLab."""
    from course_lib.cli import folder as folders

    return folders.hunt(context.args)


@app.command(
    rich_help_panel=LEARN,
    epilog="""\b
    Examples: course status
              course status 07a
              course status --html my-course.html""",
)
def status(
    exercise_ids: ExerciseIds = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print it as JSON, for programs.")
    ] = False,
    page: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help=(
                "Write a page to keep or to hand in: what is passed, predictions that surprised,"
                " answers to questions asked again, the ladder."
            ),
        ),
    ] = None,
) -> int:
    """List the exercises, what is passed, and what comes next; with an ID, say what that exercise
    asks for."""
    from course_lib.cli import status as where
    from course_lib.cli.terminal import show

    if page:
        from course_lib.cli import status_page
        from course_lib.cli.page import require_html

        require_html(page, "--html")
        if exercise_ids or as_json:
            raise CourseError(
                _("--html writes the page of the whole course; leave --json and the exercises out.")
            )
        status_page.write(page)
        print(_("written to {page}").format(page=page))
        return 0
    from course_lib import catalog

    chosen = catalog.find(exercise_ids or [])
    if as_json:
        print(where.as_json(chosen))
    else:
        show(where.describe(chosen) if chosen else where.listing())
    return 0


@app.command(
    rich_help_panel=MEASURE,
    epilog="""\b
    Examples: course bench --stored                a summary of what was measured
              course bench forward --stored        one kind, every row length
              course bench forward --columns 4096  measure, on a GPU
              course bench --columns 4096 --rows 8192  your shape, on any machine""",
)
def bench(
    kind: Annotated[
        str,
        typer.Argument(
            help="forward, backward, long_rows, statistics, host, training, or all.",
            metavar="KIND",
            autocompletion=_complete_kind,
        ),
    ] = "all",
    stored: Annotated[
        bool, typer.Option("--stored", help="Show the newest stored measurement; measure nothing.")
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            "--html",
            help="Also draw what came out into this HTML file; of `all`, one file a kind.",
        ),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Only these row lengths, such as 1024,4095.")
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            metavar="M",
            help=(
                "Report on M rows of --columns N instead: bytes, floor, launch and its reason, and"
                " on a GPU the times. Without a GPU it is "
                "computed for an H100."
            ),
        ),
    ] = None,
    dtype: Annotated[str | None, typer.Option(help="fp16 (as without it), bf16 or fp32.")] = None,
    norm: Annotated[
        str | None, typer.Option(help="With --rows: layer_norm (as without it) or rms_norm.")
    ] = None,
    providers: Annotated[
        str | None, typer.Option(help="Only these, such as ours,torch,compile,liger,quack.")
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print everything that was measured as JSON, for programs."),
    ] = False,
) -> int:
    """Time the course's kernels against PyTorch and other libraries on this GPU."""
    from course_lib.cli import bench as measuring

    texts = measuring.run(
        kind,
        stored=stored,
        plot=plot,
        columns=columns,
        rows=rows,
        dtype=dtype,
        norm=norm,
        providers=providers,
        as_json=as_json,
    )
    for text in texts:
        print(text, flush=True)  # without markup, because other programs may read the numbers
    return 0


WeekNames = Annotated[
    str | None,
    typer.Option(
        "--week", help="The week whose exercises were asked for, such as 3; or several, 3,4."
    ),
]
PlanFile = Annotated[
    Path | None,
    typer.Option(
        "--weeks",
        help="The plan of the weeks; without it weeks.toml in this folder, else the course's own.",
    ),
]
AskedFor = Annotated[
    str | None, typer.Option("--only", help="The exercises that were asked for, such as 07a,08a.")
]
AllAskedFor = Annotated[bool, typer.Option("--all", help="Every exercise was asked for.")]


@app.command(
    rich_help_panel=TEACH,
    epilog="""Submissions: one sub-folder or archive a learner, or what Canvas, Moodle and Gradescope give ("download all submissions"), or
    cloned repositories; `--map` for any other. Exit codes: 0 all graded, 4 something could not be, which counts against nobody; otherwise as `course check`.

    \b
    Examples: course grade submissions -o results --week 3
              course grade submissions -o results --only 07a,08a --due 2026-12-01T18:00 --late "10 % per day"
              course grade results --show "Jane Doe" 07a""",  # noqa: E501
)
def grade(
    folder: Annotated[
        Path,
        typer.Argument(help="The class's submissions; with --show its results.", metavar="FOLDER"),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Where the results go. If it is there, grading goes on where it stopped.",
        ),
    ] = None,
    show: Annotated[
        tuple[str, str] | None,
        typer.Option(
            help=(
                "Explain one mark of the results in FOLDER: the file, the case that was marked, a"
                " script that runs it, and a copy for the learner."
            ),
            metavar="LEARNER EXERCISE",
        ),
    ] = None,
    week: WeekNames = None,
    plan: PlanFile = None,
    only: AskedFor = None,
    everything: AllAskedFor = False,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=(
                "How many files are checked at a time; without it, as many as there are processors."
            ),
        ),
    ] = None,
    secret_file: Annotated[
        Path | None,
        typer.Option(
            help=(
                "The secret of the hidden cases; without it one is made, and kept with the results."
            )
        ),
    ] = None,
    mapping: Annotated[
        Path | None,
        typer.Option(
            "--map", help="A CSV file with the columns learner,path; id,login,email if wanted."
        ),
    ] = None,
    due: Annotated[
        str | None, typer.Option(help="The deadline of these exercises; without it, the plan's.")
    ] = None,
    late: Annotated[
        str | None,
        typer.Option(
            help='What lateness costs, such as "10 % per day, 3 free days, at most 4 days,'
            ' 15 minutes of grace": of the points of the exercise.'
        ),
    ] = None,
    absent: Annotated[
        Absent | None,
        typer.Option(
            help=(
                "What an exercise counts that was asked for while the learner was absent: 0, or"
                " nothing yet; without it, as OUT has it, else nothing yet."
            )
        ),
    ] = None,
    weights: Annotated[
        Weights | None,
        typer.Option(
            help=(
                "What the points of an exercise are: its difficulty (1 to 5), its minutes, or 1"
                " each; without it, as OUT has them, else difficulty."
            )
        ),
    ] = None,
    partial: Annotated[
        bool | None,
        typer.Option(
            "--partial/--no-partial",
            help="Points for the part of the cases that is right.",
            show_default=False,
        ),
    ] = None,
    change_rules: Annotated[
        bool,
        typer.Option(
            help="Give the marks in OUT anew, with other --weights, --late, --absent or --partial."
        ),
    ] = False,
    also: Annotated[
        list[Path] | None,
        typer.Option(
            help=(
                "An earlier class's submissions, to compare with and not to grade; may be given"
                " again."
            ),
            metavar="FOLDER",
        ),
    ] = None,
    anew: Annotated[
        bool, typer.Option(help="Forget the marks of earlier runs in OUT; the verdicts are kept.")
    ] = False,
    accept_names: Annotated[
        bool,
        typer.Option(
            "--accept-names",
            help=(
                "Grade a file whose name only hints at an exercise, such as 7a.py, where it is the"
                " only one for it."
            ),
        ),
    ] = False,
    recheck: Annotated[
        str | None,
        typer.Option(help="Check these exercises again, such as 07a, whatever is known."),
    ] = None,
    require_tier: Annotated[
        GradingTier | None,
        typer.Option(
            help=(
                "Run nothing unless it is shut in so well; without it, the best that this machine"
                " has, and never limits alone."
            )
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="The address of a dask scheduler, whose workers then check the files.",
            metavar="ADDRESS",
        ),
    ] = None,
) -> int:
    """Grade a class: every exercise of everybody, with hidden cases."""
    typed = dict(locals())
    _require_whole_course("grade")
    from course_lib.cli.grade import GradeRequest
    from course_lib.cli.grade import grade as grade_class

    return grade_class(GradeRequest(**typed))


@app.command(rich_help_panel=KEEP)
def doctor(
    details: Annotated[
        bool,
        typer.Option(
            "--details",
            help="Show each fact about this machine, too, with what a report of a fault needs.",
        ),
    ] = False,
) -> int:
    """Say whether the course can run here, and what to do about what is wrong."""
    from rich.text import Text

    from course_lib import doctor as examiner
    from course_lib.cli.terminal import console

    findings, screen = examiner.examine(), console()
    text = Text(examiner.as_text(findings, screen.width, details))
    for pattern, style in (
        (r"(?m)^✗", "red"),
        (r"(?m)^!", "yellow"),
        (r"(?m)(?<=^[✗!] )[^:\n]+", "bold"),
    ):
        text.highlight_regex(pattern, style)
    # rich must not cut a command that is longer than the terminal is wide
    screen.print(text, soft_wrap=True)
    return 0 if examiner.can_run(findings) else 1


@app.command(rich_help_panel=KEEP)
def update() -> int:
    """Bring the course up to date; what you wrote stays as it is."""
    from course_lib.cli.folder import bring_up_to_date

    return bring_up_to_date()


@app.command(rich_help_panel=KEEP, epilog="Example: course export my-course.zip")
def export(file: Annotated[Path, typer.Argument(metavar="FILE")] = paths.WORK) -> int:
    """Put your exercises and your progress into a zip, for another machine."""
    from course_lib.learner import carrying

    print(carrying.pack(file))
    return 0


@app.command("import", rich_help_panel=KEEP, epilog="Example: course import my-course.zip")
def import_(file: Annotated[Path, typer.Argument(metavar="FILE")] = paths.WORK) -> int:
    """Take the exercises and the progress of such a zip; what you have here is kept."""
    from course_lib.learner import carrying

    for line in carrying.unpack(file) or [_("Everything in it is here already.")]:
        print(line)
    return 0


author = typer.Typer(cls=GroupedCommands, rich_markup_mode=None)
app.add_typer(author, name="author", rich_help_panel=AUTHOR)


@author.callback(epilog="docs/authoring.md has a recipe for each.")
def describe_author() -> None:
    """Make and check exercises, lessons, pictures and kernels."""
    _require_whole_course("author")


@author.command(
    "new",
    rich_help_panel=AUTHOR,
    epilog="""No file that is there is ever changed.

    \b
    Examples: course author new exercise 11a_column_sums --kind torch
              course author new lesson 11_measuring""",
)
def author_new(
    thing: Annotated[
        str, typer.Argument(help="exercise, lesson, picture or kernel.", metavar="WHAT")
    ],
    name: Annotated[
        str,
        typer.Argument(
            help="Its name; of an exercise and a lesson with the number in front.", metavar="NAME"
        ),
    ],
    kind: Annotated[
        str | None, typer.Option(help="Of an exercise: kernel (as without it), torch or numpy.")
    ] = None,
) -> int:
    """Lay out the files of something new; their tests fail until it is written."""
    from course_lib.cli import author as authoring

    return authoring.new(thing, name, kind)


@author.command(
    "check",
    rich_help_panel=AUTHOR,
    epilog="""It needs the authors' tools: `make dev`. Exit code 1 if something is missing.

    Example: course author check 07a""",
)
def author_check(
    exercise_ids: Annotated[
        list[str] | None,
        typer.Argument(
            help="The exercises; without one, all.",
            metavar="[ID]...",
            autocompletion=_complete_exercise,
        ),
    ] = None,
) -> int:
    """Run all checks of an exercise: cut, catalog, mutants, variants, causes, notebook."""
    from course_lib.cli import author as authoring

    return authoring.check(exercise_ids or [])


@app.command(
    rich_help_panel=TEACH,
    epilog="""DIR must not be there, or be empty: nothing is ever overwritten. docs/instructors.md says what is left out, and what is not;
    docs/grading-a-class.md says what to do with the files for a class system.

    \b
    Examples: course release ../course-for-the-class
              course release --gradescope ../gradescope-week-3 --week 3
              course release --workflow ../course-for-the-class --week 3""",  # noqa: E501
)
def release(
    folder: Annotated[Path, typer.Argument(help="The folder to make.", metavar="DIR")],
    gradescope: Annotated[
        bool, typer.Option("--gradescope", help="Make an autograder for Gradescope instead.")
    ] = False,
    classroom50: Annotated[
        bool, typer.Option("--classroom50", help="Make an autograder for Classroom 50 instead.")
    ] = False,
    workflow: Annotated[
        bool,
        typer.Option(
            "--workflow", help="Add a workflow for GitHub Actions to the copy that is there."
        ),
    ] = False,
    week: WeekNames = None,
    plan: PlanFile = None,
    only: AskedFor = None,
    everything: AllAskedFor = False,
    secret_file: Annotated[
        Path | None,
        typer.Option(
            help="The secret of the hidden cases of the autograder; without it a new one."
        ),
    ] = None,
    weights: Annotated[Weights | None, typer.Option(help="As for `course grade`.")] = None,
    partial: Annotated[bool, typer.Option("--partial", help="As for `course grade`.")] = False,
    require_tier: Annotated[GradingTier | None, typer.Option(help="As for `course grade`.")] = None,
) -> int:
    """Make a copy of the course for learners: no solutions, no tests, no tools of authors and
    instructors."""
    _require_whole_course("release")
    from course_lib.cli import release as releasing

    flags = {"gradescope": gradescope, "classroom50": classroom50, "workflow": workflow}
    systems = [name for name, chosen in flags.items() if chosen]
    if len(systems) > 1:
        raise typer.BadParameter(_("say one of --gradescope, --classroom50 and --workflow."))
    if systems:
        from course_lib.cli.grade import choose_exercises

        exercise_ids = choose_exercises(week, plan, only, everything)[0]
        rules = {
            "secret_file": secret_file,
            "weights": weights,
            "partial": partial,
            "tier": require_tier,
        }
        return releasing.release_for(systems[0], folder, exercise_ids, **rules)
    if any((week, plan, only, everything, secret_file, weights, partial, require_tier)):
        raise typer.BadParameter(
            _(
                "the learners' copy has every exercise; the options of grading belong to"
                " --gradescope, --classroom50 or --workflow."
            )
        )
    return releasing.release(folder)


def _require_whole_course(command: str) -> None:
    """Refuse a command of authors and instructors where the parts that it needs are left out.

    Raises: CourseError
    """
    if paths.is_release():
        raise CourseError(
            _(
                "{folder} is a copy of the course for learners, without solutions and without what"
                " `course {command}` needs: give the command in the whole course, from which this"
                " copy was made."
            ).format(folder=paths.ROOT, command=command)
        )
    if paths.is_installed() and command != "grade":
        raise CourseError(
            _(
                "the installed package has no tests and no sources of the lessons, which `course"
                " {command}` needs: give the command in a checkout of the course."
            ).format(command=command)
        )


def run(arguments: list[str]) -> int:
    """Run the command; errors meant for people are a message on standard error, never a
    traceback."""
    warnings.showwarning = lambda message, *details, **more: say(str(message))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # a terminal without "●", or a message with half a character, is no reason to stop
            stream.reconfigure(errors="replace")
    output = Output(sys.stdout or open_nowhere())
    sys.stdout = output
    try:
        code = _dispatch(arguments)
        output.flush()  # flushed here, where an error can still be reported
        return code
    # typer and rich raise SystemExit if the reader of a pipe has ended
    except (OSError, SystemExit) as error:
        if output.error is not None:
            return _report_lost_output(output)
        if isinstance(error, SystemExit):
            raise
        where = f": {error.filename}" if error.filename else ""
        say(
            _(
                "course: {reason}{where}. `course doctor` looks at the disk and at the folders that"
                " the course writes."
            ).format(reason=error.strerror or error, where=where)
        )
        return BAD_REQUEST
    finally:
        sys.stdout = output.stream


def _needs_folder(command: str, arguments: list[str]) -> bool:
    asks_for_help = command.startswith("-") or {"-h", "--help"}.intersection(arguments)
    return command not in _WORK_ANYWHERE and not asks_for_help


def _dispatch(arguments: list[str]) -> int:
    command = arguments[0] if arguments else ""
    try:
        if _needs_folder(command, arguments):
            # before any import, because a missing folder is the first thing to report
            paths.folder()
        code = _call(arguments)
        if code == INTERRUPTED:  # typer's exit code after Ctrl-C
            say(_("course: stopped."))
        return code
    except typer.Abort:
        say(_("course: stopped."))
        return INTERRUPTED
    except EnvironmentFault as fault:
        say(f"course: {fault}")
        return BROKEN_ENVIRONMENT
    except CourseError as error:
        say(f"course: {error}")
        return BAD_REQUEST
    except OSError:
        raise  # run() tells files from output
    # a command imports its modules when it runs, and that can fail
    except (Exception, SystemExit) as error:
        fault = import_fault(error)
        if fault is None:
            raise
        say(f"course: {fault}")
        return BROKEN_ENVIRONMENT


def _call(arguments: list[str]) -> int:
    """Run the command and return its exit code. Of wrong use it prints what typer says, and how to
    find the right use."""
    try:
        return app(arguments, prog_name="course", standalone_mode=False) or 0
    except typer.TyperException as usage:
        context = getattr(usage, "ctx", None)
        words = translate_filled(usage.format_message(), "interface")
        stop = "" if words.endswith((".", "?", "!", "。", "？")) else _(".")
        program = context.command_path if context else "course"
        usage_hint = _("`{program} --help` shows how it is used.").format(program=program)
        say(join_sentences(f"course: {words}{stop}", usage_hint))
        return USAGE_ERROR


def _report_lost_output(output: Output) -> int:
    """Return the exit code of a command whose output could not be written. If the reader of a pipe
    has ended, no message is needed."""
    output.discard()
    error = output.error
    assert error is not None, "called because a write failed"
    if isinstance(error, BrokenPipeError):
        return NOBODY_READS
    say(
        _(
            "course: the output could not be written ({reason}). `course status` shows what is"
            " saved. Make room there, or write elsewhere, and run the command again."
        ).format(reason=error.strerror)
    )
    return OUTPUT_ERROR
