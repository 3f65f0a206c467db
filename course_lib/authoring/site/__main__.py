"""``python -m course_lib.authoring.site``: the whole site in build/site, in every language; with
numbers (03 08) only those lessons."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from course_lib.authoring import compiler_answers, tab
from course_lib.authoring.site.build import TabParts, build
from course_lib.authoring.site.html import LANGUAGE_SWITCH
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.translation import LANGUAGES, VARIABLE, choose_language


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m course_lib.authoring.site", description=__doc__
    )
    parser.add_argument(
        "lessons", nargs="*", metavar="NN", help="lessons; all of them if none is named"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=paths.ROOT / "build" / "site",
        help="the folder of the site (build/site)",
    )
    parser.add_argument(
        "--pyodide",
        type=Path,
        help=(
            "a folder with a Pyodide distribution: the lessons then run in a browser tab, in"
            " OUT/tab"
        ),
    )
    arguments = parser.parse_args()
    started = time.monotonic()
    try:
        pages = _build(arguments.out, arguments.lessons, arguments.pyodide)
    except CourseError as problem:
        print(f"course: {problem}", file=sys.stderr)
        return 1
    size = sum(file.stat().st_size for file in arguments.out.rglob("*") if file.is_file())
    print(
        f"course: {len(pages)} pages, {size / 1e6:.1f} MB, in {time.monotonic() - started:.0f} s"
        f" ({sum(os.times()[:4]):.0f} s of processor time). Open"
        f" {paths.shown(arguments.out.resolve() / 'index.html')} in a browser."
    )
    return 0


def _build(out: Path, lessons: list[str], pyodide: Path | None) -> list[Path]:
    """Build the site in every language, and return the pages of this process's language.

    Raises: CourseError if a site cannot be built.
    """
    in_tab = None
    if pyodide:
        distribution = tab.find_distribution(pyodide)  # before all that takes time
        in_tab = TabParts(distribution, compiler_answers.collect(tab.list_lessons()))
    out = out.resolve()
    other_languages = LANGUAGES.keys() - {"en"} if choose_language() == "en" else set()
    if other_languages:
        os.environ[LANGUAGE_SWITCH] = "yes"
    places = {language: out.with_name(f"{out.name}-{language}") for language in other_languages}
    # a language holds for a whole process
    command = [
        sys.executable,
        "-m",
        "course_lib.authoring.site",
        *lessons,
        *(["--pyodide", str(pyodide)] if pyodide else []),
    ]
    running = [
        subprocess.Popen(
            [*command, "--out", str(place)],
            env=os.environ | {VARIABLE: language},
            stdout=subprocess.DEVNULL,
        )
        for language, place in places.items()
    ]
    try:
        pages = build(out, lessons, in_tab=in_tab)
    finally:
        failed = any([process.wait() for process in running])
    if failed:
        raise CourseError(
            f"the site in {' or '.join(places)} could not be built; it said why above."
        )
    for language, place in places.items():
        shutil.move(place, out / language)
    return pages


if __name__ == "__main__":
    sys.exit(main())
