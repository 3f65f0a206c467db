"""The HTML of an exercise panel: task, code, verdict and difference, in the colours of the
surrounding page (box.css, panel.css)."""

from __future__ import annotations

import ast
import difflib
import functools
import html
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from course_lib.base import paths
from course_lib.base.tab import IN_TAB
from course_lib.base.text import make_visible
from course_lib.base.translation import gettext as _
from course_lib.base.translation import join_lines, join_sentences
from course_lib.base.translation import mark as N_
from course_lib.base.words import AND, list_words
from course_lib.catalog import Exercise, texts
from course_lib.grading.public import (
    ERROR,
    FAIL,
    GRADER_FAULT,
    NOT_ATTEMPTED,
    PASS,
    SIGNS,
    KernelCount,
    Report,
    Verdict,
    describe_count,
    describe_count_place,
    describe_name,
    find_kind,
    format_count_value,
    list_count_rows,
    make_report,
    quote_line,
)

_LOOKS = {PASS: "good", FAIL: "bad", ERROR: "bad", NOT_ATTEMPTED: "open", GRADER_FAULT: "bad"}
_CASE_STATUSES = {"pass": N_("pass"), "fail": N_("fail"), "not run": N_("not run")}
_AROUND = 3  # unchanged lines that are shown before and after a difference


def write_asleep() -> str:
    words = _(
        "<b>This panel is asleep</b>: it is from an earlier session. Run this cell to wake it. What"
        " it last said stands below."
    )
    return f'<div class="course-box open course-asleep">{words}</div>'


def write_box(inner: str, look: str = "plain", role: str | None = "status") -> str:
    """Put ``inner`` in a box; ``look`` is plain, task, good, bad or open."""
    return f'<div class="course-box {look}"{f""" role="{role}" """ if role else ""}>{inner}</div>'


def write_busy(words: str) -> str:
    return write_box(f'<span class="course-turning"></span> {html.escape(words)}')


def write_task(exercise: Exercise) -> str:
    """Write title, effort and task; the task is the docstring of the unsolved exercise."""
    docstring = ast.get_docstring(ast.parse(texts.make_learners_text(exercise))) or ""
    # the first repeats the title, the last says how to check
    paragraphs = docstring.split("\n\n")[1:-1]
    body = "".join(map(_write_paragraph, paragraphs))
    effort = "●" * exercise.difficulty + "○" * (5 - exercise.difficulty)
    heading = _("{name}: {what}").format(
        name=_("Exercise {id}").format(id=exercise.id), what=html.escape(exercise.title)
    )
    title = (
        f"<b>{heading}</b> "
        "<span"
        f' title="{_("difficulty {difficulty} of 5").format(difficulty=exercise.difficulty)}">{effort}</span> '  # noqa: E501
        f"{_('about {minutes} minutes').format(minutes=exercise.minutes)}<br>"
    )
    return write_box(f"{title}<i>{html.escape(exercise.objective)}</i>{body}", "task", role=None)


def _write_paragraph(paragraph: str) -> str:
    """Write a paragraph of a task: a formula as it is, edge cases in a fold."""
    if paragraph.startswith("    "):
        return f"<pre>{html.escape(paragraph)}</pre>"
    edge_cases = _("Edge cases that are checked:")
    words = f"<p>{write_inline(join_lines(paragraph).removeprefix(edge_cases).strip())}</p>"
    if not paragraph.startswith(edge_cases):
        return words
    return f"<details><summary>{edge_cases.rstrip(':：')}</summary>{words}</details>"


def write_link(exercise: Exercise) -> str:
    """Write a link that opens the file beside the notebook. JupyterLab's command linker reads its
    attributes."""
    path = texts.find_file(exercise)
    relative = _in_server(path)
    if relative is None:
        return write_box(f"{_('Your file:')} <code>{html.escape(str(path))}</code>", role=None)
    unsolved = texts.make_unsolved_text(exercise)
    todo = list_words((mark for mark in ("YOUR CODE", "REPAIR") if f"# {mark}" in unsolved), AND)
    opener = _opener(relative, _("Open {file} beside this notebook").format(file=relative))
    return write_box(
        _("{opener}, work on the parts marked {todo}, save, then press Check.").format(
            opener=opener, todo=todo
        ),
        role=None,
    )


def _opener(relative: str, words: str) -> str:
    arguments = html.escape(json.dumps({"path": relative, "options": {"mode": "split-right"}}))
    return (
        '<a href="#" role="button" data-commandlinker-command="docmanager:open"'
        f' data-commandlinker-args="{arguments}">{html.escape(words)}</a>'
    )


def _in_server(path: Path) -> str | None:
    """Return the path relative to the folder that JupyterLab serves; None if the file is outside of
    it."""
    root = _server_root()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else None


@functools.cache
def _server_root() -> Path:
    """Return the folder that JupyterLab serves, from the file of the server that started this
    kernel, or else the course folder.

    `course lab` serves the course folder. Reading the server's file avoids an import of
    ``jupyter_server``, which is slow.
    """
    if IN_TAB:
        return paths.folder()
    from jupyter_core.paths import jupyter_runtime_dir

    file = Path(jupyter_runtime_dir(), f"jpserver-{os.getppid()}.json")
    try:
        server = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        # no file: kernel and server of a hosted notebook run on different machines; invalid: it is
        # being written now
        return paths.folder()
    return Path(server["root_dir"]).resolve()


def find_first_line(text: str) -> int:
    """Find the first line after the module's docstring and blank lines, because the panel shows the
    task already."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return 1
    if len(body) > 1 and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        decorators = [d.lineno for d in getattr(body[1], "decorator_list", [])]
        return min([body[1].lineno, *decorators])
    return 1


def _colour(code: str, first_line: int = 1) -> str:
    formatter = HtmlFormatter(linenos="inline", linenostart=first_line, cssclass="course-code")
    return highlight(code, PythonLexer(), formatter)


def write_code(title: str, code: str, first_line: int = 1) -> str:
    """Write code that the learner can fold away; ``first_line`` is the number of its first line."""
    return write_box(
        f"<details open><summary>{html.escape(title)}</summary>{_colour(code, first_line)}"
        "</details>",
        role=None,
    )


def write_difference(exercise: Exercise, learner_text: str) -> str:
    """Write the difference between the learner's file and the course's solution; long runs of
    common lines are folded."""
    ours = texts.make_plain_solution(exercise)
    sides = [
        text.split("\n")[find_first_line(text) - 1 :] for text in (make_visible(learner_text), ours)
    ]
    lines = []
    for kind, start, end, from_, to in difflib.SequenceMatcher(
        None, *sides, autojunk=False
    ).get_opcodes():
        if kind == "equal":
            lines += _fold(sides[0][start:end], at_start=start == 0, at_end=end == len(sides[0]))
            continue
        lines += [
            f'<span class="yours">- {html.escape(line)}</span>' for line in sides[0][start:end]
        ]
        lines += [
            f'<span class="solution">+ {html.escape(line)}</span>' for line in sides[1][from_:to]
        ]
    whole = _("The course's solution, whole")
    explanation = (
        _("Your file has the course's code, line for line.")
        if sides[0] == sides[1]
        else _(
            "From your file (-) to the course's solution (+). Other code can be as right: Check"
            " decides."
        )
    )
    return write_box(
        f"<p>{explanation}</p><pre"
        f' class="course-lines">{"".join(lines)}</pre><details><summary>{whole}</summary>{_colour(ours)}</details>'  # noqa: E501
    )


def _fold(alike: list[str], *, at_start: bool, at_end: bool) -> list[str]:
    """Write lines that both files have. Cut the middle of a long run; keep its ends that are next
    to a difference."""
    head, tail = 0 if at_start else _AROUND, 0 if at_end else _AROUND
    cut = len(alike) - head - tail
    if cut <= 2:
        return [f"<span>  {html.escape(line)}</span>" for line in alike]
    folded = [
        f"<span>  {html.escape(line)}</span>"
        for line in (*alike[:head], *alike[len(alike) - tail :])
    ]
    folded.insert(
        head, f'<span class="alike">  ... {_("{count} lines alike").format(count=cut)}</span>'
    )
    return folded


def write_verdict(verdict: Verdict, exercise: Exercise) -> str:
    report = make_report(verdict, exercise)
    cause = (
        f"<b>{write_inline(report.cause)}</b>" if verdict.headline else write_inline(report.cause)
    )
    parts = [
        f'<b class="course-status">{html.escape(report.headline)}</b>',
        f"<p>{cause}</p>",
        _finding(report),
    ]
    parts += [
        write_quotation(report),
        *(f"<p>{write_inline(text)}</p>" for text in (report.question, report.common) if text),
    ]
    parts.append(write_counts(report.counts))
    if report.printed:
        title = (
            _("What the grader printed")
            if verdict.status == GRADER_FAULT
            else (
                _("What the kernel printed")
                if find_kind(exercise.kind).is_of_kernels
                else _("What the function printed")
            )
        )
        parts.append(
            f"<details><summary>{title}</summary><pre>{html.escape(report.printed)}</pre></details>"
        )
    if verdict.cases:
        rows = "".join(
            f"<tr><td>{SIGNS.get(c.status, '–')}"
            f" {_(_CASE_STATUSES[c.status])}</td><td>{html.escape(describe_name(c.name))}</td>"
            f"<td class='number'>{'' if c.error is None else f'{c.error:.3g} x'}</td><td>{html.escape(c.detail)}</td></tr>"  # noqa: E501
            for c in verdict.cases
        )
        head = "".join(
            f"<th>{words}</th>"
            for words in (_("verdict"), _("case"), _("error / allowed"), _("what is special"))
        )
        head = f"<tr>{head}</tr>"
        parts.append(
            f"<details><summary>{_('{count} cases').format(count=len(verdict.cases))}</summary><table>{head}{rows}</table></details>"  # noqa: E501
        )
    if report.debrief:
        parts.append(f"<p><b>{_('What you avoided.')}</b> {write_inline(report.debrief)}</p>")
        parts.append(f"<p><b>{_('Further.')}</b> {write_inline(report.further)}</p>")
    parts.append(f"<small>{html.escape(report.footer)}</small>")
    return (
        '<div role="status" aria-live="polite" class="course-verdict course-box'
        f' {_LOOKS[verdict.status]}">{"".join(parts)}</div>'
    )


def write_counts(counts: Sequence[KernelCount]) -> str:
    """Write each count as three bars: the learner's, the course's, and the least possible."""
    charts, places = [], dict.fromkeys(count.place for count in counts)
    for count in counts:
        rows = list_count_rows(count)
        longest = max(value or 0 for _owner, value in rows) or 1
        over = count.limit is not None and count.yours is not None and count.yours > count.limit
        looks = ("over" if over else "yours", "course", "least")
        bars = "".join(
            f"<tr><th>{html.escape(owner)}</th><td><span class='course-bar {look}'"
            f" style='width: {100 * (value or 0) / longest:.0f}%'></span></td>"
            f"<td class='number'>{format_count_value(value)}</td></tr>"
            for look, (owner, value) in zip(looks, rows, strict=True)
        )
        charts.append(
            f"<table><caption>{html.escape(describe_count(count))}</caption>{bars}</table>"
        )
    where = "; ".join(html.escape(place) for place in places)
    below = f"<small>{describe_count_place(where)}</small>" if counts else ""
    return f"<div class='course-counts'>{''.join(charts)}</div>{below}" if counts else ""


def _finding(report: Report) -> str:
    """Write the first failing case, with the numbers side by side."""
    rows = "".join(
        f"<tr><td>{html.escape(name)}</td><td><code>{html.escape(value.strip())}</code></td></tr>"
        for name, value in report.numbers
    )
    pieces = [
        (
            f"<div>{join_sentences(_('Smallest failing case:'), html.escape(report.case))}</div>"
            if report.case
            else ""
        ),
        f"<table>{rows}</table>" if rows else "",
        f"<p>{write_inline(report.words)}</p>" if report.words else "",
    ]
    return "".join(pieces)


def write_quotation(report: Report) -> str:
    """Write the line of the learner's file, with carets below it; the file's name is a link that
    opens it beside the notebook."""
    if report.place is None:
        return ""
    quotation, name = quote_line(report.place), f"{report.file}:{report.place.line}"
    relative = _in_server(paths.locate(report.place.file))
    link = _opener(relative, name) if relative else f"<code>{html.escape(name)}</code>"
    before = quotation.source[: quotation.start]
    marked = quotation.source[quotation.start : quotation.end]
    after = quotation.source[quotation.end :]
    # The text is underlined as well: with wide characters the carets may be misplaced, since these
    # are seldom two columns wide.
    line = f"{html.escape(before)}<u>{html.escape(marked)}</u>{html.escape(after)}"
    below = (
        f"\n{quotation.below}{quotation.carets} <b"
        f" class='course-mark'>{html.escape(quotation.label)}</b>"
        if quotation.carets
        else ""
    )
    return (
        f"<div>{join_sentences(report.place.lead, link)}<pre>{quotation.gutter}{line}{below}</pre>"
        "</div>"
    )


def write_inline(text: str) -> str:
    """Escape text, and mark `code` as code."""
    pieces = html.escape(text).split("`")
    return "".join(
        f"<code>{piece}</code>" if number % 2 else piece for number, piece in enumerate(pieces)
    )


_MARKS = [
    (r"\[([^\]]+)\]\((https?://[^\s)]+)\)", r'<a href="\2">\1</a>'),
    (r"(?<![a-zA-Z0-9_*])\*\*(?=\S)([^*]+)(?<=\S)\*\*(?![a-zA-Z0-9_*])", r"<b>\1</b>"),
    (r"(?<![a-zA-Z0-9_*])\*(?=\S)([^*]+)(?<=\S)\*(?![a-zA-Z0-9_*])", r"<em>\1</em>"),
]


def write_markdown(text: str) -> str:
    """Escape a text of the course, and write its `code`, *emphasis*, **strong words** and
    [links](https://...) as HTML.

    For a text that may have a learner's words in it, use :func:`write_inline`.
    """
    written = write_inline(text)
    pieces = re.split(r"(<code>.*?</code>)", written, flags=re.DOTALL)
    for mark, instead in _MARKS:
        pieces[::2] = [re.sub(mark, instead, piece) for piece in pieces[::2]]
    return "".join(pieces)
