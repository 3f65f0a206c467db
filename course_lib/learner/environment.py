"""The environment of a course folder: its ``.venv`` with the pinned versions, or a Python that
already has the course's packages."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

from course_lib.base import paths
from course_lib.base.errors import EnvironmentFault
from course_lib.base.installation import find_python, find_version
from course_lib.base.paths import DISTRIBUTION
from course_lib.base.translation import gettext as _

_NEEDED = re.compile(r"""([A-Za-z0-9._-]+).*;\s*extra\s*==\s*['"]lab['"]""")


def runs_here(folder: Path) -> bool:
    """Return True if this Python belongs to the folder's own environment."""
    return Path(sys.prefix).resolve() == (folder / ".venv").resolve()


def list_missing() -> list[str]:
    """Return the packages that lessons and checks need and this Python lacks."""
    needed = filter(None, map(_NEEDED.match, importlib.metadata.requires(DISTRIBUTION) or []))
    return [match[1] for match in needed if find_version(match[1]) is None]


def make_environment(folder: Path) -> Path:
    """Make or update ``.venv`` in a course folder with the pinned versions; return its Python. The
    set-up prints what it downloads.

    Raises: EnvironmentFault if it fails; the set-up has printed the reason.
    """
    settings = {"COURSE_FOLDER": str(folder), "COURSE_PACKAGE": _name_package()}
    command = [sys.executable, str(paths.FILES / "tools" / "bootstrap.py")]
    if subprocess.run(command, env=os.environ | settings, check=False).returncode:
        raise EnvironmentFault(
            _("the environment was not made: the reason is above. The same command starts again.")
        )
    python = find_python(folder)
    assert python is not None, "the set-up ended well"
    return python


def complete_this_environment() -> None:
    """Install the newest version of each package that this Python lacks, but leave its PyTorch and
    Triton as they are.

    Raises: EnvironmentFault if it fails; pip has printed the reason.
    """
    if not (missing := list_missing()):
        return
    pins = [f"{name}=={version}" for name in ("torch", "triton") if (version := find_version(name))]
    command = [sys.executable, "-m", "pip", "install", "--quiet", *pins, *missing]
    if subprocess.run(command, check=False).returncode:
        raise EnvironmentFault(
            _(
                "pip could not install what {python} lacks ({packages}): its words are above."
                " Without `--newest`, `course lab` makes an environment with pinned versions."
            ).format(python=sys.executable, packages=", ".join(missing))
        )


def upgrade_package() -> bool:
    """Install the newest version of the course in this Python. Return False if this Python has no
    pip, such as one that `uvx` made.

    Raises: EnvironmentFault if it fails; pip has printed the reason.
    """
    if importlib.util.find_spec("pip") is None:
        return False
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--upgrade",
        "--no-deps",
        DISTRIBUTION,
    ]
    if subprocess.run(command, check=False).returncode:
        raise EnvironmentFault(
            _(
                "pip could not fetch a newer course: its words are above. Your files are as "
                "they were."
            )
        )
    return True


def _name_package() -> str:
    """Return the requirement by which pip installs this same package: its version in the index, or
    the file or address of its origin."""
    origin = paths.read_origin()
    if not origin:
        return f"{DISTRIBUTION}[lab]=={importlib.metadata.version(DISTRIBUTION)}"
    address = origin["url"]
    if (version_control := origin.get("vcs_info")) is not None:
        address = f"{version_control['vcs']}+{address}@{version_control['commit_id']}"
    return f"{DISTRIBUTION}[lab] @ {address}"
