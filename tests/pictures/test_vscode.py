"""Every moving picture of the built lessons under the rules of VS Code's notebooks, as its sources
have them (2026-11-25).

Outputs share one page in a sandboxed iframe. HTML is set as ``innerHTML``, which runs no script;
each script is then made anew, appended and removed at once. The strictest content security policy
that VS Code has for notebooks is set, and the page is transparent over the editor.
"""

from __future__ import annotations

import html
import json

import nbformat
import pytest

from course_lib.base import paths
from course_lib.lessons.lesson00.copy_map.widget import copy_map

pytestmark = [pytest.mark.browser, pytest.mark.slow]

_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline';"
    " img-src https: http: data:; font-src https:; connect-src https:; child-src https: data:"
)
_INSIDE = """<!doctype html><meta charset=utf-8><meta http-equiv="Content-Security-Policy" content="{policy}">
<style>body {{ margin: 0; background: transparent; color: {ink}; }}</style>
<body class="{kind}" data-vscode-theme-kind="{kind}"><script>
const show = (markup) => {{
  const output = document.createElement("div");
  output.innerHTML = markup;
  document.body.append(output);
  for (const script of [...output.getElementsByTagName("script")]) {{
    const again = document.createElement("script");
    again.text = script.textContent;
    again.type = script.type;
    output.append(again);
    again.remove();
  }}
}};
for (const markup of {outputs}) show(markup);
</script>"""  # noqa: E501
_OUTSIDE = """<!doctype html><body style="background: {paper}"><iframe style="border: 0; width: 1000px; height: 900px" srcdoc="{inside}"
 sandbox="allow-scripts allow-same-origin allow-forms allow-pointer-lock allow-downloads"></iframe>"""  # noqa: E501
_HOSTS = "[...document.querySelectorAll('[data-picture]')]"
NOTEBOOKS = {file.stem: file for file in sorted(paths.NOTEBOOKS.glob("*.ipynb"))}


@pytest.fixture
def open_outputs(browser, pages):
    """Return a function that shows outputs as an editor with that theme does: the page inside, and
    what goes wrong in it."""
    page = pages.pop() if pages else browser.new_page()
    faults: list[str] = []
    listeners = {
        "pageerror": lambda error: faults.append(str(error)),
        "console": lambda message: faults.append(message.text) if message.type == "error" else None,
    }
    for event, listener in listeners.items():
        page.on(event, listener)

    def show(outputs: list[str], theme: str = "light"):
        paper, ink = ("#ffffff", "#111111") if theme == "light" else ("#1f1f1f", "#cccccc")
        inside = _INSIDE.format(
            policy=_POLICY,
            kind=f"vscode-{theme}",
            ink=ink,
            outputs=json.dumps(outputs).replace("</", "<\\/"),
        )
        page.set_viewport_size({"width": 1000, "height": 900})
        page.set_content(_OUTSIDE.format(paper=paper, inside=html.escape(inside)))
        frame = page.frames[1]
        frame.wait_for_function(f"{_HOSTS}.every((host) => host.stage)")
        return frame, faults

    yield show
    for event, listener in listeners.items():
        page.remove_listener(event, listener)
    page.goto("about:blank")
    page.set_viewport_size({"width": 1280, "height": 800})
    pages.append(page)


def list_pictures(name: str) -> list[str]:
    cells = nbformat.read(NOTEBOOKS[name], as_version=4).cells
    found = [
        output.get("data", {}).get("text/html", "")
        for cell in cells
        for output in cell.get("outputs", [])
    ]
    return [markup for markup in found if "data-picture=" in markup]


@pytest.mark.parametrize("name", [name for name in NOTEBOOKS if list_pictures(name)])
def test_each_picture_of_a_lesson_moves_or_is_a_chart(open_outputs, name):
    frame, faults = open_outputs(list_pictures(name))
    pictures = frame.locator("[data-picture]")
    assert pictures.count() == len(list_pictures(name))
    for number in range(pictures.count()):
        picture = pictures.nth(number)
        # a picture that plays goes on to draw while the next ones are tried
        controls = picture.locator(
            "button:enabled:not(:text-is('Play')), input[type=range]:enabled,"
            " input[type=checkbox]:enabled, input[type=radio]:enabled:not(:checked)"
        )
        if (picture.get_attribute("data-picture") or "").startswith(
            "chart-"
        ) and not controls.count():  # a chart with one view has nothing to move
            assert picture.locator("svg").count()
            continue
        before = picture.evaluate("(host) => JSON.stringify(host.stage.state)")
        # the first control may be a button for what is shown already
        for control in controls.all()[:3]:
            is_button = control.evaluate("(e) => e.tagName") == "BUTTON"
            kind = control.get_attribute("type")
            control.focus()
            control.press("Enter" if is_button else "Space" if kind == "radio" else "ArrowRight")
            if picture.evaluate("(host) => JSON.stringify(host.stage.state)") == before:
                control.press("ArrowLeft" if kind == "range" else "Space")
            if picture.evaluate("(host) => JSON.stringify(host.stage.state)") != before:
                break
        assert picture.evaluate("(host) => JSON.stringify(host.stage.state)") != before, (
            picture.get_attribute("data-picture")
        )
    assert faults == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_picture_takes_the_theme_of_the_editor(open_outputs, theme):
    frame, _ = open_outputs([copy_map().make_html()], theme)
    frame.wait_for_selector(f"[data-picture][data-theme={theme}]")
