"""``course release DIR``: copy the course for learners, without solutions, tests, lessons' scripts
and tools for authors or instructors.

While a learner works, the course reads some of ``solutions/`` and ``notebooks/source/``. The copy
has these parts in ``paths.RELEASED``: the unsolved exercises, and the cells of the lessons' steps,
which show an answer after a pass or two failures.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import course_lib
from course_lib.authoring import exercises
from course_lib.authoring.nbval import read_built
from course_lib.authoring.notebooks import find_notebook, list_sources
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.catalog import step_cells

# Files and folders that are copied unchanged. A folder stands for everything in it. A learner gets
# no other file of the repository.
COPIED = (
    ".binder", ".devcontainer", "AGENTS.md", ".gitattributes", ".gitignore", "CITATION.cff",
    "LICENSE", "SECURITY.md", "constraints.txt",
    "course_command.py", "course_lib", "docs/cpu-mode.md", "docs/glossary.md",
    "docs/kernel-trials.md",
    "docs/kernels.md", "docs/security.md", "docs/setup.md", "environment.yml",
    "notebooks/images", "pyproject.toml", "setup.py", "tools/bootstrap.py", "tools/installer.py",
    "tools/jupyter", "tools/machine.py", "tools/translation.py",
)  # fmt: skip
# What is left out of these: authors' and instructors' code, and what is nearly a solution.
_LEFT_OUT = re.compile(
    r"course_lib/(authoring|classroom)/.*"
    r"|course_lib/exercises/\w+/(?!(exercise\.toml|cases\.py)$).*"
)
_README = Path(__file__).parent / "release_readme.md"
# parts of the Makefile that are useless without the files that are left out
_NOT_FOR_LEARNERS = re.compile(r"## (authors|instructors): |^test:|^NBVAL = ", re.MULTILINE)
_THEIR_SETTINGS = re.compile(
    r"^.*\b(TEST_ARGS|NBVAL_ARGS|BUNDLE_ARGS|LESSONS|SOLVED|WORKERS)\b.*\n", re.MULTILINE
)


def release(folder: Path) -> str:
    """Make the copy in ``folder``. If this fails, ``folder`` has no part of the copy.

    Returns: a description of the copy, to be printed.

    Raises: CourseError if ``folder`` is not empty or lies in the course's own folders, or a
        notebook is not what its script builds; OSError if the copy cannot be written.
    """
    folder = (
        folder.resolve() if folder.name in ("", "..") else folder.parent.resolve() / folder.name
    )
    require_free(folder)
    files = dict(_collect())
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for name, content in files.items():
            path = unfinished / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            if (original := paths.ROOT / name).exists():
                shutil.copymode(original, path)
        exercises.write(unfinished / "exercises")
        unfinished.chmod(0o755)  # mkdtemp gives it mode 0700
        unfinished.rename(folder)  # this replaces an empty folder, but no other one
    except OSError:
        shutil.rmtree(unfinished, ignore_errors=True)
        # raises its own error if another process has put files there meanwhile
        require_free(folder)
        raise
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    notebooks = len(list((folder / "notebooks").glob("*.ipynb")))
    return _(
        "{folder}: {version}, {count} lessons, {size} MB, without solutions, tests and authors'"
        " tools. docs/instructors.md says what a learner can find all the same, and how to hand it"
        " out."
    ).format(folder=folder, version=_describe(), count=notebooks, size=f"{size / 1e6:.0f}")


def require_free(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise CourseError(
            _("{folder} is no folder. Name one that is not there yet, or an empty one.").format(
                folder=folder
            )
        )
    if folder.exists() and any(folder.iterdir()):
        raise CourseError(
            _(
                "{folder} is not empty, and nothing is overwritten. Name one that is not there yet,"
                " or an empty one."
            ).format(folder=folder)
        )
    ours = [
        paths.ROOT / name
        for name in ("course_lib", "docs", "exercises", "notebooks", "solutions", "tests", "tools")
    ]
    if any(folder.is_relative_to(course_path) for course_path in ours):
        raise CourseError(
            _("{folder} lies in the course's own files. Name a folder beside the course.").format(
                folder=folder
            )
        )


def _collect() -> Iterator[tuple[str, bytes]]:
    """Yield path and content of every file of the copy except the exercises."""
    for name in _list_files():
        if _is_copied(name) and not _LEFT_OUT.fullmatch(name):
            yield name, (paths.ROOT / name).read_bytes()
    for source in list_sources():
        yield (
            f"notebooks/{find_notebook(source).name}",
            read_built(source, committed_first=True).encode(),
        )
        yield (
            f"{paths.RELEASED.relative_to(paths.ROOT)}/{source.name}",
            step_cells.extract(source).encode(),
        )
    for name, text in exercises.generate().items():
        yield f"{paths.RELEASED.relative_to(paths.ROOT)}/{name}", text.encode()
    yield "Makefile", _cut_makefile((paths.ROOT / "Makefile").read_text(encoding="utf-8")).encode()
    yield "README.md", _README.read_text(encoding="utf-8").replace("VERSION", _describe()).encode()


def _is_copied(name: str) -> bool:
    return any(Path(name).is_relative_to(place) for place in COPIED)


def _list_files() -> list[str]:
    """Return the paths of the course's files from its root: tracked and new files; without git, all
    files except caches."""
    listing = _ask_git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if listing is not None:
        return sorted(
            name for name in listing.split("\0") if name and (paths.ROOT / name).is_file()
        )
    places = [paths.ROOT / name for name in COPIED]
    files = [
        file
        for place in places
        for file in (place.rglob("*") if place.is_dir() else [place])
        if file.is_file()
    ]
    return sorted(
        str(file.relative_to(paths.ROOT)) for file in files if "__pycache__" not in file.parts
    )


def _describe() -> str:
    """Return version and commit: "version 0.1.0, commit 1a2b3c4"."""
    commit = _ask_git("describe", "--always", "--dirty=, with changes")
    return f"version {course_lib.__version__}" + (f", commit {commit.strip()}" if commit else "")


def _ask_git(*arguments: str) -> str | None:
    """Run git in the course's folder and return its output; None if the folder is no checkout, git
    is not installed, or git fails."""
    if not (paths.ROOT / ".git").exists() or shutil.which("git") is None:
        return None
    process = subprocess.run(
        ["git", *arguments], cwd=paths.ROOT, capture_output=True, text=True, check=False
    )
    return process.stdout if process.returncode == 0 else None


def _cut_makefile(text: str) -> str:
    """Return the Makefile without `test` and without the commands whose help says that they are for
    authors or instructors."""
    parts = text.split("\n\n")
    left_out = [part for part in parts if _NOT_FOR_LEARNERS.search(part)]
    names = {name for part in left_out for name in re.findall(r"^([a-z-]+):", part, re.MULTILINE)}
    makefile = _THEIR_SETTINGS.sub("", "\n\n".join(part for part in parts if part not in left_out))
    return (
        re.sub(
            r"^\.PHONY: (.*)$", lambda match: _drop(match, names), makefile, flags=re.MULTILINE
        ).rstrip("\n")
        + "\n"
    )


def _drop(phony: re.Match[str], names: set[str]) -> str:
    return " ".join([".PHONY:", *(name for name in phony[1].split() if name not in names)])
