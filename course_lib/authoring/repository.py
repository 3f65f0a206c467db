"""The address of the course's repository, if it is known, and the services that open the course
from there in a browser."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from urllib.parse import quote

from course_lib.base import paths
from course_lib.base.paths import DISTRIBUTION

FIRST, HOSTED = "notebooks/00_start_here.ipynb", "notebooks/hosted/00_start_here.ipynb"
_GITHUB = re.compile(r"https://github\.com/([^/]+/[^/]+?)(?:\.git)?")
# the button that each service offers for a README
_BADGES = {
    "Codespaces": "https://github.com/codespaces/badge.svg",
    "Binder": "https://mybinder.org/badge_logo.svg",
    "Colab": "https://colab.research.google.com/assets/colab-badge.svg",
    "Kaggle": "https://kaggle.com/static/images/open-in-kaggle.svg",
}


_PYPROJECT = paths.ROOT / "pyproject.toml"


def is_published() -> bool:
    """Return whether the package is on the index of packages: ``published`` of
    ``[tool.course]``."""
    return tomllib.loads(_PYPROJECT.read_text(encoding="utf-8"))["tool"]["course"]["published"]


# commands that make a course folder and open lesson 00 on a machine with uv; in a clone, until the
# package is published
START = (
    (f"uvx {DISTRIBUTION} my-course", "cd my-course", f"uvx {DISTRIBUTION} lab")
    if is_published()
    else ("make lab",)
)


def read_repository(pyproject: Path = _PYPROJECT) -> str:
    """Return ``Repository`` of ``[project.urls]``, without a slash at the end; empty if it is not
    there."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    return project.get("urls", {}).get("Repository", "").rstrip("/")


def list_launches(repository: str, notebook: str = FIRST) -> dict[str, str]:
    """Return the address at which each service opens the course. It is empty unless the repository
    is on GitHub.

    Binder opens ``notebook``. Colab and Kaggle open lesson 00 with the cell that sets the course
    up.
    """
    if (match := _GITHUB.fullmatch(repository)) is None:
        return {}
    hosted = f"{match[1]}/blob/main/{HOSTED}"
    return {
        "Codespaces": f"https://codespaces.new/{match[1]}?quickstart=1",
        "Binder": (
            f"https://mybinder.org/v2/gh/{match[1]}/HEAD?urlpath={quote(f'lab/tree/{notebook}', safe='')}"  # noqa: E501
        ),
        "Colab": f"https://colab.research.google.com/github/{hosted}",
        "Kaggle": f"https://kaggle.com/kernels/welcome?src=https://github.com/{hosted}",
    }


def write_badges(repository: str) -> str:
    """Return the services' buttons as Markdown, each with its link, on one line."""
    launches = list_launches(repository)
    return " ".join(
        f"[![Open in {name}]({_BADGES[name]})]({address})" for name, address in launches.items()
    )
