"""The differences of a browser tab: Python in WebAssembly with one process, no threads and 32-bit
addresses."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from pathlib import Path

IN_TAB = sys.platform == "emscripten"
# the folder in which JupyterLite's kernel shows the browser's files; in a tab it is the course
# folder
FOLDER = Path("/drive")
# Matplotlib and its dependencies: an archive of its own beside Pyodide, because it is a large part
# of the download and no kernel needs it.
LATER, LATER_FILE = "matplotlib", "later.zip"


class _LaterFinder:
    """Import hook that fetches Matplotlib from the site at its first import. The request blocks,
    because an import does."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname != LATER:
            return
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
            raise ImportError(
                f"this site did not give out {LATER_FILE} (status {request.status}). Run the cell"
                " again, or reload the page."
            )
        with zipfile.ZipFile(io.BytesIO(request.response.to_bytes())) as archive:
            archive.extractall(site.getsitepackages()[0])
        importlib.invalidate_caches()


def describe() -> str:
    """Return what a reader should know of this tab before the first kernel runs."""
    ml_dtypes, numpy = importlib.import_module("ml_dtypes"), importlib.import_module("numpy")
    words = "in a browser tab; your_work.ipynb saves your files as a zip"
    return f"{words}; fp16 stands in for bf16" if ml_dtypes.bfloat16 is numpy.float16 else words


def prepare() -> None:
    """Replace settings of JupyterLite's kernel that the course cannot use, choose the language, and
    postpone the download of Matplotlib.

    The course of a tab has the translations into its own language alone; one in English has none.
    """
    os.umask(0o022)  # JupyterLite's umask is 0o777: a new file could not be read again
    for catalogs in sorted((Path(__file__).parents[1] / "locale").glob("*/")):
        os.environ.setdefault("COURSE_LANG", catalogs.name)
    sys.meta_path.insert(0, _LaterFinder())
    # it would warn in a cell that it builds its font list
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
