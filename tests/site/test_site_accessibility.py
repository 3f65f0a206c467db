"""The built site for those who do not see it, do not see it well, or have no mouse: what axe-core
finds, and a lesson by keyboard."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
from collections.abc import Iterator

import pytest
from chromium import import_playwright
from filelock import FileLock
from test_site_browser import PAGES

from course_lib.authoring.wheels import download_wheel
from course_lib.base import paths

# The time limit is a bound for a busy machine: the site's build takes forty seconds of processor
# time.
pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(1800)]

# axe-core's script is all that the tests take from this wheel. The package is not installed: it
# wants Python 3.12 and pytest's plugin of Playwright, and no package for Python 3.11 has an
# axe-core from 4.13 on.
AXE_VERSION = "4.14.0"
AXE_WHEEL = (
    f"pytest-playwright-axe=={AXE_VERSION}"
    " --hash=sha256:b8eed34ac17e1c1094983eaef97687e65b3e0c5a0de0257b8b34cc05430a07ca"
)
AXE_INSIDE = "pytest_playwright_axe/resources/axe.min.js"


@pytest.fixture(scope="session")
def axe() -> str:
    """The script of axe-core. It is fetched once and kept in build/."""
    file = paths.ROOT / "build" / f"axe-{AXE_VERSION}.min.js"
    file.parent.mkdir(exist_ok=True)
    with FileLock(file.with_suffix(".lock")):
        if not file.exists():
            try:
                with download_wheel(AXE_WHEEL) as wheel:
                    script = wheel.read(AXE_INSIDE)
            except subprocess.CalledProcessError as error:
                if os.environ.get("CI"):
                    raise
                pytest.skip(
                    f"axe-core {AXE_VERSION} is not in build/, and pip cannot fetch it:"
                    f" {error.stderr.strip()[-200:]}"
                )
            part = file.with_suffix(".part")
            part.write_bytes(script)
            part.replace(file)
    return file.read_text(encoding="utf-8")


def list_combinations() -> Iterator[object]:
    """Yield each page in each language and theme. `make test` has one of the four of each page,
    another one from page to page."""
    for number, page in enumerate(PAGES):
        for place, (language, theme) in enumerate(
            itertools.product(("", "zh_CN/"), ("light", "dark"))
        ):
            yield pytest.param(
                f"{language}{page}", theme, marks=[pytest.mark.sweep] if place != number % 4 else []
            )


_RUN_AXE = """async () => {
  const { violations, testEngine } = await axe.run({
    preload: false, resultTypes: ["violations"],
    rules: { "label-content-name-mismatch": { enabled: true } }, // experimental, and so off, up to axe-core 4.13
  });
  return [violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`)), testEngine.version];
}"""  # noqa: E501
# axe judges no contrast over a gradient. Those of code are shadows at the edges (site.css).
_WITHOUT_GRADIENTS = "pre { background-image: none !important; }"


@pytest.mark.parametrize(("name", "theme"), list(list_combinations()))
def test_axe_finds_nothing(open_page, axe, name, theme):
    opened = open_page(name)
    opened.open_folds()
    opened.set_theme(theme)
    opened.page.add_style_tag(content=_WITHOUT_GRADIENTS)
    opened.page.evaluate(axe)
    faults, version = opened.page.evaluate(_RUN_AXE)
    assert version == AXE_VERSION
    assert faults == []


@pytest.mark.parametrize(
    ("markup", "rule"),
    [
        ("<button aria-label='offset 0'>7</button>", "label-content-name-mismatch"),
        ("<p style='color: #777; background: #888'>unreadable</p>", "color-contrast"),
        (
            (
                "<pre style='color: #777; background: linear-gradient(#888, #888),"
                " #888'>unreadable</pre>"
            ),
            "color-contrast",
        ),
    ],
)
def test_axe_finds_what_is_planted(open_page, axe, markup, rule):
    opened = open_page("search.html")
    opened.page.add_style_tag(content=_WITHOUT_GRADIENTS)
    opened.page.evaluate(
        "(markup) => document.querySelector('article').insertAdjacentHTML('beforeend', markup)",
        markup,
    )
    opened.page.evaluate(axe)
    (fault,) = opened.page.evaluate(_RUN_AXE)[0]
    assert fault.startswith(rule)


# window.stops() lists what the Tab key reaches, in the order of the page; of radio buttons it
# reaches the checked one of a group, or the first. window.look() says what is to be seen of the one
# in focus, and window.read() what it and its picture say.
_KEYBOARD = """() => {
  const wanted = "a[href], button, input, select, textarea, summary, [tabindex]";
  const isReached = (element, all) => {
    if (element.tabIndex < 0 || element.matches(":disabled, [type=hidden]") || !element.checkVisibility({ visibilityProperty: true })) return false;
    if (element.type !== "radio") return true;
    const group = all.filter(({ type, name }) => type === "radio" && name === element.name);
    return element === (group.find(({ checked }) => checked) ?? group[0]);
  };
  const list = (root) => {
    const all = [...root.querySelectorAll("*")];
    return all.flatMap((element) => [...(element.matches(wanted) && isReached(element, all) ? [element] : []), ...(element.shadowRoot ? list(element.shadowRoot) : [])]);
  };
  const find = window.find = (root = document) => (root.activeElement?.shadowRoot?.activeElement ? find(root.activeElement.shadowRoot) : root.activeElement);
  const isFocusShown = (element) => {
    const styles = [element, element.nextElementSibling, element.querySelector(".reading")].filter(Boolean).map((each) => getComputedStyle(each));
    const hasOutline = ({ outlineStyle, outlineWidth, opacity }) => outlineStyle !== "none" && parseFloat(outlineWidth) > 0 && Number(opacity) > 0.9;
    return (hasOutline(styles[0]) || (element.matches(".segment input") && hasOutline(styles[1])) || (element.matches(".handle, .target") && styles[0].filter !== "none"));
  };
  const isInView = (element) => {
    const box = element.getBoundingClientRect();
    const [x, y] = [Math.max(box.left, 0) + Math.min(box.right, innerWidth), Math.max(box.top, 0) + Math.min(box.bottom, innerHeight)].map((sum) => sum / 2);
    if (!(box.width && box.height && x >= box.left && x <= box.right && y >= box.top && y <= box.bottom)) return false;
    const over = document.elementFromPoint(x, y);
    const host = element.getRootNode().host ?? element;
    return over === host || host.contains(over) || over.contains(host);
  };
  window.stops = () => list(document);
  window.describe = (element) => `${element.tagName.toLowerCase()} ${element.type ?? ""} "${(element.getAttribute("aria-label") ?? (element.closest("label") ?? element).textContent).trim().slice(0, 60)}"`;
  window.expect = () => { const all = stops(); window.expected = all[all.indexOf(find()) + 1]; return expected ? describe(expected) : null; };
  window.read = () => {
    const element = window.current ?? find();
    const group = element.type === "radio" ? [...element.getRootNode().querySelectorAll(`input[name="${element.name}"]`)].map(({ checked }) => checked) : [];
    return JSON.stringify([document.body.dataset.theme, element.value, element.checked, group, element.closest("details")?.open, element.getRootNode().host?.stage?.state,
      element.className?.baseVal ?? element.className, element.scrollLeft, element.tagName === "BUTTON" && element.textContent, element.getAttribute("aria-expanded")]);
  };
  window.look = () => {
    const element = (window.current = find());
    const isAlone = element.type === "radio" && element.getRootNode().querySelectorAll(`input[name="${element.name}"]`).length === 1;
    const role = isAlone ? "only choice" : element.getAttribute("role") ?? { A: "link", SUMMARY: "summary", BUTTON: "button", INPUT: element.type }[element.tagName] ?? "scrolls";
    const box = element.getBoundingClientRect();
    return { isExpected: element === window.expected, words: element === document.body ? "nothing" : describe(element), isFocusShown: isFocusShown(element), isInView: isInView(element),
      role, before: read(), drawing: element.closest("svg.drawing") !== null, inArticle: (element.getRootNode().host ?? element).closest("article") !== null, top: box.top + scrollY, bottom: box.bottom + scrollY };
  };
}"""  # noqa: E501
# the keys of which one has to do something
_KEYS = {
    "button": ["Enter"],
    "checkbox": ["Space"],
    "link": [],
    "only choice": [],
    "radio": ["Space", "ArrowDown"],
    "range": ["ArrowRight", "ArrowLeft"],
    "scrolls": ["ArrowRight"],
    "slider": ["ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown"],
    "summary": ["Enter"],
    "text": ["7"],
}


def press_one(page, keys: list[str], before: str) -> bool:
    """Press each of the keys until one changes what ``window.read`` says. Return whether one
    did."""
    for key in keys:
        page.keyboard.press(key)
        # a scroll and a copy take a moment
        with contextlib.suppress(import_playwright().TimeoutError):
            page.wait_for_function("(before) => read() !== before", arg=before, timeout=1500)
            return True
    return not keys


@pytest.mark.parametrize(
    ("name", "width"),
    [("notebooks/00_start_here.html", 400), ("notebooks/12_locks.html", 1280), ("index.html", 900)],
)
def test_a_page_can_be_read_and_used_by_keyboard(open_page, name, width):
    """The Tab key reaches every control in the order of the page, each shows that it has the focus,
    reacts to a key and lets go."""
    opened = open_page(name, width=width)
    page = opened.page
    page.add_style_tag(
        content="* { transition: none !important; scroll-behavior: auto !important; }"
    )
    page.evaluate(_KEYBOARD)
    visited: list[dict] = []
    wrong: list[str] = []
    while expected := page.evaluate("() => expect()"):
        page.keyboard.press("Tab")
        stop = page.evaluate("() => look()")
        visited.append(stop)
        assert stop["isExpected"], (
            f"after {visited[-2:-1]} the Tab key reaches {stop['words']}, not {expected}"
        )
        for fact in ("isFocusShown", "isInView"):
            if not stop[fact]:
                wrong.append(f"not {fact}: {stop['words']}")
        last = visited[-2] if len(visited) > 1 else stop
        if (
            stop["inArticle"]
            and last["inArticle"]
            and not stop["drawing"]
            and stop["bottom"] < last["top"] - 2
        ):
            wrong.append(f"{stop['words']} is above {last['words']}, and comes after it")
        if stop["words"].startswith("span"):
            continue  # opens a side column: another test does
        if not press_one(page, _KEYS[stop["role"]], stop["before"]):
            wrong.append(f"no key moves: {stop['words']}")
        assert page.evaluate("() => find() !== document.body"), (
            f"a key takes the focus from {stop['words']}"
        )
    assert wrong == []
    assert "Skip" in visited[0]["words"]
    roles = {stop["role"] for stop in visited}
    assert len(visited) > 40 and opened.faults == []
    if name.startswith("notebooks"):
        assert roles >= {"link", "button", "summary", "range", "radio", "slider"}


def test_the_skip_link_leads_into_the_text(open_page):
    page = open_page("notebooks/05_statistics_kernels.html").page
    page.evaluate(_KEYBOARD)
    for key in ("Tab", "Enter", "Tab"):
        page.keyboard.press(key)
    assert page.evaluate("() => look()")["inArticle"]


@pytest.mark.parametrize(
    ("width", "label", "column"),
    [(400, "nav", "sidebar"), (400, "toc", "toc"), (1280, "toc", "toc")],
)
def test_a_side_column_opens_and_closes_by_keyboard(open_page, width, label, column):
    page = open_page("notebooks/05_statistics_kernels.html", width=width).page
    links = page.locator(f".{column}-drawer a:visible")
    assert links.count() == 0
    opener = page.locator(f".{label}-overlay-icon:visible .icon")
    opener.focus()
    page.keyboard.press("Enter")
    assert opener.get_attribute("aria-expanded") == "true"
    assert links.first.evaluate("(link) => link === document.activeElement")
    page.keyboard.press("Escape")
    assert opener.evaluate("(opener) => opener === document.activeElement")
    assert links.count() == 0 and opener.get_attribute("aria-expanded") == "false"
