"""Run the commands about the course folder: init, env, lab, hunt, update."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import course_lib
from course_lib import catalog
from course_lib.base import paths, runtime
from course_lib.base.errors import CourseError, EnvironmentFault
from course_lib.base.installation import find_python, install_again
from course_lib.base.translation import choose_language, join_sentences
from course_lib.base.translation import gettext as _
from course_lib.cli.terminal import say
from course_lib.learner import environment, folder, notebook_filter, update

FIRST_LESSON, HUNT = "00_start_here.ipynb", "hunt.ipynb"


def init(place: Path, newest: bool, renew: bool) -> int:
    """Make a course folder, or complete one, and say the next command.

    Raises: CourseError if this is a checkout, or ``place`` holds something else.
    """
    if not paths.is_installed():
        raise CourseError(
            _(
                "{folder} is a course folder already: `make lab` opens lesson 00 there. "
                "`course init` belongs to the installed package."
            ).format(folder=paths.ROOT)
        )
    had_work = place.exists()
    for line in folder.make(place, renew):
        print(line)
    if newest:
        environment.complete_this_environment()
    if renew and find_python(place):
        environment.make_environment(place)
    lessons = len(list((place / "notebooks").glob("[0-9]*.ipynb")))
    contents = _(
        "{place}: {lessons} lessons in notebooks/, {required} exercises and {optional} optional"
        " tasks in exercises/."
    ).format(
        place=place,
        lessons=lessons,
        required=len(catalog.required()),
        optional=len(catalog.exercises()) - len(catalog.required()),
    )
    print(join_sentences(contents, had_work * _("What you wrote is as it was.")))
    enter = "" if place.resolve() == Path.cwd() else f"cd {place} && "
    print(_("Next: {command}").format(command=f"{enter}{paths.name_program()} lab"))
    return 0


def env() -> int:
    """Make the environment of the course folder, or bring it up to date.

    Raises: CourseError if this is no course folder, or a checkout; EnvironmentFault if it cannot be
    made.
    """
    home = paths.folder()
    if not paths.is_installed():
        raise CourseError(
            _("{folder} is a checkout: `make env` makes its environment.").format(folder=paths.ROOT)
        )
    if find_python(home) is None and not environment.list_missing():
        print(
            _("{python} has all that the course needs; `course lab` uses it.").format(
                python=sys.executable
            )
        )
    else:
        environment.make_environment(home)
    return 0


def lab(arguments: list[str]) -> NoReturn:
    """Open lesson 00 in JupyterLab; ``arguments`` go to it. This process becomes JupyterLab.

    Raises: CourseError if this is no course folder; EnvironmentFault if the environment cannot be
    made, or the course cannot run in it.
    """
    _open_jupyterlab("lab", "", arguments)


def hunt(arguments: list[str]) -> int:
    """Open the page of the hunt in JupyterLab as :func:`lab` opens lesson 00; in JupyterLab's own
    terminal, say where the page is.

    The page is written into the course folder if it is not there.

    Raises: the exceptions of :func:`lab`; OSError if the page cannot be written.
    """
    page = paths.folder() / HUNT
    if not page.exists():
        shutil.copyfile(paths.PACKAGE / "hunt" / HUNT, page)
    if "JUPYTER_SERVER_ROOT" in os.environ:
        print(
            _(
                "{page} is in JupyterLab's list of files, at the top of the course folder: "
                "open it, and run its first cell."
            ).format(page=HUNT)
        )
        return 0
    _open_jupyterlab("hunt", HUNT, arguments)


def _open_jupyterlab(command: str, page: str, arguments: list[str]) -> NoReturn:
    """Open ``page``, a file of the course folder, or lesson 00, for ``command``, which is given
    again where the environment had to be made first."""
    home = paths.folder()
    if paths.is_installed() and (missing := environment.list_missing()):
        if environment.runs_here(home):
            raise EnvironmentFault(
                _("{prefix} lacks {packages}. {remedy}").format(
                    prefix=sys.prefix, packages=", ".join(missing), remedy=install_again()
                )
            )
        python = environment.make_environment(home)
        os.execv(python, [str(python), "-m", "course_command", command, *arguments])
    print(runtime.current().line(), flush=True)
    state = paths.state()
    state.mkdir(exist_ok=True)
    notebook_filter.watch(home)
    folder.translate_exercises(home)
    lessons = home / "notebooks"
    if choose_language() != "en":
        # here, because it imports Jupyter's widgets, which takes seconds
        from course_lib.lessons.translated import write_lessons

        lessons = write_lessons(home)
    page = page or f"{lessons.relative_to(home)}/{FIRST_LESSON}"
    # JupyterLab keeps the list of trusted notebooks in the course folder, not in the home directory
    notary = [
        f"--NotebookNotary.db_file={state / 'trusted.db'}",
        f"--NotebookNotary.secret_file={state / 'trusted.key'}",
    ]
    # A kernel of JupyterLab chooses anew: a setting of this process would look to it like one of
    # the learner's.
    settings = runtime.read_inherited() | {
        "JUPYTER_CONFIG_PATH": os.pathsep.join(
            filter(
                None,
                [str(paths.FILES / "tools" / "jupyter"), os.environ.get("JUPYTER_CONFIG_PATH")],
            )
        ),
        "PATH": os.pathsep.join(
            [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
        ),  # `course` in JupyterLab's terminals
    }
    trust = [
        sys.executable,
        "-c",
        "from nbformat.sign import main; main()",
        *notary,
        *map(str, sorted(lessons.glob("[0-9][0-9]_*.ipynb"))),
    ]
    # pictures of trusted notebooks move without being run
    subprocess.run(trust, stdout=subprocess.DEVNULL, env=settings, check=False)
    as_root = []
    if os.geteuid() == 0:
        say(_("course: you are root; JupyterLab is started with --allow-root."))
        as_root = ["--allow-root"]
    server_options = [f"--ServerApp.root_dir={home}", f"--LabApp.default_url=/lab/tree/{page}"]
    os.execve(
        sys.executable,
        [sys.executable, "-m", "jupyterlab", *notary, *server_options, *as_root, *arguments],
        settings,
    )


def bring_up_to_date() -> int:
    """Fetch a newer course. A checkout asks git; an installed package is replaced, and then
    completes the course folder."""
    if not paths.is_installed():
        for line in update.update():
            print(line)
        return 0
    home = paths.folder()
    if not environment.upgrade_package():
        newest = f"uvx {paths.DISTRIBUTION}@latest"
        if paths.read_origin():  # a clone or a file, which uv has kept as it was
            newest = paths.name_uvx().replace("uvx", "uvx --refresh", 1)
        say(
            _(
                "course: this is version {version}, as {python} has it; `{newest} update` "
                "fetches the newest."
            ).format(version=course_lib.__version__, python=sys.executable, newest=newest)
        )
    # This process has loaded the old package. Only the new one knows the new files.
    os.execv(sys.executable, [sys.executable, "-m", "course_command", "init", "--renew", str(home)])
