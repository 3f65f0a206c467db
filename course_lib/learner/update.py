"""``course update``: a newer course that keeps everything a learner changed.

Git alone refuses to update over a changed file. So the learner's files are first copied to
``.course/kept/`` and synced; then git updates the tree, and the exercises are put back exactly as
they were. A notebook that was changed or run gets the new version, if there is one; the learner's
copy stays in ``.course/kept/``. A file of the course that the learner deleted comes back.
"""

from __future__ import annotations

import subprocess
from datetime import datetime
from pathlib import Path

from course_lib import catalog
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.files import keep_copy, write_atomic
from course_lib.base.translation import gettext as _
from course_lib.catalog.exercise import STEM
from course_lib.catalog.texts import is_unsolved

_MINE = ("exercises", "notebooks")


def update(root: Path = paths.ROOT) -> list[str]:
    """Fetch and fast-forward; return one line for each thing done.

    Raises: CourseError if this is no git checkout, other files were changed, or git cannot
    fast-forward. The learner's files are then as they were.
    """
    changed = _list_changed(root)
    before = _git(root, "rev-parse", "HEAD").strip()
    now = datetime.now()
    data_by_name = {
        name: (root / name).read_bytes()
        for name in changed
        if (root / name).exists() and not _is_unsolved(root / name)
    }
    copies = {name: keep_copy(root / name, root / ".course" / "kept", now) for name in data_by_name}
    deleted = [name for name in changed if not (root / name).exists()]
    tracked = set(_git(root, "ls-tree", "-r", "-z", "--name-only", "HEAD").split("\0"))
    try:
        # HEAD has no version of a file that was only added to the index
        if restored := [name for name in changed if name in tracked]:
            _git(root, "checkout", "HEAD", "--", *restored)
        _git(root, "pull", "--ff-only")
        moved = set(_list_tracked_changes(root, before, "HEAD"))
    except BaseException:  # BaseException includes Ctrl-C
        _put_back(root, data_by_name, deleted)
        raise
    notes = [
        _give_back(root, name, data, name in moved, copies[name])
        for name, data in data_by_name.items()
    ]
    notes += [
        _("{name}: was deleted; it is the course's again").format(name=name)
        for name in deleted
        if (root / name).exists()
    ]
    notes.append(
        _("{count} files of the course changed.").format(count=len(moved))
        if moved
        else _("The course is up to date.")
    )
    return notes


def _list_changed(root: Path) -> list[str]:
    """Return the learner's files that differ from git's.

    Raises: CourseError if this checkout cannot be updated.
    """
    if not (root / ".git").exists():
        raise CourseError(
            _(
                "{root} is no git checkout, so it cannot be updated in place. Download the "
                "course anew and copy your exercises/ over."
            ).format(root=root)
        )
    changed = sorted({*_list_tracked_changes(root, "HEAD"), *_list_run(root)})
    if foreign := [name for name in changed if Path(name).parts[0] not in _MINE]:
        raise CourseError(
            _(
                "these files of the course itself were changed: {files}. Commit them, or `git"
                " restore` them, then update again."
            ).format(files=", ".join(foreign))
        )
    if (obstacle := _find_no_upstream(root)) is not None:
        raise CourseError(_("{obstacle} Your files are as they were.").format(obstacle=obstacle))
    return changed


def _is_unsolved(path: Path) -> bool:
    """Return True for an exercise that nobody began. It differs from git's version by its language,
    and the next `course lab` writes it in that language again."""
    return any(
        path.stem == exercise.file and is_unsolved(exercise, path.read_bytes())
        for exercise in catalog.exercises().values()
    )


def _give_back(root: Path, name: str, data: bytes, moved: bool, copy: Path) -> str:
    """Put the learner's file back, unless the course has a new notebook of this name; return a line
    that says where the file is."""
    renewed = moved and (root / name).exists()
    if (now_called := None if renewed else _find_renumbered(root / name)) is not None:
        write_atomic(now_called, data)
        return _("{name}: yours, as it was; the course calls it {new_name} now").format(
            name=name, new_name=now_called.relative_to(root)
        )
    if renewed and name.endswith(".ipynb"):
        return _("{name}: new version; yours is kept as {copy}").format(
            name=name, copy=paths.shown(copy)
        )
    write_atomic(root / name, data)
    note = (
        _("; the course has a new one, `course reset {id}` takes it").format(
            id=Path(name).stem[2:5]
        )
        if renewed
        else ""
    )
    return _("{name}: yours, as it was{note}").format(name=name, note=note)


def _find_no_upstream(root: Path) -> str | None:
    """Return a sentence that says why git does not know from where to update this clone, and what
    to do; None if git knows."""
    branch = _ask_git(root, "symbolic-ref", "--quiet", "--short", "HEAD")
    remotes = _git(root, "remote").split()
    if not branch:
        return _(
            "this clone stands on a single commit and on no branch, so there is nothing "
            "to update it from. `git branch -a` lists the branches, `git switch NAME` "
            "takes one (`main`, most often); then update again."
        )
    if not remotes:
        return _(
            "this clone does not know where it came from. `git remote add origin "
            "ADDRESS`, with the address from which you got the course, then `git fetch "
            "origin` and `git branch --set-upstream-to=origin/{branch}` tell it; then "
            "update again."
        ).format(branch=branch)
    if not _ask_git(root, "rev-parse", "--abbrev-ref", "--symbolic-full-name", "@{upstream}"):
        return _(
            "the branch {branch} is yours alone: git does not know which branch of "
            "{remote} it follows. `git switch main` goes back to the course's own, or "
            "`git branch --set-upstream-to={remote}/main` has {branch} follow it; then"
            " update again."
        ).format(branch=branch, remote=remotes[0])
    return None


def _find_renumbered(path: Path) -> Path | None:
    """Return the exercise file that replaces the one at ``path`` under a new number and the same
    title; None if the number is unchanged."""
    named = STEM.fullmatch(path.stem)
    if named is None or path.parent.name != "exercises" or path.exists():
        return None
    candidates = sorted(path.parent.glob(f"ex???{path.name.removeprefix(f'ex{named[1]}')}"))
    return candidates[0] if len(candidates) == 1 else None


def _put_back(root: Path, data_by_name: dict[str, bytes], deleted: list[str]) -> None:
    for name, data in data_by_name.items():
        write_atomic(root / name, data)
    for name in deleted:
        (root / name).unlink(missing_ok=True)


def _list_tracked_changes(root: Path, *commits: str) -> list[str]:
    """Return the tracked files that differ. A renamed file counts as two: one deleted, one
    added."""
    return [
        name
        for name in _git(root, "diff", "--name-only", "--no-renames", "-z", *commits).split("\0")
        if name
    ]


def _list_run(root: Path) -> list[str]:
    """Return the notebooks that differ from git's version, including those that were only run,
    which the filter hides from git."""
    tracked = [
        line.split(maxsplit=3)[2:]
        for line in _git(root, "ls-tree", "-z", "HEAD", "notebooks/").split("\0")
        if line
    ]
    present = [
        (committed, name)
        for committed, name in tracked
        if name.endswith(".ipynb") and (root / name).is_file()
    ]
    now = (
        _git(root, "hash-object", "--no-filters", "--", *(name for _, name in present)).split()
        if present
        else []
    )
    return [
        name for (committed, name), hashed in zip(present, now, strict=True) if committed != hashed
    ]


def _ask_git(root: Path, *arguments: str) -> str:
    """Return git's output; "" if git fails."""
    process = _run_git(root, *arguments)
    return "" if process.returncode else process.stdout.strip()


def _git(root: Path, *arguments: str) -> str:
    process = _run_git(root, *arguments)
    if process.returncode:
        raise CourseError(
            _("{explanation} Your files are as they were.").format(
                explanation=_explain(
                    root, arguments, process.stderr.strip() or process.stdout.strip()
                )
            )
        )
    return process.stdout


def _explain(root: Path, arguments: tuple[str, ...], git_output: str) -> str:
    """Return a message that says why git failed and what to do; git's own hints for experts are
    left out."""
    fatal = (
        " ".join(line for line in git_output.splitlines() if line.startswith(("fatal:", "error:")))
        or git_output
    )
    if "fast-forward" in git_output or "divergent" in git_output:
        return _(
            "this clone has commits of its own, so the new course cannot just follow. "
            "`git log @{upstream}..` lists them, `git rebase @{upstream}` puts them after"
            " the new ones; then update again."
        )
    if "could not read from remote" in git_output.lower() or "unable to access" in git_output:
        address = _ask_git(root, "remote", "get-url", "origin") or "its address"
        return _(
            "{address} cannot be reached, from which this clone gets the course "
            "({fatal}). Look at the network and at the address (`git remote -v`)."
        ).format(address=address, fatal=fatal)
    return f"`git {' '.join(arguments[:2])}` failed: {fatal}."


def _run_git(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", "-C", str(root), *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
