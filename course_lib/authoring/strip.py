"""``python -m course_lib.authoring.strip``: make the moving picture at the top of README, and a
still for readers who want no motion.

Each is made in light and in dark. The moving picture has three views of the course: a point is
dragged until the digits of a variance are gone; a wrong kernel is checked, and the verdict names
the cause and the line; programs race, one operation at a time.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from course_lib import catalog
from course_lib.authoring.stills import CHROMIUM_ARGUMENTS, find_chromium
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.catalog import mutants
from course_lib.grading.check import check
from course_lib.lessons.panel_page import write_verdict
from course_lib.lessons.stylesheets import BOX_STYLE

if TYPE_CHECKING:
    from playwright.sync_api import Page

FOLDER = paths.ROOT / "docs" / "images"
# the wrong solution whose verdict is shown: exercise and mutant
_SHOWN = ("07a", "unmasked_variance")
_WIDTH, _HEIGHT, _SCALE = 680, 545, 1.5  # size in CSS pixels; pixels of the file per CSS pixel
_QUALITY = 60
# milliseconds per frame while something moves, and for the last frame of a view
_STEP, _REST = 120, 1000
_READ = 3000  # milliseconds for the verdict
# for each theme: background, text colour, and JupyterLab's CSS variables for the colours of a box
_THEMES = {
    "light": ("#ffffff", "#1a1a1a", ""),
    "dark": (
        "#111111",
        "#e6e6e6",
        (
            "--jp-content-font-color1: #e6e6e6; --jp-content-font-color2: #b0b0b0;"
            " --jp-cell-editor-background: #1e1e1e; --jp-border-color1: #616161; --jp-error-color1:"
            " #ef5350; --jp-brand-color1: #64b5f6"
        ),
    ),
}
_PAGE = """<!doctype html><meta charset=utf-8><style>
body {{ margin: 0; padding: 12px; width: {width}px; height: {height}px; overflow: hidden; box-sizing: border-box; background: {paper}; color: {ink};
  font: 14px/1.45 sans-serif; {names} }}
h2 {{ font-size: 19px; margin: 0 0 8px; }}
</style><body><h2>{title}</h2>{html}</body>"""  # noqa: E501
# hides the controls: they do not work in an image
_BARE = """() => {
    for (const part of document.querySelector("[data-picture]").stage.root.querySelectorAll(".controls")) part.style.display = "none";
}"""  # noqa: E501
_MOVE = """([name, value]) => {
    const slider = document.querySelector("[data-picture]").stage.root.querySelector(`input[aria-label="${name}"]`);
    slider.value = value === null ? slider.max : Number(slider.min) + value * (slider.max - slider.min);
    slider.dispatchEvent(new Event("input", { bubbles: true }));
}"""  # noqa: E501


def main() -> int:
    """Make the four files.

    Raises: CourseError without Chromium or playwright.
    """
    executable = find_chromium()
    if executable is None:
        raise CourseError(
            "the picture is taken in Chromium. Install it (Debian, Ubuntu: apt install chromium),"
            " and run `make dev`."
        )
    from PIL import Image
    from playwright.sync_api import sync_playwright

    failure = BOX_STYLE + _write_failure()
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=list(CHROMIUM_ARGUMENTS))
        for theme in _THEMES:
            page = browser.new_page(
                viewport={"width": _WIDTH, "height": _HEIGHT}, device_scale_factor=_SCALE
            )
            frames, still = [], 0
            for shot, milliseconds in _film(page, theme, failure):
                frames.append((Image.open(io.BytesIO(shot)).convert("RGB"), milliseconds))
                # the last frame of the first view
                still = still or (milliseconds == _REST and len(frames) - 1)
            first_image, *later_images = (image for image, _ in frames)
            durations = [milliseconds for _, milliseconds in frames]
            first_image.save(
                FOLDER / f"course-{theme}.webp",
                save_all=True,
                append_images=later_images,
                duration=durations,
                loop=0,
                quality=_QUALITY,
                method=6,
            )
            frames[still][0].save(FOLDER / f"course-{theme}.png", optimize=True)
            print(
                f"{paths.shown(FOLDER)}/course-{theme}.webp: {sum(durations) / 1000:.1f} s,"
                f" {len(frames)} frames"
            )
        browser.close()
    return 0


def _film(page: Page, theme: str, failure: str) -> Iterator[tuple[bytes, int]]:
    """Yield each frame as PNG, with the milliseconds for which it is shown."""
    yield from _film_slider(
        page,
        theme,
        "Drag the mean until the digits are gone",
        _take("03", "cancellation"),
        "mean/std",
        20,
    )
    _open(page, theme, "A check names the cause and the line", failure)
    yield page.screenshot(animations="disabled"), _READ
    yield from _film_slider(
        page,
        theme,
        "Programs race: step through who loses",
        _take("12", "schedule"),
        "operation",
        8,
    )


def _film_slider(
    page: Page, theme: str, title: str, picture: str, slider: str, steps: int
) -> Iterator[tuple[bytes, int]]:
    _open(page, theme, title, picture)
    page.wait_for_function("document.querySelector('[data-picture]').stage")
    page.evaluate(_BARE)
    for step in range(steps + 1):
        page.evaluate(_MOVE, [slider, step / steps])
        page.wait_for_timeout(60)  # a picture draws in the next frame of the browser
        # each of a few steps is a single operation that has to be read
        slow = 2.5 if steps < 12 else 1
        yield (
            page.screenshot(animations="disabled"),
            _REST if step == steps else round(_STEP * slow),
        )


def _open(page: Page, theme: str, title: str, html: str) -> None:
    paper, ink, names = _THEMES[theme]
    page.set_content(
        _PAGE.format(
            width=_WIDTH, height=_HEIGHT, paper=paper, ink=ink, names=names, title=title, html=html
        )
    )


def _take(lesson: str, picture: str) -> str:
    """Return the HTML of the first output in a lesson's notebook that shows ``picture``.

    Raises: CourseError if the notebook has none.
    """
    (file,) = paths.NOTEBOOKS.glob(f"{lesson}_*.ipynb")
    for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", []):
            html = "".join(output.get("data", {}).get("text/html", ""))
            if f'data-picture="{picture}-' in html:
                return html
    raise CourseError(
        f"{paths.shown(file)} has no picture {picture}. Build it: python -m"
        f" course_lib.authoring.notebooks {lesson}."
    )


def _write_failure() -> str:
    exercise = catalog.exercises()[_SHOWN[0]]
    wrong = next(
        m for e, m in mutants.list_mutants() if e.id == exercise.id and m["id"] == _SHOWN[1]
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{exercise.file}.py"
        file.write_text(mutants.make_text(exercise, wrong), encoding="utf-8")
        verdict = check(exercise, file, mode="cpu")
    assert verdict.place is not None
    shown_place = replace(
        verdict.place, file=f"exercises/{file.name}"
    )  # the path of a learner's file
    return write_verdict(replace(verdict, place=shown_place), exercise)


if __name__ == "__main__":
    sys.exit(main())
