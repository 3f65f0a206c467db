"""A moving picture on a plain web page, without a kernel, in a real browser."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from course_lib.base import paths
from course_lib.lessons.kit.output import MovingPicture

SHOTS = paths.ROOT / "build" / "screenshots" / "pictures"  # git-ignored: to be looked at after a run
_PAGE = "<!doctype html><meta charset=utf-8><body style='margin: 16px; background: {paper}; color: {ink}'>{html}"
_HOST = "document.querySelector('[data-picture]')"


class Shown:
    """A picture in a page: what it says, and a hand that moves it."""

    def __init__(self, page: Any, picture: MovingPicture, folder: Path) -> None:
        self.page, self.picture, self._folder = page, picture, folder
        self.faults: list[str] = []
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", lambda said: self.faults.append(said.text) if said.type == "error" else None)
        self.load()

    def load(self, theme: str = "light") -> None:
        paper, ink = ("#ffffff", "#111111") if theme == "light" else ("#111111", "#eeeeee")
        file = self._folder / f"{theme}.html"
        file.write_text(_PAGE.format(paper=paper, ink=ink, html=self.picture.make_html()), encoding="utf-8")
        self.page.goto(file.as_uri())
        self.page.wait_for_function(f"{_HOST}.stage")

    @property
    def title(self) -> str:
        return self.page.locator(".title").inner_text()

    @property
    def caption(self) -> str:
        return self.page.locator(".caption").inner_text()

    @property
    def state(self) -> dict[str, Any]:
        return self.page.evaluate(f"{_HOST}.stage.state")

    @property
    def alt(self) -> str:
        return self.page.locator("svg.drawing").get_attribute("aria-label")

    @property
    def drawn(self) -> str:
        """All words of the drawing."""
        return self.page.locator("svg.drawing").text_content()

    def set(self, **changes: Any) -> None:
        """The state as a control would set it."""
        self.page.evaluate(f"changes => {_HOST}.stage.set(changes)", changes)

    def call(self, function: str, *arguments: Any) -> Any:
        """What ``function``, which the picture's script returns beside ``render``, says. NaN and infinities come as such."""
        return self.page.evaluate(f"([name, given]) => {_HOST}.stage.made[name](...given)", [function, list(arguments)])

    def grip(self, key: str) -> Any:
        """A handle or a target of the drawing."""
        return self.page.locator(f'svg [data-key="{key}"]')

    def drag(self, key: str, dx: float, dy: float = 0.0) -> None:
        box = self.grip(key).bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        self.page.mouse.move(x + dx / 2, y + dy / 2)
        self.page.mouse.move(x + dx, y + dy)
        self.page.mouse.up()

    def measure_moves(self, states: list[dict[str, Any]], rounds: int = 5) -> tuple[float, float]:
        """Median and 95th percentile of the milliseconds that a move takes until it is laid out."""
        times = self.page.evaluate(
            f"""async ([states, rounds]) => {{
                const stage = {_HOST}.stage, times = [];
                for (let i = 0; i < rounds * states.length; i++) {{
                    const start = performance.now();
                    stage.set(states[i % states.length]);
                    stage.svg.getBoundingClientRect();
                    times.push(performance.now() - start);
                    await new Promise(requestAnimationFrame);
                }}
                return times;
            }}""",
            [states, rounds],
        )
        return statistics.median(times), sorted(times)[int(0.95 * (len(times) - 1))]

    def shoot(self, name: str) -> None:
        """Screenshots in both themes, 1280 and 900 pixels wide, and one as narrow as a phone."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        state = self.state
        for theme in ("light", "dark"):
            self.load(theme)
            for width in (1280, 900, 400):
                self.page.set_viewport_size({"width": width, "height": 800})
                self.set(**state)
                self.page.wait_for_timeout(60)
                assert self.overflow() <= 0, f"{name}: wider than {width} pixels"
                self.page.screenshot(path=SHOTS / f"{name}-{theme}-{width}.png", full_page=True)
        self.page.set_viewport_size({"width": 1280, "height": 800})
        self.load()
        self.set(**state)

    def overflow(self) -> float:
        """Pixels by which anything stands out of the page to the right."""
        return self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def assert_clear(self, states: list[dict[str, Any]], look: Callable[[], None] = lambda: None) -> None:
        """Fails if in one of these states words lie on one another, on a wide page or on a phone; ``look`` looks at each, too."""
        for width in (1280, 400):
            self.page.set_viewport_size({"width": width, "height": 800})
            for state in states:
                self.set(**state)
                assert self.list_overlaps() == [], (width, state)
                look()
        self.page.set_viewport_size({"width": 1280, "height": 800})

    def list_overlaps(self) -> list[tuple[str, str]]:
        """Pairs of texts of the drawing that lie on one another."""
        return self.page.evaluate(
            f"""() => {{
                const texts = [...{_HOST}.stage.svg.querySelectorAll("text")].filter(t => t.textContent.trim());
                const boxes = texts.map(t => t.getBoundingClientRect());
                const found = [];
                for (let i = 0; i < texts.length; i++) for (let j = 0; j < i; j++) {{
                    const [a, b] = [boxes[i], boxes[j]];
                    const w = Math.min(a.right, b.right) - Math.max(a.left, b.left);
                    const h = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
                    if (w > 2 && h > 4) found.push([texts[j].textContent, texts[i].textContent]);
                }}
                return found;
            }}"""
        )


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Callable[[MovingPicture], Shown]]:
    """Opens a picture; after the test no script may have failed."""
    opened: list[Shown] = []

    def show(picture: MovingPicture) -> Shown:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(20_000)
        opened.append(Shown(page, picture, tmp_path))
        return opened[-1]

    yield show
    for shown in opened:
        assert shown.faults == []
        shown.page.close()
