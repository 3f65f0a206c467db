"""The built site in Chromium, opened from its folder: nothing is fetched, nothing is too wide,
answers are folded, pictures move."""

from __future__ import annotations

import html.parser
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest

from course_lib.authoring.notebooks import ANSWER
from course_lib.authoring.repository import START, list_launches
from course_lib.authoring.site import guides
from course_lib.base import paths
from course_lib.lessons import prediction

# The time limit is a bound for a busy machine: the site's build takes forty seconds of processor
# time.
pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(1800)]

NOTEBOOKS = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
LESSONS = [f"notebooks/{file.stem}.html" for file in NOTEBOOKS]
GUIDES = [str(Path(name).with_suffix(".html")) for name in guides.list_guides()]
PAGES = ["index.html", "search.html", *LESSONS, *GUIDES]
WIDTHS = (1280, 900, 400)

# what reaches past the right edge, in pictures too, unless it scrolls in a box of its own that does
# not
_TOO_WIDE = """() => {
  const edge = document.documentElement.clientWidth + 1;
  const all = [...document.querySelectorAll("article *")].flatMap((e) => [e, ...(e.shadowRoot?.querySelectorAll("*") ?? [])]);
  const held = (e) => {
    for (; e && e.tagName !== "ARTICLE"; e = e.parentElement ?? e.getRootNode().host)
      if (["auto", "scroll", "hidden"].includes(getComputedStyle(e).overflowX) && e.getBoundingClientRect().right <= edge) return true;
    return false;
  };
  const wide = all.filter((e) => e.checkVisibility() && e.getBoundingClientRect().width && e.getBoundingClientRect().right > edge && !held(e));
  const found = wide.map((e) => `${e.tagName} ${e.textContent.trim().slice(0, 40)}`);
  return document.documentElement.scrollWidth >= edge ? ["the page", ...found] : found;
}"""  # noqa: E501
# the text that a reader has in view: what a closed fold holds is not
_IN_VIEW = """() => {
  const walker = document.createTreeWalker(document.querySelector("article"), NodeFilter.SHOW_TEXT);
  let words = "";
  while (walker.nextNode()) if (walker.currentNode.parentElement.checkVisibility({ contentVisibilityAuto: true })) words += walker.currentNode.data;
  return words.replace(/\\s+/g, " ");
}"""  # noqa: E501


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_each_width_and_what_is_on_it_works(open_page, name):
    opened = open_page(name)
    before = opened.page.evaluate(_IN_VIEW) if name in LESSONS else ""
    for width in WIDTHS:
        opened.set_width(width)
        assert opened.page.evaluate(_TOO_WIDE) == [], width
    opened.open_folds()
    assert opened.page.evaluate(_TOO_WIDE) == [], "with all folds open"
    asleep = (
        "[...document.querySelectorAll('[data-picture]')].filter((host) => !host.stage).map((host)"
        " => host.dataset.picture)"
    )
    assert opened.page.evaluate(asleep) == []
    headings = (
        "[...document.querySelectorAll('h1')].filter((heading) =>"
        " heading.textContent.trim()).length"
    )
    assert opened.page.evaluate(headings) == 1
    empty = (
        "[...document.querySelectorAll('article th')].filter((cell) =>"
        " !cell.textContent.trim()).map((cell) => cell.parentElement.textContent)"
    )
    assert opened.page.evaluate(empty) == [], "a column without a name"
    if name in LESSONS:
        assert_answers_were_folded(Path(name).stem, before, opened.page.evaluate(_IN_VIEW))
    opened.set_width(1280)
    assert_pictures_move(opened)
    assert opened.faults == []


def assert_answers_were_folded(lesson: str, before: str, after: str) -> None:
    """Fail if an answer is in view before the reader opens a fold, or is not when all are open;
    both texts are what is in view."""
    notebook = nbformat.read(paths.NOTEBOOKS / f"{lesson}.ipynb", as_version=4)
    answers = [cell for cell in notebook.cells if ANSWER in cell.metadata.get("tags", [])]
    reasons = [
        _find_plain_words(question.why) for question in prediction.read_lesson(lesson[:2]).values()
    ]
    code = [" ".join(cell.source.split()) for cell in answers if cell.cell_type == "code"]
    assert reasons and all(len(words) > 12 for words in reasons)
    assert [words for words in reasons if words in before] == []
    assert [words for words in reasons if words not in after] == []
    # the same line may stand in another cell, too
    assert [words for words in code if before.count(words) >= after.count(words)] == []


def assert_pictures_move(opened) -> None:
    """Fail if a picture does not answer to a key or a click."""
    pictures = opened.page.locator("[data-picture]")
    for number in range(pictures.count()):
        picture = pictures.nth(number)
        before = picture.evaluate("(host) => JSON.stringify(host.stage.state)")
        if (
            picture.get_attribute("data-picture").startswith("chart-")
            and not picture.locator("input, [data-key]").count()
        ):
            continue  # bars and cells say their values: nothing is left to read
        _move(picture)
        assert picture.evaluate("(host) => JSON.stringify(host.stage.state)") != before, (
            picture.get_attribute("data-picture")
        )


def test_the_check_of_widths_finds_what_is_too_wide(open_page):
    opened = open_page(GUIDES[0], width=400)
    for markup in (
        "<p style='width: 500px'>wide</p>",
        "<p><code style='white-space: pre'>" + "w" * 200 + "</code></p>",
    ):
        opened.page.evaluate(
            "(markup) => document.querySelector('article').insertAdjacentHTML('beforeend', markup)",
            markup,
        )
        assert opened.page.evaluate(_TOO_WIDE) != []
        opened.page.evaluate("document.querySelector('article').lastElementChild.remove()")


def _find_plain_words(text: str) -> str:
    """The longest piece of a text that no markup interrupts."""
    return max(
        re.split(r"\]\(https?://[^)]*\)|[`$*\[\]_#\n\"'|<>]|\.\.\.|--", text), key=len
    ).strip()


_LOW = """() => {
  const inside = [...document.querySelectorAll("[data-picture]")].flatMap((picture) => [...picture.shadowRoot.querySelectorAll("button, label")]);
  const all = [...document.querySelectorAll("article :is(.button, summary, label, input[type=text])"), ...inside];
  return all.filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < 39.5).map((e) => `${e.tagName}: ${e.textContent.trim()}`);
}"""  # noqa: E501


@pytest.mark.parametrize(
    "name", ["index.html", "notebooks/00_start_here.html", "notebooks/02_rms_norm.html"]
)
def test_a_finger_can_hit_what_is_to_press(open_page, name):
    opened = open_page(name, width=400, touch=True)
    opened.open_folds()
    assert opened.page.evaluate(_LOW) == []


def test_nothing_lies_over_a_page_that_is_scrolled_up(open_page):
    opened = open_page("notebooks/00_start_here.html", width=400)
    opened.page.mouse.wheel(0, 3000)
    opened.page.wait_for_function("scrollY >= 2900")
    opened.page.mouse.wheel(0, -300)
    opened.page.wait_for_selector(".show-back-to-top", state="attached")
    assert not opened.page.locator(".back-to-top").is_visible()


def test_code_that_goes_on_beyond_the_edge_shows_a_shadow_there(open_page):
    opened = open_page("notebooks/00_start_here.html", width=400)
    code = opened.page.locator(".cell_input pre").nth(1)
    assert code.evaluate("(pre) => pre.scrollWidth > pre.clientWidth + 8")
    assert (
        code.evaluate("(pre) => getComputedStyle(pre).backgroundAttachment")
        == "local, local, scroll, scroll, scroll"
    )
    dark = """async (pre) => {
      const image = getComputedStyle(pre).backgroundImage; document.body.dataset.theme = 'dark';
      return [image, getComputedStyle(pre).backgroundImage]; }"""
    light, other = code.evaluate(dark)
    assert light != other, "the shadow has the colours of the theme"


def _move(picture) -> None:
    """By hand: the first control that the picture has."""
    step = picture.get_by_role("button", name="Step", exact=True).and_(
        picture.locator("button:enabled")
    )
    if step.count():
        step.first.click()
    elif (slider := picture.locator("input[type=range]:enabled")).count():
        before = slider.first.input_value()
        slider.first.press("ArrowRight")
        if slider.first.input_value() == before:  # it began at its end
            slider.first.press("ArrowLeft")
    elif (other := picture.locator("input[type=radio]:enabled:not(:checked)")).count():
        other.first.press("Space")  # a click can miss it while pictures above it grow
    else:
        control = picture.locator("input[type=checkbox]:enabled, [data-key]").first
        control.press("ArrowRight" if control.get_attribute("role") == "slider" else "Space")


def test_pictures_and_boxes_follow_light_and_dark(open_page):
    opened = open_page("notebooks/03_large_means.html")
    picture = opened.page.locator("[data-picture]").first
    box = opened.page.locator(".course-box").first
    seen = {}
    for theme in ("light", "dark"):
        opened.set_theme(theme)
        assert picture.get_attribute("data-theme") == theme
        seen[theme] = box.evaluate("(e) => getComputedStyle(e).backgroundColor")
    assert seen["light"] != seen["dark"]
    opened.page.evaluate("document.body.dataset.theme = 'auto'")
    for scheme in ("light", "dark"):
        opened.page.emulate_media(color_scheme=scheme)
        opened.wait_for_theme(scheme)


def test_a_chinese_page_has_chinese_fonts_in_both_themes(open_page):
    opened = open_page("zh_CN/docs/kernels.html")
    for theme in ("light", "dark"):
        opened.set_theme(theme)
        assert "Noto Sans SC" in opened.page.evaluate(
            "getComputedStyle(document.body).fontFamily"
        ), theme


# What a reader may predict, and what it means; None is no prediction. A list is what is chosen.
PREDICTED = {
    "10-third": [
        ("-0,2", -0.2),
        ("-1/5", -0.2),
        ("-0.2005", -0.2005),
        ("0.2", 0.2),
        ("2", 2),
        ("1/0", None),
        ("a lot", None),
    ],
    "15-written": [("46.4", 46.4), ("50", 50)],
    "03-ten-thousand": [
        (["numbers between about -30 and 30"], "numbers between about -30 and 30"),
        (["0 in every row"], "0 in every row"),
    ],
    "17-seen": [
        (
            ["kernel 1: B", "kernel 1: C", "kernel 2: C", "kernel 3: D"],
            [[0, 1], [0, 2], [1, 2], [2, 3]],
        ),
        (["kernel 1: B"], [[0, 1]]),
    ],
}


@pytest.mark.parametrize("prediction_id", PREDICTED)
def test_the_fold_begins_with_the_sentence_of_the_lesson(open_page, prediction_id):
    question = prediction.find(prediction_id)
    file = next(file for file in NOTEBOOKS if file.name[:2] == prediction_id[:2])
    opened = open_page(f"notebooks/{file.stem}.html")
    box, fold = (
        opened.page.locator(f'[data-{name}="{prediction_id}"]') for name in ("question", "answers")
    )
    sentence = fold.locator(".said")
    for predicted, means in PREDICTED[prediction_id]:
        if isinstance(predicted, list):
            ticked = box.locator("input[type=checkbox]:checked")
            while ticked.count():
                ticked.first.uncheck()
            for label in predicted:
                box.get_by_label(label).check()
        else:
            box.locator("input").fill(predicted)
        assert sentence.is_hidden()
        fold.locator("summary").click()
        sentence.wait_for(state="visible")
        verdict = (
            f"The answer: {question.result}" if means is None else question.write_verdict(means)
        )
        # the fold says it anew when it is opened, an instant after what it said before is in view
        opened.page.wait_for_function(
            "([id, words]) => document.querySelector(`[data-answers='${id}'] .said`).innerText ==="
            " words",
            arg=[prediction_id, verdict.replace("`", "")],
        )
        fold.locator("summary").click()
        sentence.wait_for(state="hidden")


def test_a_fold_that_is_opened_without_a_prediction_tells_the_answer_alone(open_page):
    opened = open_page("notebooks/03_large_means.html")
    opened.open_folds()
    shown = [line.inner_text() for line in opened.page.locator(".said").all()]
    assert shown and all(re.fullmatch("The answer: [^\n]+", words) for words in shown)


def test_a_link_to_a_cause_opens_its_verdict(open_page):
    opened = open_page("docs/verdicts.html", "#cause-divisor")
    assert opened.page.locator("#cause-divisor").evaluate("(fold) => fold.open")
    assert opened.page.locator("details[open]").count() == 1
    opened.page.locator('a[href="#cause-cancellation"]').click()
    opened.page.wait_for_function("document.getElementById('cause-cancellation').open")


def test_the_search_finds_a_lesson_without_a_server(open_page):
    opened = open_page("search.html", "?q=cancellation")
    opened.page.wait_for_selector("#search-results li a")
    assert any(
        "03" in words for words in opened.page.locator("#search-results li a").all_inner_texts()
    )
    assert opened.faults == []


class _Links(html.parser.HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        if "id" in given:
            self.ids.add(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        self.loaded += [given[name] for name in ("src", "srcset") if name in given]
        if tag == "link" and given.get("rel") not in (
            "canonical",
            "index",
            "search",
            "next",
            "prev",
        ):
            self.loaded.append(given.get("href", ""))


@pytest.fixture(scope="module")
def links(site) -> dict[Path, _Links]:
    """The links of each page of the site."""
    return {file: _Links(file.read_text(encoding="utf-8")) for file in site.rglob("*.html")}


def test_the_site_is_whole(site, links):
    """Every page that is wanted is there, every link inside leads somewhere, and nothing is loaded
    from elsewhere."""
    assert {str(file.relative_to(site)) for file in links} == {
        *PAGES,
        *(f"zh_CN/{page}" for page in PAGES),
    }
    wrong = []
    for file, page in links.items():
        for link in page.links + page.loaded:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https", "mailto", "data"):
                wrong += (
                    [f"{file.name} loads {link}"]
                    if link in page.loaded and parts.scheme.startswith("http")
                    else []
                )
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file() or (
                parts.fragment
                and target in links
                and unquote(parts.fragment) not in links[target].ids
            ):
                wrong.append(f"{file.relative_to(site)} links to {link}")
    assert wrong == []


def test_each_page_leads_to_itself_in_the_other_language(site, links):
    wrong = []
    for page in PAGES:
        for here, there, language in (
            (site, site / "zh_CN", "en"),
            (site / "zh_CN", site, "zh-CN"),
        ):
            file = here / page
            if f'<html class="no-js" lang="{language}"' not in file.read_text(encoding="utf-8"):
                wrong.append(f"{file.relative_to(site)} does not say that it is in {language}")
            targets = {file.parent.joinpath(unquote(link)).resolve() for link in links[file].links}
            if page != "search.html" and (there / page).resolve() not in targets:
                wrong.append(
                    f"{file.relative_to(site)} has no link to {(there / page).relative_to(site)}"
                )
    assert wrong == []


def test_a_lesson_in_chinese_fits_judges_a_prediction_and_says_so_in_chinese(open_page):
    opened = open_page("zh_CN/notebooks/04_streaming_and_merging.html")
    for width in WIDTHS:
        opened.set_width(width)
        assert opened.page.evaluate(
            "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        ), width
    question = opened.page.locator('[data-question="04-hidden"]')
    question.get_by_label("大约一半").check()
    opened.page.locator('[data-answers="04-hidden"] > summary').click()
    # the fold says it anew when it is opened, an instant after what it said before is in view
    opened.page.wait_for_function(
        """() => /^不是一半[^]*/.test(document.querySelector('[data-answers="04-hidden"] .said').innerText)"""  # noqa: E501
    )
    assert opened.faults == []


def test_the_first_page_leads_to_every_lesson_and_a_lesson_to_its_notebook(site, links):
    assert set(LESSONS) | set(GUIDES) <= {
        urlsplit(link).path for link in links[site / "index.html"].links
    }
    for file in NOTEBOOKS:
        page = (site / "notebooks" / f"{file.stem}.html").read_text(encoding="utf-8")
        assert f'download href="{file.name}"' in page
        assert (site / "notebooks" / file.name).read_bytes() == file.read_bytes()
        assert "\n".join(START) in page and 'href="../docs/setup.html"' in page


def test_a_published_site_says_what_it_is_and_where(tmp_path):
    # in English alone, and in a process of its own: Sphinx forks, and a fork would hold the
    # browser's pipes
    program = (
        "import pathlib, sys; from course_lib.authoring.site.build import build;"
        " build(pathlib.Path(sys.argv[1]), ['00', '03'])"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "site")]
    repository = "https://github.com/example/norms"
    environment = os.environ | {
        "COURSE_SITE_ADDRESS": "https://example.org/norms",
        "COURSE_SITE_REPOSITORY": repository,
    }
    built = subprocess.run(
        command, cwd=paths.ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    page = (tmp_path / "site" / "notebooks" / "00_start_here.html").read_text(encoding="utf-8")
    assert (
        '<link rel="canonical" href="https://example.org/norms/notebooks/00_start_here.html">'
        in page
    )
    assert '<meta name="description" content="' in page
    assert f'href="{repository}/edit/main/notebooks/source/00_start_here.py" rel="edit"' in page
    first = _Links((tmp_path / "site" / "index.html").read_text(encoding="utf-8"))
    assert set(list_launches(repository).values()) <= set(first.links)
    (image,) = re.findall(r'property="og:image" content="https://example.org/norms/([^"]+)"', page)
    assert (tmp_path / "site" / image).is_file()
    assert (
        "https://example.org/norms/notebooks/00_start_here.html"
        in (tmp_path / "site" / "sitemap.xml").read_text()
    )
    missing = _Links((tmp_path / "site" / "404.html").read_text(encoding="utf-8"))
    own = [link for link in missing.links + missing.loaded if link.startswith("/")]
    assert own and all(link.startswith("/norms/") for link in own), (
        "the page that is missing may lie in any folder"
    )
