"""``python -m course_lib.authoring.translations``: bring the catalogs of ``course_lib/locale`` up
to date with the English texts, and say how much of each is translated. A text whose English changed
keeps its translation, which is marked fuzzy and not shown until a person has read it."""

from __future__ import annotations

import ast
import difflib
import os
import re
import sys
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import polib

from course_lib import catalog
from course_lib.authoring import notebooks
from course_lib.authoring.site.guides import LEARNERS
from course_lib.base import paths
from course_lib.base.files import write_atomic
from course_lib.base.translation import (
    LANGUAGES,
    VARIABLE,
    find_catalog,
    read_catalog,
    split_blocks,
    split_help,
    translate_markdown,
)
from course_lib.catalog import texts
from course_lib.catalog.comments import translate_comments
from course_lib.exercises import find_parts
from course_lib.grading.cases.case import split_name
from course_lib.grading.judging.causes import CAUSES
from course_lib.lessons import prediction, steps
from course_lib.lessons.kit.output import CATALOG, list_marked

_ALIKE = 0.6  # as difflib measures it: from here on a new text counts as a change of an old one
_NO_WORDS = re.compile(
    r"```.*?```|\$\$.*?\$\$|`[^`]*`|\$[^$]*\$|<[^>]*>|\{\{\w+\}\}|\]\([^)\s]*\)|https?://\S+",
    re.DOTALL,
)
_IN_TEMPLATE = re.compile(r'(?<!\w)_\("([^"]+)"\)')  # a marked text of a page that Jinja fills
# what `make help` prints of a command, and below the commands
_IN_MAKEFILE = re.compile(r'^(?:[a-z-]+:.*## (.+)|\t@echo "(?!course)(.+)")$', re.MULTILINE)
_RELATIVE = re.compile(r"\]\((?![a-z]+:|#)([^)\s]+)")  # a link to a file of the repository
GUIDES = {"readme": "README.md"} | {name: f"docs/{name}.md" for name in LEARNERS}


def list_catalogs() -> list[str]:
    return [
        *(f"lesson{source.stem[:2]}" for source in notebooks.list_sources()),
        "interface",
        CATALOG,
        "causes",
        *GUIDES,
    ]


def list_texts(name: str) -> dict[str, str]:
    """Return every text of a catalog, with where it stands: a place for translators to look at."""
    places: dict[str, str] = {}

    def note(text: str, where: str) -> str:
        if re.search(r"[A-Za-z]{2}", _NO_WORDS.sub("", text)):
            places.setdefault(text, where)
        return text

    if name == "interface":
        tools = (paths.ROOT / "tools").glob("*.py")
        for file in [*sorted(paths.PACKAGE.rglob("*.py")), *sorted(tools)]:
            for text in _find_marked(file):
                places.setdefault(text, str(file.relative_to(paths.ROOT)))
        for file in sorted(paths.PACKAGE.rglob("templates/*.html")):
            for text in _IN_TEMPLATE.findall(file.read_text(encoding="utf-8")):
                places.setdefault(text, str(file.relative_to(paths.ROOT)))
        makefile = (paths.ROOT / "Makefile").read_text(encoding="utf-8")
        for command, line in _IN_MAKEFILE.findall(makefile):
            places.setdefault(command or line.replace('\\"', '"'), "make help")
        for text in _find_help(paths.PACKAGE / "cli" / "app.py"):
            places.setdefault(text, "course --help")
        for exercise in catalog.exercises().values():
            for case in chain.from_iterable(part.battery for part in find_parts(exercise).values()):
                note(case.split_why()[1], f"a case of exercise {exercise.id}")
    elif name == CATALOG:
        for file in sorted((paths.PACKAGE / "lessons").rglob("*.js")):
            for text in list_marked(file.read_text(encoding="utf-8")):
                places.setdefault(text, str(file.relative_to(paths.ROOT)))
    elif name == "causes":
        for cause, words in CAUSES.items():
            words.translate(lambda text, where=cause: note(text, where))
        for exercise in catalog.exercises().values():
            for case in chain.from_iterable(part.battery for part in find_parts(exercise).values()):
                for part in split_name(case.name):
                    if part not in exercise.entry_points and (" " in part or part.isalpha()):
                        note(part, f"the name of a case of exercise {exercise.id}")
    elif name in GUIDES:
        for block in split_blocks((paths.ROOT / GUIDES[name]).read_text(encoding="utf-8")):
            note(block, GUIDES[name])
    else:
        _note_lesson(name.removeprefix("lesson"), note)
    return places


def _note_lesson(lesson: str, note: Callable[[str, str], str]) -> None:
    [source] = [source for source in notebooks.list_sources() if source.stem[:2] == lesson]
    for cell in notebooks.read_source(source, filled=False).cells:
        if cell.cell_type == "markdown":
            for block in split_blocks(cell.source):
                note(block, source.name)
        elif cell.cell_type == "code":
            translate_comments(cell.source, lambda text: note(text, f"{source.name}, code"))
    for question in prediction.read_lesson(lesson).values():
        question.translate(lambda text, where=question.id: note(text, f"prediction {where}"))
    for step in steps.read_lesson(lesson).values():
        step.translate(lambda text, where=step.id: note(text, f"step {where}"))
    for exercise in catalog.exercises().values():
        if exercise.lesson == lesson:
            exercise.translate(lambda text, where=exercise.id: note(text, f"exercise {where}"))
            translate_comments(
                texts.make_unsolved_text(exercise),
                lambda text, where=exercise.file: note(text, f"exercises/{where}.py"),
            )


def _find_marked(file: Path) -> Iterator[str]:
    """Yield each text of a source file that stands in ``_("...")`` or ``N_("...")``."""
    code = file.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(code)) if re.search(r"gettext as _|mark as N_", code) else ():
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("_", "N_")
            and isinstance(node.args[0], ast.Constant)
        ):
            yield str(node.args[0].value)


def _find_help(file: Path) -> Iterator[str]:
    """Yield what ``--help`` says of the commands: docstring and epilog of each function, and the
    help of its options and arguments."""
    body = ast.parse(file.read_text(encoding="utf-8")).body
    shared = {
        node.targets[0].id: node.value
        for node in body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    for function in body:
        for call in function.decorator_list if isinstance(function, ast.FunctionDef) else ():
            if not (
                isinstance(call, ast.Call)
                and re.fullmatch(r"(app|author)\.(command|callback)", ast.unparse(call.func))
            ):
                continue
            words = {keyword.arg: keyword.value for keyword in call.keywords}
            assert isinstance(function, ast.FunctionDef)
            yield from split_help(ast.get_docstring(function))
            if isinstance(epilog := words.get("epilog"), ast.Constant):
                yield from split_help(str(epilog.value))
            named = [
                shared[node.id]
                for node in ast.walk(function.args)
                if isinstance(node, ast.Name) and node.id in shared
            ]
            for node in (node for tree in (function.args, *named) for node in ast.walk(tree)):
                if (
                    isinstance(node, ast.keyword)
                    and node.arg == "help"
                    and isinstance(node.value, ast.Constant)
                ):
                    yield str(node.value.value)


def update(language: str, name: str) -> polib.POFile:
    """Return a catalog with the texts of today: translations are kept by their English, and by
    likeness for a text that changed."""
    file = find_catalog(language, name)
    old = polib.pofile(str(file)) if file.exists() else polib.POFile()
    old_entries = {entry.msgid: entry for entry in old}
    texts = list_texts(name)
    dropped = [text for text, entry in old_entries.items() if text not in texts and entry.msgstr]
    new = polib.POFile(wrapwidth=100)
    new.metadata = {
        "Language": language,
        "Content-Type": "text/plain; charset=utf-8",
        "Content-Transfer-Encoding": "8bit",
    }
    for text, where in texts.items():
        entry = polib.POEntry(msgid=text, comment=where)
        if text in old_entries:
            entry.msgstr = old_entries[text].msgstr
            entry.flags = old_entries[text].flags
            entry.previous_msgid = old_entries[text].previous_msgid
        elif previous := _find_most_alike(text, dropped):
            entry.msgstr = old_entries[previous].msgstr
            entry.flags = ["fuzzy"]
            entry.previous_msgid = previous
        new.append(entry)
    return new


def _find_most_alike(text: str, candidates: list[str]) -> str | None:
    """Return the candidate that is most like ``text``; None if none is at least ``_ALIKE``.

    ``autojunk`` is off: in a text of 200 characters or more it would leave out every letter that is
    frequent, which is most of them.
    """
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(text)
    best, best_ratio = None, _ALIKE
    for candidate in candidates:
        matcher.set_seq1(candidate)
        if (
            matcher.real_quick_ratio() >= best_ratio
            and matcher.quick_ratio() >= best_ratio
            and matcher.ratio() >= best_ratio
        ):
            best, best_ratio = candidate, matcher.ratio()
    return best


def find_faults(entry: polib.POEntry) -> Iterator[str]:
    """Yield what a translation must have in common with its English and has not: code, formulas,
    links, names to fill in, numbers."""
    for kind, pattern in _SAME.items():
        # {step_count}, a number, may stand for {steps}, its English phrase
        english_parts, translated_parts = (
            sorted(pattern.findall(text.replace("_count}", "s}")))
            for text in (entry.msgid, entry.msgstr)
        )
        if english_parts != translated_parts:
            missing = [
                part
                for part in english_parts
                if english_parts.count(part) > translated_parts.count(part)
            ]
            extra = [
                part
                for part in translated_parts
                if translated_parts.count(part) > english_parts.count(part)
            ]
            yield f"{kind}: lacks {missing}, has {extra} too many"


_SAME = {
    "code": re.compile(r"(?<!`)`[^`]+`(?!`)|```.*?```", re.DOTALL),
    "formulas": re.compile(r"\$\$.+?\$\$|(?<!\$)\$[^$\n]+\$(?!\$)", re.DOTALL),
    "links": re.compile(r"\]\(([^)\s]+)\)"),
    "names to fill in": re.compile(r"\{\{?\w+\}\}?"),
    "identifiers of exercises": re.compile(r"(?<![\w.])\d\d[a-e](?!\w)"),
}


def write_readme(language: str) -> str:
    """Return README.md in another language, with a link to the English one. Each block of commands
    begins with the choice of the language, and links lead to the guides in that language."""
    language_link = f"[{LANGUAGES[language]}]({find_readme(language).name})"
    english = f"[{LANGUAGES['en']}](README.md)"
    text = translate_markdown(
        (paths.ROOT / "README.md").read_text(encoding="utf-8"), "readme", language
    )
    for name in LEARNERS:
        text = text.replace(f"](docs/{name}.md", f"](docs/{language}/{name}.md")
    commands = text.replace("```sh\n", f"```sh\nexport {VARIABLE}={language}\n")
    return commands.replace(language_link, english) + "\n"


def write_guide(name: str, language: str) -> str:
    """Return a guide for learners in another language, as it stands in ``docs/LANGUAGE``. A heading
    keeps the name by which links find it, which is made of the English words."""
    blocks = []
    for block in split_blocks((paths.ROOT / GUIDES[name]).read_text(encoding="utf-8")):
        if heading := re.fullmatch(r"##+ (.+)", block):
            anchor = re.sub(r"[^\w -]", "", heading[1].lower()).replace(" ", "-")
            blocks.append(f'<a id="{anchor}"></a>')
        blocks.append(translate_markdown(block, name, language))
    return _RELATIVE.sub(lambda link: _move_link(link[1], language), "\n\n".join(blocks)) + "\n"


def _move_link(target: str, language: str) -> str:
    """Return a link of ``docs`` as a file of ``docs/LANGUAGE`` has it."""
    if target.split("#")[0].removesuffix(".md") in LEARNERS:
        return f"]({target}"
    if target == "../README.md":
        target = f"../{find_readme(language).name}"
    return f"](../{target}"


def find_guide(name: str, language: str) -> Path:
    return paths.ROOT / "docs" / language / f"{name}.md"


def find_readme(language: str) -> Path:
    return paths.ROOT / f"README.{language.replace('_', '-')}.md"


def main(names: list[str]) -> int:
    """Update the catalogs that are named, or all, and the README in each language."""
    os.environ[VARIABLE] = "en"  # the texts that are looked for are English
    for language in LANGUAGES:
        if language == "en":
            continue
        for name in names or list_catalogs():
            updated = update(language, name)
            find_catalog(language, name).parent.mkdir(parents=True, exist_ok=True)
            updated.save(str(find_catalog(language, name)))
            faults = [
                (entry.msgid, fault)
                for entry in updated.translated_entries()
                for fault in find_faults(entry)
            ]
            print(
                f"{language}/{name}: {len(updated.translated_entries())} of {len(updated)}"
                f" translated, {len(updated.fuzzy_entries())} fuzzy"
            )
            for text, fault in faults:
                print(f"  {text[:60]!r}: {fault}")
        read_catalog.cache_clear()
        write_atomic(find_readme(language), write_readme(language))
        for name in LEARNERS:
            find_guide(name, language).parent.mkdir(exist_ok=True)
            write_atomic(find_guide(name, language), write_guide(name, language))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
