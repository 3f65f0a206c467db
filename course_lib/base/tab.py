"""Whether the course runs in a browser tab: Python in WebAssembly, one process, no threads, 32-bit addresses."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

IN_TAB = sys.platform == "emscripten"
# where JupyterLite's kernel finds the files of the browser, and where a tab has its course folder
FOLDER = Path("/drive")


def prepare() -> None:
    """Change in the process of a tab what JupyterLite's kernel has set in a way that the course cannot use."""
    os.umask(0o022)  # with the kernel's 0o777 a new file could not be read again
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)  # it warns in a cell that it looks for fonts
