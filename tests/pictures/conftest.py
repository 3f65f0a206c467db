"""A moving picture on a plain web page, without a kernel, in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from course_lib.base import paths
from course_lib.lessons.kit.output import MovingPicture

# git-ignored: to be looked at after a run with --screenshots
SHOTS = paths.ROOT / "build" / "screenshots" / "pictures"
_PAGE = (
    "<!doctype html><meta charset=utf-8><body style='margin: 16px; background: {paper}; color:"
    " {ink}'>{html}"
)
_HOST = "document.querySelector('[data-picture]')"
# Sets each state in turn, and returns those in which words lie on one another or something stands
# out of the page.
_FIND_UNCLEAR = f"""(states) => {{
    const stage = {_HOST}.stage;
    const findOverlaps = () => {{
        const texts = [...stage.svg.querySelectorAll("text")].filter((text) => text.textContent.trim());
        const boxes = texts.map((text) => text.getBoundingClientRect());
        const overlaps = [];
        for (let i = 0; i < texts.length; i++) for (let j = 0; j < i; j++) {{
            const [a, b] = [boxes[i], boxes[j]];
            const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
            const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
            if (width > 2 && height > 4) overlaps.push([texts[j].textContent, texts[i].textContent]);
        }}
        return overlaps;
    }};
    const unclear = [];
    for (const state of states) {{
        stage.set(state);
        const overlaps = findOverlaps();
        const overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
        if (overlaps.length || overflow > 0) unclear.push({{ state, overlaps, overflow }});
    }}
    return unclear;
}}"""  # noqa: E501


class Shown:
    """A picture in a page: what it says, and a hand that moves it."""

    WIDTHS = (1280, 900, 400)  # of a page: a desktop, a notebook beside its file browser, a phone

    def __init__(
        self, page: Any, picture: MovingPicture, folder: Path, *, keep_screenshots: bool = False
    ) -> None:
        self.page = page
        self.picture = picture
        self._folder = folder
        self._keep_screenshots = keep_screenshots
        self.faults: list[str] = []
        self._listeners = {
            "pageerror": lambda error: self.faults.append(str(error)),
            "console": lambda message: (
                self.faults.append(message.text) if message.type == "error" else None
            ),
        }
        for event, listener in self._listeners.items():
            page.on(event, listener)
        self.load()

    def load(self, theme: str = "light") -> None:
        paper, ink = ("#ffffff", "#111111") if theme == "light" else ("#111111", "#eeeeee")
        file = self._folder / f"{theme}.html"
        file.write_text(
            _PAGE.format(paper=paper, ink=ink, html=self.picture.make_html()), encoding="utf-8"
        )
        self.page.goto(file.as_uri())
        self.page.wait_for_function(f"{_HOST}.stage")

    def leave(self) -> None:
        """Leave the page as the next picture of the test run wants it."""
        for event, listener in self._listeners.items():
            self.page.remove_listener(event, listener)
        self.page.mouse.move(0, 0)
        self.set_width(1280)

    def set_width(self, width: int) -> None:
        """Set the width of the page; the picture follows with its next state."""
        self.page.set_viewport_size({"width": width, "height": 800})

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
        """What ``function``, which the picture's script returns beside ``render``, says. NaN and
        infinities come as such."""
        return self.page.evaluate(
            f"([name, given]) => {_HOST}.stage.made[name](...given)", [function, list(arguments)]
        )

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

    def shoot(self, name: str) -> None:
        """Fail if the picture is not clear. With --screenshots, store it at each width in both
        themes."""
        state = self.state
        self.assert_clear([state])
        if self._keep_screenshots:
            SHOTS.mkdir(parents=True, exist_ok=True)
            for theme in ("dark", "light"):
                self.load(theme)
                for width in self.WIDTHS:
                    self.set_width(width)
                    self.set(**state)
                    self.page.screenshot(path=SHOTS / f"{name}-{theme}-{width}.png", full_page=True)
            self.set_width(1280)
            self.set(**state)

    def overflow(self) -> float:
        """Pixels by which anything stands out of the page to the right."""
        return self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )

    def assert_clear(
        self, states: list[dict[str, Any]], look: Callable[[], None] | None = None
    ) -> None:
        """Fail if in one of the states, at one of WIDTHS, words lie on one another or something
        stands out of the page.

        Args:
            states: changes of the state that is shown, each to those before it.
            look: called in each state, for what else has to hold there.
        """
        for width in self.WIDTHS:
            self.set_width(width)
            for group in [states] if look is None else [[state] for state in states]:
                unclear = self.page.evaluate(_FIND_UNCLEAR, group)
                assert unclear == [], (width, unclear[:5])
                if look is not None:
                    look()
        self.set_width(1280)
        self.set()

    def list_overlaps(self) -> list[tuple[str, str]]:
        """Pairs of texts of the drawing that lie on one another."""
        return [
            pair
            for unclear in self.page.evaluate(_FIND_UNCLEAR, [{}])
            for pair in unclear["overlaps"]
        ]


@pytest.fixture(scope="session")
def pages(session_browser: Any) -> list[Any]:
    """Pages that no test uses now. A new one takes half a second of processor time."""
    return []


@pytest.fixture
def show(
    browser: Any, pages: list[Any], tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Callable[[MovingPicture], Shown]]:
    """Return a function that opens a picture in a page; after the test no script may have
    failed."""
    opened: list[Shown] = []

    def show(picture: MovingPicture) -> Shown:
        page = pages.pop() if pages else browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(240_000)
        opened.append(
            Shown(
                page, picture, tmp_path, keep_screenshots=request.config.getoption("--screenshots")
            )
        )
        return opened[-1]

    yield show
    for shown in opened:
        shown.leave()
        pages.append(shown.page)
    assert [fault for shown in opened for fault in shown.faults] == []
