"""Run the cells of a notebook in this process; print as JSON what each cell printed, and the error
that it ended in.

python run_lesson.py NOTEBOOK
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output


def run_cell(shell: Any, code: str) -> dict[str, str]:
    with capture_output() as captured:
        result = shell.run_cell(code, store_history=True)
    error = result.error_before_exec or result.error_in_exec
    return {
        "printed": captured.stdout,
        "error": "" if error is None else f"{type(error).__name__}: {error}",
    }


if __name__ == "__main__":
    notebook = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    shell = InteractiveShell.instance()
    codes = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    print(json.dumps([run_cell(shell, code) for code in codes]))
