"""``python -m course_lib.authoring.site``: the whole site in build/site; with numbers (03 08) only those lessons."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from course_lib.authoring.site.build import build
from course_lib.base import paths
from course_lib.base.errors import CourseError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m course_lib.authoring.site", description=__doc__)
    parser.add_argument("lessons", nargs="*", metavar="NN", help="lessons; all of them if none is named")
    parser.add_argument("--out", type=Path, default=paths.ROOT / "build" / "site", help="the folder of the site (build/site)")
    parser.add_argument(
        "--pyodide", type=Path, help="a folder with a Pyodide distribution: the lessons then run in a browser tab, in OUT/tab"
    )
    arguments = parser.parse_args()
    started = time.monotonic()
    try:
        pages = build(arguments.out.resolve(), arguments.lessons, pyodide=arguments.pyodide)
    except CourseError as problem:
        print(f"course: {problem}", file=sys.stderr)
        return 1
    size = sum(file.stat().st_size for file in arguments.out.rglob("*") if file.is_file())
    print(
        f"course: {len(pages)} pages, {size / 1e6:.1f} MB, in {time.monotonic() - started:.0f} s ({sum(os.times()[:4]):.0f} s of processor time). "
        f"Open {paths.shown(arguments.out.resolve() / 'index.html')} in a browser."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
