"""``course update``: a newer course, with everything a learner changed kept.

Git alone refuses to update over a changed file. So the learner's files are copied aside first (to ``.course/kept/``,
synced), the tree is brought up to date, and exercises go back exactly as they were. A notebook that was only run again
takes the new version; the learner's copy stays in ``.course/kept/``.
"""

from __future__ import annotations

import subprocess
from datetime import datetime
from pathlib import Path

from course_lib import paths
from course_lib.errors import CourseError
from course_lib.files import keep_copy, write_atomic

_MINE = ("exercises", "notebooks")


def update(root: Path = paths.ROOT) -> list[str]:
    """Fetch and fast-forward; one line about each thing done.

    Raises: CourseError if this is no git checkout, other files were changed, or git cannot fast-forward. The learner's
    files are then as they were.
    """
    if not (root / ".git").exists():
        raise CourseError(
            f"{root} is no git checkout, so it cannot be updated in place. Download the course anew and copy your exercises/ over."
        )
    changed = [line for line in _git(root, "diff", "--name-only", "HEAD").splitlines() if line]
    if foreign := [name for name in changed if Path(name).parts[0] not in _MINE]:
        raise CourseError(
            f"these files of the course itself were changed: {', '.join(foreign)}. Commit them, or `git restore` them, then update again."
        )
    before = _git(root, "rev-parse", "HEAD").strip()
    now = datetime.now()
    mine = {name: (root / name).read_bytes() for name in changed if (root / name).exists()}
    copies = {name: keep_copy(root / name, root / ".course" / "kept", now) for name in mine}
    said = []
    try:
        if changed:
            _git(root, "checkout", "HEAD", "--", *changed)
        _git(root, "pull", "--ff-only")
    except CourseError:
        _put_back(root, mine)
        raise
    moved = set(_git(root, "diff", "--name-only", before, "HEAD").splitlines())
    for name, data in mine.items():
        if name in moved and name.endswith(".ipynb"):
            said.append(f"{name}: new version; yours is kept as {paths.shown(copies[name])}")
            continue
        write_atomic(root / name, data)
        note = f"; the course has a new one, `course reset {Path(name).stem[2:5]}` takes it" if name in moved else ""
        said.append(f"{name}: yours, as it was{note}")
    said.append(f"{len(moved)} files of the course changed." if moved else "The course is up to date.")
    return said


def _put_back(root: Path, mine: dict[str, bytes]) -> None:
    for name, data in mine.items():
        write_atomic(root / name, data)


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise CourseError(
            f"`git {' '.join(arguments[:2])}` failed: {done.stderr.strip() or done.stdout.strip()}. Your files are as they were."
        )
    return done.stdout
