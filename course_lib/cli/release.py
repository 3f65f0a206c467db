"""What ``course release`` does."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from course_lib.base.errors import EnvironmentFault


def release(folder: Path) -> int:
    """Make the learners' copy and say what it is.

    Raises: CourseError if it cannot be made; EnvironmentFault if the authors' tools are not installed.
    """
    if importlib.util.find_spec("jupytext") is None:
        raise EnvironmentFault(
            "a release is built with the authors' tools, which are not here. `make dev` installs them."
        )
    from course_lib.authoring import release as releasing

    print(releasing.release(folder))
    return 0
