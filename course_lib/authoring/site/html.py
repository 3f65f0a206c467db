"""The pieces of HTML that all pages of the site share, in MyST's syntax."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from course_lib.authoring.repository import (
    FIRST,
    START,
    is_published,
    list_launches,
    read_repository,
)
from course_lib.authoring.tab import NOT_IN_TAB
from course_lib.base import paths
from course_lib.base.translation import LANGUAGES, VARIABLE, choose_language, join_sentences
from course_lib.base.translation import gettext as _

_HEADING = re.compile(r"^(#{1,6}) +(.+)$", re.MULTILINE)
# set while a site of all languages is built: its pages link to one another
LANGUAGE_SWITCH = "COURSE_SITE_LANGUAGES"
_CODE = re.compile(r"^(`{3,}|~{3,}).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class CourseSource:
    """The places from which the site's reader gets the course.

    Attributes:
        repository: the address of its web page, without a slash at the end; empty if the site is
            built for a folder.
        address: the address of the site itself, with a slash at the end; empty if it is not known.
        tab_bytes: the bytes that a browser fetches before the first cell of a lesson runs in a tab;
            0 if lessons do not run in a tab.
        bf16_in_tab: whether a tab has bf16; without it fp16 takes its place.
    """

    repository: str = ""
    address: str = ""
    tab_bytes: int = 0
    bf16_in_tab: bool = True

    @classmethod
    def read(cls) -> CourseSource:
        """Read ``COURSE_SITE_REPOSITORY`` and ``COURSE_SITE_ADDRESS``, which the workflow that
        publishes the site sets.

        Without the first, pyproject.toml may name the repository.
        """
        address = os.environ.get("COURSE_SITE_ADDRESS", "").rstrip("/")
        repository = os.environ.get("COURSE_SITE_REPOSITORY", "").rstrip("/") or read_repository()
        return cls(repository, address and f"{address}/")

    def find_edit_link(self, page: str) -> str:
        """Return the address at which the text of a page is edited.

        It is empty if the repository is not known or the page is made from several files.

        ``page`` is its path on the site without an ending, "notebooks/00_start_here".
        """
        folder, _slash, name = page.rpartition("/")
        file = f"{folder}/source/{name}.py" if folder == "notebooks" else f"{page}.md"
        whole = (paths.ROOT / file).is_file() and file != "docs/verdicts.md"
        return f"{self.repository}/edit/main/{file}" if self.repository and whole else ""

    @property
    def clone(self) -> tuple[str, ...]:
        """The two commands that open lesson 00 in a clone; empty if the repository is not known."""
        if not self.repository:
            return ()
        name = self.repository.rpartition("/")[2].removesuffix(".git")
        return f"git clone {self.repository} && cd {name}", "make lab"


def write_language_switch(page: str) -> str:
    """Write links to ``page``, "notebooks/00_start_here", in the other languages of the site; "" if
    it has only one."""
    if LANGUAGE_SWITCH not in os.environ:
        return ""
    language_here = choose_language()
    up = "../" * (page.count("/") + (language_here != "en"))
    links = [
        f'<a lang="{language.replace("_", "-")}" hreflang="{language.replace("_", "-")}"'
        f' href="{up}{"" if language == "en" else f"{language}/"}{page}.html">{name}</a>'
        for language, name in LANGUAGES.items()
        if language != language_here
    ]
    return f'<p class="languages">{" ".join(links)}</p>'


def write_commands(commands: Sequence[str]) -> str:
    """Write commands for a terminal as HTML. Before them stands the one that chooses the page's
    language, if this is not English."""
    language = choose_language()
    commands = (*(() if language == "en" else (f"export {VARIABLE}={language}",)), *commands)
    return f'<pre class="commands">{chr(10).join(map(html.escape, commands))}</pre>'


def write_raw(markup: str) -> str:
    """Wrap HTML so that MyST does not change it, blank lines included."""
    return f"````````{{raw}} html\n{markup}\n````````"


def write_tab_button(source: CourseSource, notebook: str = FIRST, up: str = "") -> str:
    """Write the button that runs a lesson in a tab of this site, as HTML, or a sentence that says
    why the lesson has none.

    The result is empty if the site has no tab. ``up`` is the path from the page to the site's first
    page.
    """
    if not source.tab_bytes:
        return ""
    number = notebook.rpartition("/")[2][:2]
    limits = f'<a href="{up}docs/browser.html">{_("What a tab can do")}</a>'
    if number in NOT_IN_TAB:
        return f"<p>{_(NOT_IN_TAB[number])} {limits}</p>"
    words = _("Run this lesson here ({megabytes} MB, nothing to install)").format(
        megabytes=f"{source.tab_bytes / 1e6:.0f}"
    )
    standin = "" if source.bf16_in_tab else f"{_('In the tab, fp16 stands in for bf16.')} "
    return (
        f'<p class="launch"><a class="button here" data-files="{up}tab/files.json"'
        f' href="{up}tab/lab/index.html?path={notebook}">{words}</a> {standin}{limits}<progress'
        f' hidden aria-label="{_("loaded")}"></progress> <span role="status"'
        f' data-words="{html.escape(_("{loaded} of {all} MB"))}"></span></p>'
    )


def write_launches(source: CourseSource, notebook: str = FIRST) -> str:
    """Write the buttons that open a lesson at other services, as HTML; empty if there are none."""
    launches = list_launches(source.repository, notebook).items()
    buttons = "".join(
        f'<a class="button" href="{html.escape(address)}">{name}</a>' for name, address in launches
    )
    return buttons and f'<p class="launch">{_("Or on a machine of a service:")} {buttons}</p>'


def write_start(source: CourseSource, up: str = "") -> str:
    """Write what a reader needs to run the course on a machine, and the commands, as HTML. ``up``
    is that of :func:`write_tab_button`."""
    why = (
        _("On your machine everything runs.")
        if source.tab_bytes
        else _("On your machine you write kernels and have them checked.")
    )
    if is_published():
        commands = START
        words = _(
            "You need Linux or WSL, Python 3.11 or newer, and <a"
            ' href="https://docs.astral.sh/uv/">uv</a>; no GPU. The first command makes a course'
            " folder, the last one opens lesson 00 in JupyterLab:"
        )
    elif source.clone:
        commands = source.clone
        words = _(
            "You need Linux or WSL, Python 3.11 or newer, and git; no GPU. The last command opens"
            " lesson 00 in JupyterLab:"
        )
    else:
        commands = START
        words = _(
            "You need Linux or WSL, Python 3.11 or newer, and the course's folder; no GPU. There,"
            " this opens lesson 00 in JupyterLab:"
        )
    setup_link = _(
        '<a href="{up}docs/setup.html">Setting up</a> has the other ways, Windows and macOS.'
    ).format(up=up)
    return f"<p>{join_sentences(why, words)}</p>{write_commands(commands)}<p>{setup_link}</p>"


def open_fold(summary: str, *, look: str = "answer", anchor: str = "", answers: str = "") -> str:
    """Write the start of a fold, whose content is hidden until the reader opens it.

    ``summary`` is HTML; ``look`` is answer, dive or verdict; ``answers`` is the id of the question
    that the fold answers.
    """
    attributes_by_name = {"id": anchor, "data-answers": answers}
    attributes = "".join(
        f' {name}="{html.escape(value)}"' for name, value in attributes_by_name.items() if value
    )
    return write_raw(
        f'<details class="fold {look}"{attributes}><summary>{summary}</summary><div class="folded">'
    )


def close_fold() -> str:
    return write_raw("</div></details>")


def write_headings_flat(markdown: str) -> str:
    """Change the headings of ``markdown`` for a fold, so that they begin no section: a section
    could end after the fold."""
    code = [match.span() for match in _CODE.finditer(markdown)]

    def flatten(match: re.Match[str]) -> str:
        if any(start <= match.start() < end for start, end in code):
            return match[0]
        return f"````{{rubric}} {match[2]}\n:heading-level: {len(match[1])}\n````"

    return _HEADING.sub(flatten, markdown)
