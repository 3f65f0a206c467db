"""What all moving pictures share: the output, its colours, and the controls that ask Python."""

from __future__ import annotations

import base64
import json
import math
import re
from pathlib import Path

import ipywidgets
import pytest

from course_lib.base import paths, translation
from course_lib.base.errors import CourseError
from course_lib.lessons import cancellation, style
from course_lib.lessons.kit import output, page, palette
from course_lib.lessons.kit.asking import AskingPicture
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.live import VIEW, without_live_views

SCRIPTS = sorted((paths.ROOT / "course_lib" / "lessons").rglob("*.js"))
KIT = paths.ROOT / "course_lib" / "lessons" / "kit"


@pytest.fixture(scope="module")
def picture():
    return cancellation(N=64)


@pytest.mark.parametrize(
    "script", SCRIPTS, ids=lambda script: f"{script.parent.name}/{script.name}"
)
def test_a_script_fits_into_an_output(script: Path):
    """Kit and picture become one module inside an HTML element."""
    text = script.read_text(encoding="utf-8")
    assert "</" not in text and "<!--" not in text, "this would end the script element"
    imports = re.findall(r"^import .*?;\n", text, re.MULTILINE | re.DOTALL)
    assert "import" not in re.sub(r"//.*", "", output._read_script(script)), (
        "an import must end its line with ;"
    )
    known = set(
        re.findall(r"^export (?:const|function|class) (\w+)", (KIT / "kit.js").read_text(), re.M)
    )
    for line in imports:
        assert set(re.findall(r"\w+", line.partition("{")[2].partition("}")[0])) <= known


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_a_script_names_as_a_colour_exists(theme):
    colours = palette.list_colours(theme)
    for file in (*SCRIPTS, KIT / "kit.css"):
        named = set(re.findall(r"var\(--([a-z-]+)\)", file.read_text(encoding="utf-8")))
        assert named <= colours.keys(), file


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_and_lines_stand_out_from_the_page(theme):
    colours = palette.list_colours(theme)
    for key in ("ink", "quiet"):
        assert style.contrast(colours[key], colours["paper"]) >= 4.5
    for key in (
        k.replace("_", "-")
        for name in ("algorithms", "tensors", "providers")
        for k in style.GROUPS[name]
    ):
        assert style.contrast(colours[key], colours["paper"]) >= 3
    for state in style.GROUPS["states"]:
        assert style.contrast(colours[f"on-{state}"], colours[state]) >= 4.5


def test_numbers_that_json_has_no_word_for_arrive():
    assert output._encode({"a": (math.nan, math.inf, -math.inf, 1.0, 0.1)}) == {
        "a": [None, "Inf", "-Inf", 1, 0.1]
    }


def test_text_cannot_leave_the_script():
    html = MovingPicture("cancellation", {"start": "</script><img src=x>"}, "alt <b>").make_html()
    assert (
        html.count("</script>") == 1
        and "<img" not in html.split("<script")[0]
        and "alt &lt;b&gt;" in html
    )


def test_without_a_script_its_words_stand_there(picture):
    bundle = picture._repr_mimebundle_()
    before = bundle["text/html"].split("<script")[0]
    assert picture.alt in bundle["text/plain"] and "Run this cell to wake the picture" in before
    assert "digits with the square of mean/std" in before


def test_a_picture_may_have_a_name_that_the_kit_has(show, monkeypatch):
    read = output._read_script
    mine = (
        "const FONT = 5; const picture = (data) => ({ start: {}, controls: [[]], render: () => ({"
        " height: 9, title: `${FONT}`, caption: '', alt: '', draw: [] }) });"
    )
    monkeypatch.setattr(output, "find_script", lambda name: Path(name, "picture.js"))
    monkeypatch.setattr(
        output, "_read_script", lambda file: mine if file.name == "picture.js" else read(file)
    )
    assert show(MovingPicture("some", {}, "alt")).title == "5"


def test_words_on_one_another_and_what_is_too_wide_are_not_clear(show, monkeypatch):
    read = output._read_script
    words = "svg('text', { x: 20, y }, 'one'), svg('text', { x: 20, y: 20 }, 'two')"
    mine = (
        "const picture = () => ({ start: { y: 80 }, controls: [[]], render: ({ y }) => ({"
        f" height: 99, title: '', caption: '', draw: [{words}] }}) }});"
    )
    monkeypatch.setattr(output, "find_script", lambda name: Path(name, "picture.js"))
    monkeypatch.setattr(
        output, "_read_script", lambda file: mine if file.name == "picture.js" else read(file)
    )
    shown = show(MovingPicture("some", {}, "alt"))
    shown.assert_clear([{}])
    with pytest.raises(AssertionError, match="one"):
        shown.assert_clear([{"y": 80}, {"y": 22}])
    assert shown.list_overlaps() == [["one", "two"]]
    shown.page.evaluate("document.body.style.minWidth = '500px'")
    with pytest.raises(AssertionError, match="overflow"):
        shown.assert_clear([{"y": 80}])


def test_two_of_a_kind_live_beside_each_other(picture, show, tmp_path):
    shown = show(picture)
    file = tmp_path / "two.html"
    file.write_text(
        f"<!doctype html><meta charset=utf-8>{picture.make_html() * 2}", encoding="utf-8"
    )
    shown.page.goto(file.as_uri())
    shown.page.wait_for_function(
        "[...document.querySelectorAll('[data-picture]')].every(host => host.stage)"
    )
    shown.set(ratio=10)
    titles = shown.page.locator(".title").all_inner_texts()
    assert len(titles) == 2 and "mean/std = 10:" in titles[0] and "mean/std = 1000:" in titles[1]


def test_it_follows_a_page_that_changes_its_theme(picture, show):
    shown = show(picture)
    host = shown.page.locator("[data-picture]")
    assert host.get_attribute("data-theme") == "light"
    shown.page.evaluate(
        "() => { document.body.style.background = '#111'; document.body.dataset.jpThemeLight ="
        " 'false'; }"
    )
    shown.page.wait_for_function(
        "document.querySelector('[data-picture]').dataset.theme === 'dark'"
    )
    colour = shown.page.locator(".title").evaluate("e => getComputedStyle(e).color")
    assert min(map(int, re.findall(r"\d+", colour)[:3])) > 200


def test_a_picture_reads_its_width(picture, show):
    shown = show(picture)
    wide = shown.page.locator("svg.drawing").get_attribute("width")
    shown.page.set_viewport_size({"width": 420, "height": 800})
    shown.page.wait_for_function(
        "wide => document.querySelector('[data-picture]').stage.svg.getAttribute('width') !== wide",
        arg=wide,
    )
    assert shown.overflow() <= 0


class TestAskingPicture:
    @staticmethod
    def make(n):
        if n == 2:
            raise CourseError("the kernel raised.")
        if n == 3:
            raise ZeroDivisionError("ours")
        return MovingPicture("cancellation", {"n": n}, f"picture {n}")

    @pytest.fixture
    def asking(self):
        return AskingPicture(self.make, {"n": ipywidgets.IntText(1)}, "Ask")

    def test_a_press_brings_another_picture(self, asking):
        assert asking.picture.alt == "picture 1"
        asking.controls["n"].value = 5
        assert asking.picture.alt == "picture 1", "nothing is computed before the press"
        asking.button.click()
        assert (
            asking.picture.alt == "picture 5"
            and asking.error is None
            and not asking.button.disabled
        )

    @pytest.mark.parametrize(
        ("n", "says"), [(2, "the kernel raised."), (3, "This is a fault of the course")]
    )
    def test_what_fails_is_said_and_the_picture_before_stays(self, asking, n, says):
        asking.controls["n"].value = n
        asking.button.click()
        assert (
            says in asking.said.value
            and f"n = {n}" in asking.said.value
            and asking.picture.alt == "picture 1"
        )
        assert not asking.button.disabled
        asking.controls["n"].value = 4
        asking.button.click()
        assert asking.picture.alt == "picture 4" and says not in asking.said.value

    def test_while_python_works_it_says_so(self, asking, monkeypatch):
        seen = []
        monkeypatch.setattr(
            asking,
            "_make",
            lambda n: seen.append((asking.said.value, asking.button.disabled)) or asking.picture,
        )
        asking.button.click()
        assert "at work" in seen[0][0] and seen[0][1]

    def test_what_fails_at_first_is_raised(self):
        with pytest.raises(CourseError, match="the kernel raised"):
            AskingPicture(self.make, {"n": ipywidgets.IntText(2)}, "Ask")

    def test_without_a_kernel_its_controls_are_words(self, asking):
        data = asking.bar._repr_mimebundle_()
        assert VIEW in data
        notebook = {"metadata": {}, "cells": [{"outputs": [{"data": data}]}]}
        without_live_views(notebook)
        assert VIEW not in data and "Run this cell" in data["text/html"]


def test_the_page_is_dressed_in_a_notebook_only(monkeypatch):
    shown = []
    monkeypatch.setattr(page, "display", shown.append)
    page.dress_page()
    assert shown == []
    monkeypatch.setattr(page.runtime, "in_notebook", lambda: True)
    page.dress_page()
    assert "<style>" in shown[0].data


def test_what_make_lab_sets_in_jupyterlab_exists_there():
    jupyterlab = pytest.importorskip(
        "jupyterlab", reason="JupyterLab is not installed; `make env` installs it"
    )
    schemas = Path(jupyterlab.__file__).parents[4] / "share" / "jupyter"
    if not (schemas / "lab" / "schemas").is_dir():
        pytest.skip("JupyterLab's schemas lie elsewhere on this machine")
    settings = json.loads(
        (paths.ROOT / "tools/jupyter/labconfig/default_setting_overrides.json").read_text()
    )
    for plugin, values in settings.items():
        package, name = plugin.split(":")
        found = next(schemas.glob(f"lab*/**/schemas/{package}/{name}.json"))
        known = json.loads(found.read_text())["properties"]
        assert values.keys() <= known.keys(), plugin


def test_what_a_script_marks_is_found():
    script = (
        'tr`a ${b.map((x) => ({ y: 1 }))} \\u00b5 ${c}` + count(f(a.b), "pass") +'
        ' count(seen[0].length, "access", "accesses") + str`no`'
    )
    assert list(output.list_marked(script)) == ["a {0} µ {1}", "{0} passes", "{0} accesses"]
    assert list(output.list_marked('tr`${count(n, "lane")} of ${at}`')) == [
        "{0} of {1}",
        "{0} lanes",
    ]


@pytest.mark.parametrize(
    "script", SCRIPTS, ids=lambda script: f"{script.parent.name}/{script.name}"
)
def test_every_marked_text_of_a_script_is_read_whole(script: Path):
    text = script.read_text(encoding="utf-8")
    marked = list(output.list_marked(text))
    assert len(marked) >= len(re.findall(r"(?<![\w.`])tr`", text))
    for english in marked:
        assert not re.search(r"[{}$]", re.sub(r"\{\d+\}", "", english)), english


def test_a_picture_is_read_from_what_it_wrote(picture):
    strange = MovingPicture(
        "chart",
        {"words": "</script><!-- , picture, ", "none": math.nan, "key": "mean"},
        "alt <b> & more",
    )
    for one in (picture, strange):
        read = output.read_picture(one.make_html())
        assert (
            read is not None
            and read.name == one.name
            and read.alt == one.alt
            and read.make_html() == one.make_html()
        )
    assert output.read_picture("<div>no picture</div>") is None


def test_a_saved_picture_is_read_in_the_chosen_language(monkeypatch):
    # the state names the key
    names = {"start": "read twice", "names": {"read twice": "read twice"}}
    data = {
        "title": "Two sweeps cost 1.90 reads of x",
        "colour": "mean",
        "rows": ["read once"],
    } | names
    saved = MovingPicture("chart", data, "Time of mean").make_html()
    words = {
        "Two sweeps cost {cost:.2f} reads of x": "两遍要读 {cost:.2f} 次 x",
        "read once": "读一次",
        "read twice": "读两次",
        "mean": "均值",
        "Time of {what}": "{what}的时间",
    }
    monkeypatch.setenv("COURSE_LANG", "zh")
    monkeypatch.setattr(translation, "read_catalog", lambda language, catalog: words)
    monkeypatch.setattr(translation, "_list_patterns", translation._list_patterns.__wrapped__)
    read = output.read_picture(saved)
    assert (
        read.data
        == {"title": "两遍要读 1.90 次 x", "colour": "mean", "rows": ["读一次"]}
        | {"start": "read twice", "names": {"read twice": "读两次"}}
        and read.alt == "均值的时间"
    )
    charted = output.read_picture(
        MovingPicture("chart", {"alt": "Time of mean"}, "read once. Time of mean").make_html()
    )
    assert (
        charted is not None
        and "\u8bfb\u4e00\u6b21" in charted.alt
        and "\u5747\u503c\u7684\u65f6\u95f4" in charted.alt
    )


def test_a_script_speaks_the_learners_language(show, picture, monkeypatch):
    words = {"Reset": "重置", "{0} columns": "{0} 列"}
    monkeypatch.setattr(output, "translate", lambda text, catalog: words.get(text, text))
    shown = show(picture)
    assert shown.page.get_by_role("button", name="重置").count() == 1


@pytest.mark.parametrize(
    ("words", "label", "name"),
    [
        ("3", "program 3", "program 3"),
        ("3", "program 13", "3: program 13"),
        ("3", "x[13] = 0.3", "3: x[13] = 0.3"),
        ("0.3", "value x[13] = 0.3", "value x[13] = 0.3"),
        ("n 4 mean 2.5 ", "block 0: n 4, mean 2.5, M2 5", "block 0: n 4, mean 2.5, M2 5"),
        ("thread 2 \u25b8 ", "Move thread 2: line 7", "Move thread 2: line 7"),
        ("move 2 \u25b8 ", "waits for the lock", "move 2: waits for the lock"),
        ("线程 2", "移动线程 2：第 7 行", "移动线程 2：第 7 行"),
        ("移动 2", "在等锁", "移动 2: 在等锁"),
        ("?", "lane 3", "lane 3"),
        ("", "lane 3", "lane 3"),
    ],
)
def test_the_name_of_a_button_has_the_words_in_view(show, picture, words, label, name):
    kit = "data:text/javascript;base64," + base64.b64encode((KIT / "kit.js").read_bytes()).decode()
    call = "async ([kit, words, label]) => (await import(kit)).nameWith(words, label)"
    assert show(picture).page.evaluate(call, [kit, words, label]) == name
