"""``python -m course_lib.authoring.strip``: the picture at the top of README, four views of the course, light and dark."""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from course_lib import catalog
from course_lib.authoring import mutants
from course_lib.authoring.stills import CHROMIUM_ARGUMENTS, find_chromium
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.grading.check import check
from course_lib.lessons.panel_page import BOX_STYLE, write_verdict

FOLDER = paths.ROOT / "docs" / "images"
_SHOWN = ("07a", "unmasked_variance")  # the wrong solution whose verdict is shown: exercise and mutant
_WIDTH = 1240  # CSS pixels
_THEMES = {  # of the page: paper, ink, and JupyterLab's names for the colours of a box
    "light": ("#ffffff", "#1a1a1a", ""),
    "dark": (
        "#111111",
        "#e6e6e6",
        "--jp-content-font-color1: #e6e6e6; --jp-content-font-color2: #b0b0b0; --jp-cell-editor-background: #1e1e1e; "
        "--jp-border-color1: #616161; --jp-error-color1: #ef5350; --jp-brand-color1: #64b5f6",
    ),
}
# a picture of a picture has nothing to press
_BARE = """() => {
    for (const host of document.querySelectorAll("[data-picture]")) {
        for (const part of host.stage.root.querySelectorAll(".controls, .caption")) part.style.display = "none";
    }
}"""
_PAGE = """<!doctype html><meta charset=utf-8><style>
body {{ margin: 0; padding: 12px; width: {width}px; box-sizing: border-box; background: {paper}; color: {ink}; font: 14px/1.45 sans-serif; {names} }}
main {{ display: grid; grid-template-columns: 1fr 1fr; gap: 18px 28px; }}
h2 {{ font-size: 17px; margin: 0 0 6px; }}
section {{ min-width: 0; max-height: 418px; overflow: hidden; }}
section:first-child {{ max-height: 384px; }}
</style><body><main>{views}</main>"""


def main() -> int:
    """Draw both files.

    Raises: CourseError without Chromium or playwright.
    """
    executable = find_chromium()
    if executable is None:
        raise CourseError(
            "the picture is taken in Chromium. Install it (Debian, Ubuntu: apt install chromium), and run `make dev`."
        )
    from playwright.sync_api import sync_playwright

    views = "".join(f"<section><h2>{title}</h2>{html}</section>" for title, html in _make_views().items())
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=list(CHROMIUM_ARGUMENTS))
        for theme, (paper, ink, names) in _THEMES.items():
            page = browser.new_page(viewport={"width": _WIDTH, "height": 900})
            page.set_content(_PAGE.format(width=_WIDTH, paper=paper, ink=ink, names=names, views=views))
            page.wait_for_function("[...document.querySelectorAll('[data-picture]')].every(host => host.stage)")
            page.evaluate(_BARE)
            page.screenshot(path=FOLDER / f"course-{theme}.png", full_page=True, animations="disabled")
            print(f"{paths.shown(FOLDER)}/course-{theme}.png")
        browser.close()
    return 0


def _make_views() -> dict[str, str]:
    """HTML by title: pictures as they stand in the built lessons, and a verdict given now."""
    return {
        "Drag a point until the digits are gone": _take("03", "cancellation"),
        "A check names the cause and the line": BOX_STYLE + _write_failure(),
        "Drive the programs into the race yourself": _take("12", "schedule"),
        "See how near to the memory's limit a kernel comes": _take("15", "kernel_roofline"),
    }


def _take(lesson: str, picture: str) -> str:
    """The first such picture of a lesson's notebook.

    Raises: CourseError if it has none.
    """
    (file,) = paths.NOTEBOOKS.glob(f"{lesson}_*.ipynb")
    for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", []):
            html = "".join(output.get("data", {}).get("text/html", ""))
            if f'data-picture="{picture}-' in html:
                return html
    raise CourseError(
        f"{paths.shown(file)} has no picture {picture}. Build it: python -m course_lib.authoring.notebooks {lesson}."
    )


def _write_failure() -> str:
    exercise = catalog.exercises()[_SHOWN[0]]
    wrong = next(m for e, m in mutants.list_mutants() if e.id == exercise.id and m["id"] == _SHOWN[1])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{exercise.file}.py"
        file.write_text(mutants.make_text(exercise, wrong), encoding="utf-8")
        verdict = check(exercise, file, mode="cpu")
    assert verdict.place is not None
    shown = replace(verdict.place, file=f"exercises/{file.name}")  # where a learner's file lies
    return write_verdict(replace(verdict, place=shown), exercise)


if __name__ == "__main__":
    sys.exit(main())
