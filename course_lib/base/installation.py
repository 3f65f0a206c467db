"""The translation of exceptions into faults of the machine or the installation, with remedies."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from pathlib import Path

from course_lib.base import paths
from course_lib.base.errors import EnvironmentFault
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_

_STAMP = ".course-stamp"  # tools/bootstrap.py writes it last
_PACKAGES = {"torch": "PyTorch", "triton": "Triton", "numpy": "NumPy"}
_NEEDED = {
    *_PACKAGES,
    "ml_dtypes",
    "polib",
    "rich",
    "typer",
    "psutil",
    "sympy",
    "matplotlib",
    "ipywidgets",
    "landlockpy",
}
_REMEDIES = {
    errno.ENOSPC: N_("Free some space (`df -h` shows where), then try again."),
    errno.EDQUOT: N_("Your quota on this disk is used up: delete something, then try again."),
    errno.EROFS: (
        N_(
            "This disk is mounted for reading only. Set TMPDIR and COURSE_STATE to "
            "folders that you can write to."
        )
    ),
    errno.EACCES: (
        N_(
            "Look at who may write there, or set TMPDIR and COURSE_STATE to folders that "
            "you can write to."
        )
    ),
    errno.EPERM: N_("This machine does not permit it. `course doctor` says what it permits."),
    errno.ENOMEM: N_("Close other programs, or take a machine with more memory, then try again."),
    errno.EAGAIN: (
        N_(
            "No more processes may be started (`ulimit -u` shows how many): end some, "
            "then try again."
        )
    ),
    errno.EMFILE: (
        N_(
            "Too many files are open in this process (`ulimit -n` shows how many may be):"
            " restart it, then try again."
        )
    ),
    errno.ENFILE: N_("Too many files are open on this machine: end some programs, then try again."),
}


def find_version(package: str) -> str | None:
    """Return the version from the package's metadata, without importing it; None if it is not
    installed."""
    # not at the top: it imports `random`, and a file of the learner with this name must be found
    # before
    import importlib.metadata

    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def environment_fault(error: BaseException) -> EnvironmentFault | None:
    """Return the fault of the machine or the installation that ``error`` shows, with its remedy;
    None if it shows none.

    A full disk, too little memory and a missing permission are faults of the machine. Faults of the
    installation are an import that fails outside ``course_lib``, and a file that shadows a module
    of Python or of the course's packages. Every other exception may be a bug of the course.
    """
    if isinstance(error, EnvironmentFault):
        return error
    if isinstance(error, MemoryError):
        return EnvironmentFault(
            _("this machine has not enough memory. {remedy}").format(
                remedy=_(_REMEDIES[errno.ENOMEM])
            )
        )
    if isinstance(error, OSError) and error.errno in _REMEDIES:
        where = f": {error.filename}" if error.filename else ""
        return EnvironmentFault(
            _("this machine says: {reason}{where}. {remedy}").format(
                reason=error.strerror, where=where, remedy=_(_REMEDIES[error.errno])
            )
        )
    return import_fault(error)


def missing_package(package: str) -> EnvironmentFault:
    """Return the fault for a package that the course needs and this Python lacks.

    Args:
        package: its import name.
    """
    home = paths.find_folder()
    if paths.is_installed() and home is not None and find_python(home) is None:
        how_far = _("not finished") if (home / ".venv").exists() else _("not made yet")
        program = paths.name_program()
        return EnvironmentFault(
            _(
                "the environment of {home} is {how_far}. `{program} lab` makes it and opens "
                "lesson 00; `{program} env` makes it alone. (This Python is {python}, and has"
                " no {package}.)"
            ).format(
                home=home,
                how_far=how_far,
                program=program,
                python=sys.executable,
                package=_PACKAGES.get(package, package),
            )
        )
    return EnvironmentFault(
        _("{package} is not installed for the Python that runs the course. {remedy}").format(
            package=_PACKAGES.get(package, package), remedy=install_again()
        )
    )


def import_fault(error: BaseException) -> EnvironmentFault | None:
    """Return the fault if ``error`` ended an import outside ``course_lib``, or if a loaded module
    shadows another; None otherwise."""
    if shadow := _find_shadow():
        name, file = shadow
        return EnvironmentFault(
            _(
                "`{name}` is not the module that the course needs ({kind}: {error}). {shadowing}"
            ).format(
                name=name,
                kind=type(error).__name__,
                error=error,
                shadowing=_name_shadow(name, file),
            )
        )
    foreign = _list_foreign_lines(error)
    if not foreign:
        name = error.name if isinstance(error, ModuleNotFoundError) else None
        package = (name or "course_lib").split(".")[0]
        return None if package == "course_lib" else missing_package(package)
    strange = next((file for file, _ in foreign if not _is_installed(file)), None)
    imported, (file, line) = _package_of(strange or foreign[0][0]), foreign[-1]
    first_line = (str(error).strip().splitlines() or [""])[0]
    problem = _("{package} cannot be imported: {kind}: {first_line} ({file}, line {line}).").format(
        package=_PACKAGES.get(imported, imported),
        kind=type(error).__name__,
        first_line=first_line,
        file=file,
        line=line,
    )
    return EnvironmentFault(
        f"{problem} {_name_shadow(imported, strange) if strange else install_again()}"
    )


def _list_foreign_lines(error: BaseException) -> list[tuple[str, int | None]]:
    """Return file and line of each module outside the course that was being imported when ``error``
    was raised."""
    foreign: list[tuple[str, int | None]] = [
        (frame.filename, frame.lineno)
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.name == "<module>"
        and not frame.filename.startswith("<")
        and not _is_ours(frame.filename)
    ]
    if isinstance(error, SyntaxError) and error.filename and not _is_ours(error.filename):
        foreign.append((error.filename, error.lineno))
    return foreign


def _find_shadow() -> tuple[str, str] | None:
    """Return name and file of a module that shadows one of Python's or of a needed package; None if
    there is none.

    The needed packages are folders, so a single file of such a name is a person's script. A whole
    package from elsewhere is another installation, which may be intended.
    """
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        is_needed_name = name in sys.stdlib_module_names or (
            name in _NEEDED and not hasattr(module, "__path__")
        )
        if is_needed_name and isinstance(file, str) and not _is_installed(file):
            return name, file
    return None


def _is_installed(file: str) -> bool:
    """Return True for a file of Python itself, or of a package in a folder for installed
    packages."""
    homes = Path(os.__file__).resolve().parent, Path(sys.prefix).resolve()
    path = Path(file)
    return not {"site-packages", "dist-packages"}.isdisjoint(path.parts) or any(
        path.resolve().is_relative_to(home) for home in homes
    )


def _name_shadow(name: str, file: str) -> str:
    origin = (
        _("comes with Python") if name in sys.stdlib_module_names else _("the course installed")
    )
    return _(
        "That is not the {name} that {origin}: another one stands before it on "
        "Python's path. Rename or remove {file}, or `unset PYTHONPATH`."
    ).format(name=name, origin=origin, file=file)


def find_python(folder: Path) -> Path | None:
    """Return the Python of a course folder's own environment; None if there is no finished one."""
    return folder / ".venv" / "bin" / "python" if (folder / ".venv" / _STAMP).is_file() else None


def name_command(name: str) -> str:
    """Return the command that makes the environment (``env``) or opens the lessons (``lab``)."""
    return f"course {name}" if paths.is_installed() else f"make {name}"


def install_again() -> str:
    """Return the remedy for an environment that is incomplete or damaged."""
    home, this_python = (
        paths.find_folder(),
        _("(This Python is {python}.)").format(python=sys.executable),
    )
    if home is None:
        return _(
            "A course folder gets an environment that has it all. To grade a class with "
            "this Python: `pip install 'norm-kernels-course[lab]'`. {this_python}"
        ).format(this_python=this_python)
    if paths.is_installed():
        # `course env` replaces an unfinished environment by itself; if an installer still works in it, `course env` waits for it  # noqa: E501
        again = (
            "`course env`" if find_python(home) is None else _("`rm -r .venv`, then `course env`,")
        )
        return _(
            "{again} makes the environment of {home}; your exercises and progress stay. "
            "{this_python}"
        ).format(again=again, home=home, this_python=this_python)
    return _(
        "`make clean`, then `make lab`, installs it anew (in an environment of your "
        "own: `pip install -c constraints.txt -e '.[lab]'` in the course's folder); "
        "`course doctor` says what else is missing. {this_python}"
    ).format(this_python=this_python)


def _is_ours(file: str) -> bool:
    return Path(file).is_relative_to(Path(__file__).parent.parent)


def _package_of(file: str) -> str:
    """Return the name of a file's package: ``torch`` for ``.../site-packages/torch/_C/x.py`` and
    for ``/anywhere/torch.py``."""
    path = Path(file)
    if "site-packages" in path.parts:
        return path.parts[path.parts.index("site-packages") + 1].removesuffix(".py")
    return path.parent.name if path.stem == "__init__" else path.stem
