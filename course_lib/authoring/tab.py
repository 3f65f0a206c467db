"""Build the course as a site of notebooks that run in a browser tab: JupyterLite, Pyodide, and the
packages of the course.

``python -m course_lib.authoring.tab PYODIDE OUT``: PYODIDE is a folder with a Pyodide distribution
(its core, NumPy and what IPython needs), OUT the folder of the site. Everything that a reader's
browser asks for comes from OUT.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from course_lib import catalog
from course_lib.authoring.compiler_answers import Answers, collect
from course_lib.authoring.pyodide import (
    CORE,
    LOCK,
    STANDIN_OF,
    STANDINS,
    Distribution,
    read_distribution,
)
from course_lib.authoring.wheel import build_wheel
from course_lib.base import paths, tab
from course_lib.base.errors import CourseError
from course_lib.base.translation import choose_language
from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.catalog.texts import make_learners_text
from course_lib.lessons.translated import read_translated

# packages that the kernel of JupyterLite loads at its start, and packages that the course imports
NEEDED = (
    "numpy",
    "ipython",
    "micropip",
    "packaging",
    "sqlite3",
    "matplotlib-inline",
    "pygments",
    "six",
    "traitlets",
    "ml-dtypes",
)
# The kernel of JupyterLite loads these packages at its start, but no lesson uses them. The site has
# empty ones, which load faster.
EMPTY = ("ssl",)
# parts of Matplotlib and its dependencies that no lesson needs
_WITHOUT_LATER = ("fontTools/", "matplotlib/tests/", "matplotlib/mpl-data/sample_data/", "pytz/")
# packages in pure Python, which are taken from the environment of the build, and the packages that
# each of them needs
PURE = {
    "ipywidgets": ("comm", "ipython", "traitlets"),
    "comm": ("traitlets",),
    "rich": ("markdown-it-py", "pygments"),
    "markdown-it-py": ("mdurl",),
    "mdurl": (),
    "sympy": ("mpmath",),
    "mpmath": (),
}
# the packages that read_course, read_triton and read_torch make
_COURSE = ("norm-kernels-course", "triton", "torch")
# lessons that can only be read in a tab, with what the site says of each
NOT_IN_TAB = {
    "14": N_(
        "This lesson does not run in a browser tab: it trains a model with PyTorch, and a tab has"
        " no PyTorch."
    ),
    "15": N_(
        "This lesson does not run in a browser tab: it measures kernels on a GPU, and a tab cannot"
        " reach one."
    ),
}
_FILES = "files.json"
_WITHOUT = (
    "tests/",
    "backends/amd/",
    "backends/nvidia/",
    "experimental/",
    "instrumentation/",
    "plugins/",
    "profiler/",
)
# the date of every file in an archive, so that the same sources give the same bytes
_DATE = (2020, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Package:
    """A wheel of the site: its files by name, the names of its top-level modules, and the packages
    that it needs."""

    name: str
    version: str
    files: dict[str, bytes]
    imports: tuple[str, ...]
    depends: tuple[str, ...]

    @property
    def file_name(self) -> str:
        return f"{self.name.replace('-', '_')}-{self.version}-py3-none-any.whl"

    def write(self, folder: Path) -> dict[str, Any]:
        """Write the wheel into ``folder``. Returns: its entry for Pyodide's lock file."""
        info = f"{self.name.replace('-', '_')}-{self.version}.dist-info"
        described = {
            f"{info}/METADATA": (
                f"Metadata-Version: 2.1\nName: {self.name}\nVersion: {self.version}\n".encode()
            ),
            f"{info}/WHEEL": (
                b"Wheel-Version: 1.0\nGenerator: course\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            ),
        }
        with zipfile.ZipFile(
            folder / self.file_name, "w", zipfile.ZIP_DEFLATED, compresslevel=9
        ) as archive:
            for name, data in sorted((self.files | described).items()):
                archive.writestr(zipfile.ZipInfo(name, _DATE), data, zipfile.ZIP_DEFLATED)
        return {
            "name": self.name, "version": self.version, "file_name": self.file_name,
            "install_dir": "site", "package_type": "package",
            "sha256": hashlib.sha256((folder / self.file_name).read_bytes()).hexdigest(),
            "imports": list(self.imports),
            "depends": list(self.depends), "unvendored_tests": False,
        }  # fmt: skip


def read_course(answers: Answers) -> Package:
    """Return the course's wheel with the compiler's recorded ``answers``, and without the built
    notebooks: the site has those as files.

    Of the translations it has those into the chosen language alone, by which the tab knows its
    language.
    """
    catalogs = f"course_lib/locale/{choose_language()}/"
    with (
        tempfile.TemporaryDirectory() as folder,
        zipfile.ZipFile(build_wheel(Path(folder))) as wheel,
    ):
        files: dict[str, bytes] = {
            name: wheel.read(name)
            for name in wheel.namelist()
            if not name.endswith(".ipynb")
            and ".dist-info/" not in name
            and (not name.endswith(".po") or name.startswith(catalogs))
        }
    files["course_lib/compiler/recorded.json"] = json.dumps(answers).encode()
    depends = (
        "ipython",
        "ipywidgets",
        "ml_dtypes",
        "numpy",
        "rich",
        "torch",
        "triton",
        *_list_translators(),
    )
    return Package(
        "norm-kernels-course",
        metadata.version("norm-kernels-course"),
        files,
        ("course_lib",),
        depends,
    )


def _list_translators() -> tuple[str, ...]:
    """Return the packages that a tab needs for the chosen language."""
    return () if choose_language() == "en" else ("polib",)


def read_triton() -> Package:
    """Return Triton's Python files with the stand-in for its native library. Its compiler's
    backends and tools are left out."""
    files = _read_package("triton")
    files["triton/_C/libtriton.py"] = (STANDINS / "libtriton.py").read_bytes()
    # Triton's code generator, which says what a kernel may contain, uses two functions of Gluon,
    # Triton's other language.
    files["triton/experimental/gluon/language.py"] = (
        b"from triton.language import static_assert, static_print\n"
    )
    return Package("triton", metadata.version("triton"), files, ("triton",), ("numpy",))


def read_torch() -> Package:
    """Return the stand-in for PyTorch."""
    folder = STANDINS / "torch"
    files = {
        f"torch/{file.relative_to(folder)}": file.read_bytes() for file in folder.rglob("*.py")
    }
    return Package(
        "torch", f"{metadata.version('torch').split('+')[0]}", files, ("torch",), ("numpy",)
    )


def read_pure(name: str, depends: tuple[str, ...]) -> Package:
    """Return the package ``name``, which is pure Python, from the environment of the build, with
    its licence."""
    files, tops = {}, set()
    for file in metadata.files(name) or ():
        inside = ".dist-info" not in file.parts[0]
        if (
            file.parts[0] == ".."
            or "__pycache__" in file.parts
            or "tests" in file.parts
            or not Path(file.locate()).is_file()
        ):
            continue
        if inside or "LICEN" in file.name.upper():
            files[str(file) if inside else f"licences/{name}/{file.name}"] = Path(
                file.locate()
            ).read_bytes()
        if inside:
            tops.add(file.parts[0].removesuffix(".py"))
    return Package(name, metadata.version(name), files, tuple(sorted(tops)), depends)


def _read_package(name: str) -> dict[str, bytes]:
    spec = util.find_spec(name)
    assert spec is not None and spec.origin is not None, name
    folder = Path(spec.origin).parent
    files = {str(file.relative_to(folder)): file for file in folder.rglob("*.py")}
    return {
        f"{name}/{short}": file.read_bytes()
        for short, file in files.items()
        if not short.startswith(_WITHOUT)
    }


def read_standin(name: str) -> Package:
    """Return the stand-in for a package that the distribution of Pyodide lacks."""
    file = STANDIN_OF[name]
    return Package(name, "0", {file.name: file.read_bytes()}, (file.stem,), ("numpy",))


def find_distribution(folder: Path) -> Distribution:
    """Read the Pyodide distribution in ``folder``, which takes no time.

    Raises: CourseError if a site cannot be built with it.
    """
    return read_distribution(
        folder, [*NEEDED, tab.LATER], [*_COURSE, *PURE, *_list_translators(), *EMPTY]
    )


def build_pyodide(pyodide: Distribution, out: Path, answers: Answers) -> None:
    """Copy the parts of a Pyodide distribution that the course needs to ``out``, and add the
    course's own packages to its lock file.

    ``answers`` are those of :func:`build_site`.
    """
    out.mkdir(parents=True, exist_ok=True)
    for name in CORE:
        shutil.copy(pyodide.folder / name, out / name)
    own_packages = [
        read_course(answers),
        read_triton(),
        read_torch(),
        *(read_pure(name, needs) for name, needs in PURE.items()),
        *(read_pure(name, ()) for name in _list_translators()),
        *(Package(name, "0", {}, (), ()) for name in EMPTY),
        *map(read_standin, pyodide.missing),
    ]
    entries = {package.name: package.write(out) for package in own_packages}
    kept_entries = pyodide.find_needed(
        [*NEEDED, *(need for package in own_packages for need in package.depends)], entries
    )
    for entry in kept_entries.values():
        shutil.copy(pyodide.folder / entry["file_name"], out / entry["file_name"])
    later = pyodide.find_needed([tab.LATER], entries)
    _write_later(
        pyodide.folder,
        [entry for name, entry in later.items() if name not in kept_entries],
        out / tab.LATER_FILE,
    )
    # The kernel of a notebook loads these packages in any case; the worker of a check loads only
    # the packages that the course depends on.
    entries["norm-kernels-course"]["depends"] += sorted(later.keys() & kept_entries.keys())
    (out / LOCK).write_text(json.dumps(pyodide.lock | {"packages": kept_entries | entries}))


def _write_later(pyodide: Path, entries: Iterable[dict], file: Path) -> None:
    """Write the archive that :mod:`course_lib.base.tab` fetches when Matplotlib is first
    imported."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for entry in entries:
            with zipfile.ZipFile(pyodide / entry["file_name"]) as wheel:
                for name in wheel.namelist():
                    if not name.startswith(_WITHOUT_LATER):
                        archive.writestr(
                            zipfile.ZipInfo(name, _DATE), wheel.read(name), zipfile.ZIP_DEFLATED
                        )


def list_lessons() -> list[Path]:
    """Return the notebooks of the lessons that run in a tab."""
    return [
        file for file in sorted(paths.NOTEBOOKS.glob("*.ipynb")) if file.name[:2] not in NOT_IN_TAB
    ]


def build_site(pyodide: Distribution, out: Path, answers: Answers) -> None:
    """Build the whole site into ``out``: JupyterLite with the lessons and the exercises as its
    files, and Pyodide.

    ``answers``: the compiler's answers for the lessons, from
    :func:`course_lib.authoring.compiler_answers.collect`."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        shutil.copytree(paths.NOTEBOOKS / "images", work / "files" / "notebooks" / "images")
        for lesson in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
            (work / "files" / "notebooks" / lesson.name).write_text(
                read_translated(lesson), "utf-8"
            )
        (work / "files" / "exercises").mkdir()
        # unsolved, even if the author has worked on exercises/
        for exercise in catalog.exercises().values():
            (work / "files" / "exercises" / f"{exercise.file}.py").write_text(
                make_learners_text(exercise), "utf-8"
            )
        (work / "files" / "your_work.ipynb").write_text(
            nbformat.writes(make_work_notebook()), "utf-8"
        )
        settings = {"jupyter-lite-schema-version": 0, "jupyter-config-data": SETTINGS}
        (work / "jupyter-lite.json").write_text(json.dumps(settings))
        print(
            f"course: the tab is made with {pyodide.jupyterlite[0]} and Pyodide {pyodide.version}",
            flush=True,
        )
        python = _make_environment(work / "environment", pyodide.jupyterlite)
        _run(
            [
                python,
                "-m",
                "jupyter",
                "lite",
                "build",
                "--lite-dir",
                work,
                "--contents",
                "files",
                "--output-dir",
                out.resolve(),
            ],
            work,
        )
    build_pyodide(pyodide, out / "pyodide", answers)
    _list_first_files(out)


def count_bytes(site: Path) -> int:
    """Return the bytes that a browser fetches from the ``site`` before the first cell of a lesson
    runs."""
    return sum(size for name, size in json.loads((site / _FILES).read_text()))


def _list_first_files(site: Path) -> None:
    """Write a list of [path, bytes] of the files that every lesson needs: Python, and all packages
    except those that are fetched later.

    A page of the site loads these files before it opens a lesson, and shows the progress.
    JupyterLab's files are not in the list: they are loaded before Python.
    """
    lock = json.loads((site / "pyodide" / "pyodide-lock.json").read_text())["packages"]
    names = [
        *CORE[2:],
        *(entry["file_name"] for name, entry in lock.items() if name not in ("sympy", "mpmath")),
    ]
    files = [site / "pyodide" / name for name in names]
    (site / _FILES).write_text(
        json.dumps([[str(file.relative_to(site)), file.stat().st_size] for file in files])
    )


def make_work_notebook() -> nbformat.NotebookNode:
    """Return the notebook with which a reader carries work from a tab to a machine, or back."""
    cells = [
        new_markdown_cell(
            _(
                "# Your work, out of this browser and into it\n\nYour exercises and your progress"
                " are in this browser's storage. They are gone when you delete the data of this"
                " site, and a browser that runs out of space may delete them.\n\n**Out:** run this"
                " cell. Then reload the file list on the left, right-click `my-course.zip` and"
                " choose Download. On a machine, `course import my-course.zip` takes it."
            )
        ),
        new_code_cell(
            "import course_lib\nfrom course_lib.learner import carrying\n\nprint(carrying.pack())"
        ),
        new_markdown_cell(
            _(
                "**In:** drag a `my-course.zip` into the file list on the left, beside this"
                " notebook. Then run this cell."
            )
        ),
        new_code_cell(
            "import course_lib\nfrom course_lib.learner import"
            ' carrying\n\nprint(*carrying.unpack(), sep="\\n")'
        ),
    ]
    return new_notebook(
        cells=cells,
        metadata={"kernelspec": {"name": "python", "display_name": "Python", "language": "python"}},
    )


def _make_environment(folder: Path, packages: Iterable[str]) -> Path:
    """Make an environment with the packages of JupyterLite, which pip installs.

    It has no other extension of JupyterLab, because a site contains all extensions of its
    environment.

    Returns: the path of the environment's Python.
    """
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    _run([python, "-m", "pip", "install", "-q", *packages], folder)
    return python


def _run(command: list[str | Path], folder: Path) -> None:
    """Run a command in ``folder``.

    Raises: CourseError with the end of what the command printed if it fails.
    """
    process = subprocess.run(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if process.returncode:
        raise CourseError(
            "the tab could not be built. This ended with an error:"
            f" {' '.join(map(str, command[1:]))}\n{process.stdout[-2000:]}"
        )


# The address of Pyodide is relative to a JupyterLite application's page, such as lab/index.html.
SETTINGS = {
    "appName": "LayerNorm and RMSNorm in Triton",
    "exposeAppInBrowser": True,
    "litePluginSettings": {
        "@jupyterlite/pyodide-kernel-extension:kernel": {
            "pyodideUrl": "../pyodide/pyodide.js",
            # These packages load in parallel with Python itself. Otherwise the kernel would load
            # them one after the other.
            "loadPyodideOptions": {
                "packages": [
                    "micropip",
                    "packaging",
                    "ssl",
                    "sqlite3",
                    "comm",
                    "ipython",
                    "norm-kernels-course",
                ]
            },
        }
    },
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pyodide", type=Path, help="a folder with a Pyodide distribution")
    parser.add_argument("out", type=Path, help="the folder of the site")
    arguments = parser.parse_args()
    try:
        pyodide = find_distribution(arguments.pyodide)
        build_site(pyodide, arguments.out, collect(list_lessons()))
    except CourseError as problem:
        print(f"course: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
