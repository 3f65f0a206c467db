"""Whether the course runs in a browser tab: Python in WebAssembly, one process, no threads, 32-bit addresses."""

from __future__ import annotations

import sys
from pathlib import Path

IN_TAB = sys.platform == "emscripten"
FOLDER = Path(
    "/drive"
)  # where JupyterLite's kernel finds the files of the browser, and where a tab has its course folder
