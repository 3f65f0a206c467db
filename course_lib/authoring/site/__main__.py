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

from course_lib.authoring.site.build import build
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
    out = arguments.out.resolve()
    others = LANGUAGES.keys() - {"en"} if choose_language() == "en" else set()
    if others:
        os.environ[LANGUAGE_SWITCH] = "yes"
    places = {language: out.with_name(f"{out.name}-{language}") for language in others}
    # a language holds for a whole process
    command = [sys.executable, "-m", "course_lib.authoring.site", *arguments.lessons]
    command += ["--pyodide", str(arguments.pyodide)] if arguments.pyodide else []
    running = [
        subprocess.Popen(
            [*command, "--out", str(place)],
            env=os.environ | {VARIABLE: language},
            stdout=subprocess.DEVNULL,
        )
        for language, place in places.items()
    ]
    try:
        pages = build(out, arguments.lessons, pyodide=arguments.pyodide)
    except CourseError as problem:
        print(f"course: {problem}", file=sys.stderr)
        return 1
    finally:
        failed = any([process.wait() for process in running])
    if failed:
        return 1
    for language, place in places.items():
        shutil.move(place, out / language)
    size = sum(file.stat().st_size for file in arguments.out.rglob("*") if file.is_file())
    print(
        f"course: {len(pages)} pages, {size / 1e6:.1f} MB, in {time.monotonic() - started:.0f} s"
        f" ({sum(os.times()[:4]):.0f} s of processor time). Open"
        f" {paths.shown(arguments.out.resolve() / 'index.html')} in a browser."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
