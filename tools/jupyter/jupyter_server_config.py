"""JupyterLab of a checkout: a lesson that was only opened and run stays unchanged for git."""

import shutil
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_FILTER = _ROOT / "course_lib" / "learner" / "notebook_filter.py"


def note_saved(model, os_path, contents_manager):
    file = Path(os_path)
    if file.parent == _ROOT / "notebooks" and file.suffix == ".ipynb":
        subprocess.run([sys.executable, "-I", str(_FILTER), "--saved", os_path], check=False)


if (_ROOT / ".git").exists() and shutil.which("git"):
    c.FileContentsManager.post_save_hook = note_saved  # noqa: F821  # pyright: ignore[reportUndefinedVariable]
