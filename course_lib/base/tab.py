"""Whether the course runs in a browser tab: Python in WebAssembly, one process, no threads, 32-bit addresses."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

IN_TAB = sys.platform == "emscripten"
# where JupyterLite's kernel finds the files of the browser, and where a tab has its course folder
FOLDER = Path("/drive")
# the site's archive with Matplotlib and what it needs, beside Pyodide: a quarter of what a lesson loads, and no kernel needs it
LATER, LATER_FILE = "matplotlib", "later.zip"


class _LaterFinder:
    """Fetches Matplotlib from the site when it is first imported. An import waits, so the request does, too."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname != LATER:
            return
        import importlib
        import io
        import site
        import zipfile

        sys.meta_path.remove(self)
        js, pyodide = importlib.import_module("js"), importlib.import_module("pyodide_js")
        request = js.XMLHttpRequest.new()
        request.open("GET", pyodide._api.config.indexURL + LATER_FILE, False)
        request.responseType = "arraybuffer"
        request.send()
        if request.status != 200:
            sys.meta_path.insert(0, self)
            raise ImportError(f"this site did not give out {LATER_FILE} (status {request.status}). Run the cell again, or reload the page.")
        with zipfile.ZipFile(io.BytesIO(request.response.to_bytes())) as archive:
            archive.extractall(site.getsitepackages()[0])
        importlib.invalidate_caches()


def prepare() -> None:
    """Change in the process of a tab what JupyterLite's kernel has set in a way that the course cannot use, and let Matplotlib come later."""
    os.umask(0o022)  # with the kernel's 0o777 a new file could not be read again
    sys.meta_path.insert(0, _LaterFinder())
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)  # it warns in a cell that it looks for fonts
