"""Turns the repository's documents into pages, under their paths in the repository, so that the
links between them stay right."""

from __future__ import annotations

import html
import os
import re
from pathlib import PurePosixPath

from course_lib import catalog
from course_lib.authoring.site.html import CourseSource, close_fold, open_fold, write_raw
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.translation import choose_language, split_blocks, translate_markdown

VERDICTS = "docs/verdicts.md"
# the first documents, in this order; the others in docs/ follow
_FIRST = ("docs/setup.md", "docs/commands.md", "docs/glossary.md", "docs/instructors.md",
    "CONTRIBUTING.md", "docs/authoring.md", "docs/architecture.md", "docs/kernels.md",
    "docs/kernel-trials.md",
    "docs/evidence.md", VERDICTS, "docs/cpu-mode.md", "docs/security.md",
    "docs/site.md")  # fmt: skip
# documents in docs/ that are translated, by their catalogs
LEARNERS = ("setup", "commands", "browser", "cpu-mode", "glossary", "evidence")
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
_SECTION = re.compile(r"^## (\w+)(?:: (.*))?$", re.MULTILINE)
_ORIGIN = re.compile(r"Exercise (\w+), mutant `([^`]+)`:\n\n")
_COUNT = re.compile(r"^\| (\w+) \| (\d+) \|$", re.MULTILINE)


def list_guides() -> list[str]:
    """Return the paths of the documents in the repository, in the order of the site."""
    names = {f"docs/{path.name}" for path in (paths.ROOT / "docs").glob("*.md")} | {
        "CONTRIBUTING.md"
    }
    return [name for name in _FIRST if name in names] + sorted(names - set(_FIRST))


def read_guide(name: str, source: CourseSource, pages: set[str]) -> str:
    """Return a document as Markdown for MyST. ``pages`` has the paths in the repository for which
    the site has a page.

    Raises: CourseError if a link names no file of the repository, or if docs/verdicts.md has
    another layout than expected.
    """
    text = (paths.ROOT / name).read_text(encoding="utf-8")
    if (catalog_name := PurePosixPath(name).stem) in LEARNERS and choose_language() != "en":
        text = _translate(text, catalog_name)
    return mend_links(write_verdicts(text) if name == VERDICTS else text, name, source, pages)


def _translate(text: str, catalog_name: str) -> str:
    """Translate a document. A heading keeps the name by which links find it, which MyST makes of
    the English words."""
    blocks = []
    for block in split_blocks(text):
        translated = translate_markdown(block, catalog_name)
        if translated != block and (heading := re.fullmatch(r"##+ (.+)", block)):
            name = re.sub(r"[^\w -]", "", heading[1].lower()).replace(" ", "-")
            translated = f"({name})=\n\n{translated}"
        blocks.append(translated)
    return "\n\n".join(blocks)


def mend_links(text: str, name: str, source: CourseSource, pages: set[str]) -> str:
    """Change links inside the repository: to the page if the site has one, else to the file in the
    repository, else to plain words."""

    def mend(match: re.Match[str]) -> str:
        words, target, anchor = match[1], match[2], match[3] or ""
        if not target or re.match(r"[a-z]+:", target):
            return match[0]
        path = PurePosixPath(os.path.normpath(PurePosixPath(name).parent / target))
        if str(path) in pages:
            return match[0]
        if not (paths.ROOT / path).exists():
            raise CourseError(
                f"{name} links to {target}, and there is no {path} in the repository."
            )
        return (
            f"[{words}]({source.repository}/blob/main/{path}{anchor})"
            if source.repository
            else words
        )

    return _LINK.sub(mend, text)


def write_verdicts(text: str) -> str:
    """Return docs/verdicts.md sorted by exercise, with each verdict folded under its headline.

    Raises: CourseError if a section names no exercise.
    """
    head, *sections = re.split(r"(?=^## )", text, flags=re.MULTILINE)
    counts = dict(_COUNT.findall(head))
    folds: dict[str, list[tuple[str, str, str]]] = {}
    other_sections, causes = [], []
    for section in sections:
        title, origin = _SECTION.match(section), _ORIGIN.search(section)
        if title is None or origin is None:
            other_sections.append(section)
            continue
        cause, exercise = title[1], origin[1]
        headline = title[2] or cause.replace("_", " ")
        causes.append((cause, exercise))
        verdict = re.sub(r"^> ?", "", section[origin.end() :], flags=re.MULTILINE).replace(
            "```python", "```text"
        )
        summary = f"{_capitalise(html.escape(headline))} <code>{cause}</code>"
        fold = (
            f"{open_fold(summary, look='verdict', anchor=f'cause-{cause}')}\n\nA wrong solution,"
            f" `{origin[2]}`:\n\n{verdict}\n\n{close_fold()}\n"
        )
        folds.setdefault(exercise, []).append((headline, cause, fold))
    if (
        not folds
        or any(exercise not in catalog.exercises() for exercise in folds)
        or len(other_sections) > 1
    ):
        raise CourseError(
            f"{VERDICTS} is not laid out as course_lib.authoring.verdicts writes it; so the site"
            " cannot sort it."
        )
    intro = head[: head.index("| Exercise |")]
    parts = [
        intro,
        (
            f"The verdicts stand under their exercises: {len(causes)} causes, found among"
            f" {counts['all']} wrong solutions. Open the one that you want to read; the names of"
            " all causes are at the end.\n"
        ),
    ]
    for exercise in sorted(folds):
        verdicts = "\n".join(
            fold for *_, fold in sorted(folds[exercise], key=lambda entry: entry[0].lower())
        )
        parts.append(
            f"## {exercise} {catalog.get(exercise).title}\n\n{counts[exercise]} wrong solutions in"
            f" all.\n\n{verdicts}"
        )
    items = "".join(
        f'<li><a href="#cause-{cause}"><code>{cause}</code></a>, exercise {exercise}</li>'
        for cause, exercise in sorted(causes)
    )
    names = write_raw(f'<ul class="columns">{items}</ul>')
    return "\n".join([*parts, *other_sections, "## All causes by name\n", names, ""])


def _capitalise(words: str) -> str:
    """Return the words with a capital letter; a symbol (dx, eps) at the beginning stays as it
    is."""
    first_word = words.split()[0]
    return (
        words
        if first_word in ("dx", "dw", "db", "eps", "c1", "c2", "x", "w", "b", "y", "rstd")
        else words[0].upper() + words[1:]
    )
