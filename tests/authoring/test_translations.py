"""The catalogs of translations: they have every text of the course, and nothing in them differs
from the English but the words."""

from __future__ import annotations

import ast
import re

import polib
import pytest

from course_lib.authoring import translations
from course_lib.authoring.site.guides import LEARNERS
from course_lib.authoring.translations import (
    find_faults,
    find_guide,
    find_readme,
    list_catalogs,
    update,
    write_guide,
    write_readme,
)
from course_lib.base import paths, translation
from course_lib.base.translation import FOLDER, LANGUAGES, find_catalog

OTHERS = sorted(LANGUAGES.keys() - {"en"})


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("name", list_catalogs())
def test_a_catalog_has_the_texts_of_today(language, name):
    kept = polib.pofile(str(find_catalog(language, name)))
    assert [entry.msgid for entry in kept] == [entry.msgid for entry in update(language, name)], (
        "the English changed: `python -m course_lib.authoring.translations` brings the catalogs up"
        " to date"
    )


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("name", list_catalogs())
def test_a_translation_keeps_code_formulas_links_and_names(language, name):
    entries = polib.pofile(str(find_catalog(language, name))).translated_entries()
    assert not [(entry.msgid[:80], fault) for entry in entries for fault in find_faults(entry)]


@pytest.mark.parametrize("language", OTHERS)
def test_the_readme_is_the_translation_of_today(language):
    assert find_readme(language).read_text(encoding="utf-8") == write_readme(language)


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("name", LEARNERS)
def test_a_guide_is_the_translation_of_today_and_its_links_lead_somewhere(language, name):
    file = find_guide(name, language)
    text = file.read_text(encoding="utf-8")
    assert text == write_guide(name, language)
    for target, anchor in re.findall(r"\]\((?![a-z]+:)([^)\s#]*)(?:#([^)\s]+))?\)", text):
        linked = file.parent / target if target else file
        assert linked.exists(), target
        if anchor and linked.parent == file.parent:
            assert f'<a id="{anchor}"></a>' in linked.read_text(encoding="utf-8"), anchor


@pytest.mark.parametrize("language", OTHERS)
def test_the_readme_names_the_language_before_commands_and_links_translated_guides(language):
    text = find_readme(language).read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*)\n", text)
    assert blocks and set(blocks) == {f"export COURSE_LANG={language}"}
    guides = [name for name in LEARNERS if f"docs/{language}/{name}.md" in text]
    assert "setup" in guides
    assert not [name for name in LEARNERS if f"(docs/{name}.md" in text]


def test_there_is_no_catalog_for_something_that_is_gone():
    assert {file.stem for file in FOLDER.rglob("*.po")} == set(list_catalogs())


@pytest.mark.parametrize(
    ("english", "chinese", "fault"),
    [
        ("Call `tl.sum`.", "调用 `tl.max`。", "code"), ("It is $x^2$.", "它是 $x^3$。", "formulas"),
        ("See [it](a.md).", "见 [它](b.md)。", "links"),
        ("In {{time}} us.", "用 {{times}} us。", "names to fill in"),
        ("As in 07a.", "同 07b。", "identifiers"),
    ],
)  # fmt: skip
def test_a_part_that_was_changed_with_the_words_is_named(english, chinese, fault):
    assert next(find_faults(polib.POEntry(msgid=english, msgstr=chinese))).startswith(fault)


def test_a_text_that_changed_keeps_its_translation_as_fuzzy(tmp_path, monkeypatch):
    old = polib.POFile()
    old.append(
        polib.POEntry(msgid="Every row has a mean and a variance.", msgstr="每行都有均值和方差。")
    )
    old.append(polib.POEntry(msgid="Run this cell.", msgstr="运行这个单元格。"))
    (tmp_path / "zh_CN").mkdir()
    old.save(str(tmp_path / "zh_CN" / "causes.po"))
    monkeypatch.setattr(
        translations, "find_catalog", lambda language, name: tmp_path / language / f"{name}.po"
    )
    monkeypatch.setattr(
        translations,
        "list_texts",
        lambda name: {
            "Each row has a mean and a variance.": "a",
            "Run this cell.": "b",
            "New.": "c",
        },
    )
    changed, same, new = update("zh_CN", "causes")
    assert (
        changed.fuzzy
        and changed.msgstr == "每行都有均值和方差。"
        and changed.previous_msgid == "Every row has a mean and a variance."
    )
    assert same.translated() and not new.msgstr


def test_a_long_text_with_one_new_word_is_found_again():
    """Its frequent letters count: without them a paragraph of this length was no longer like
    itself, and its translation was deleted."""
    paragraph = (
        "Every program takes a row of the matrix, adds its numbers in a tree of lanes, and writes a"
        " mean that later passes read. " * 4
    )
    other = "Lanes without an element load zero. " * 14
    assert (
        translations._find_most_alike(paragraph.replace("writes", "stores", 1), [other, paragraph])
        == paragraph
    )
    assert (
        translations._find_most_alike("Quite another thing: 1, 2, 3.", [other, paragraph]) is None
    )


def test_what_joins_the_words_of_a_picture_can_be_translated():
    assert {", ", "{0}, {1}"} <= translations.list_texts("pictures").keys()


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _names_mark(node: ast.AST, kind: type[ast.expr_context]) -> bool:
    return isinstance(node, ast.Name) and node.id == "_" and isinstance(node.ctx, kind)


def test_no_file_with_marked_texts_uses_their_mark_for_a_variable():
    """``_`` as a variable would hide the function of that name in the whole function; that of a
    comprehension hides it there alone."""
    for file in sorted(paths.PACKAGE.rglob("*.py")):
        code = file.read_text(encoding="utf-8")
        if "gettext as _" in code:
            nodes = list(ast.walk(ast.parse(code)))
            own = [list(ast.walk(node)) for node in nodes if isinstance(node, _COMPREHENSIONS)]
            inside = {
                id(node)
                for tree in own
                if not any(_names_mark(node, ast.Load) for node in tree)
                for node in tree
            }
            stored = [
                node.lineno
                for node in nodes
                if _names_mark(node, ast.Store) and id(node) not in inside
            ]
            assert not stored + [
                node.lineno for node in nodes if isinstance(node, ast.arg) and node.arg == "_"
            ], file
            calls = [
                node
                for node in nodes
                if isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "_"
            ]
            built = [
                ast.unparse(call)
                for call in calls
                if isinstance(call.args[0], (ast.JoinedStr, ast.BinOp))
            ]
            assert not built, (
                f"{file}: a marked text is a plain string, or a constant that N_ marks: {built}"
            )


@pytest.mark.parametrize("language", OTHERS)
def test_a_choice_means_the_same_in_a_question_as_in_its_answers(language):
    """Two choices of one question have two translations."""
    for name in list_catalogs():
        entries = [
            entry
            for entry in polib.pofile(str(find_catalog(language, name)))
            if re.match(r"prediction ", entry.comment or "")
        ]
        by_question: dict[str, list[str]] = {}
        for entry in entries:
            if entry.translated():
                by_question.setdefault(entry.comment, []).append(entry.msgstr)
        for question, said in by_question.items():
            assert len(set(said)) == len(said), (
                f"{name}, {question}: two texts have the same translation"
            )


def test_every_marked_text_of_a_page_is_found():
    """Jinja takes a text in single quotes, too, or a variable; the catalog would not have it."""
    templates = sorted(paths.PACKAGE.rglob("templates/*.html"))
    marked = {
        file.name: len(re.findall(r"(?<!\w)_\(", file.read_text(encoding="utf-8")))
        for file in templates
    }
    assert marked["status.html"] and marked == {
        file.name: len(translations._IN_TEMPLATE.findall(file.read_text(encoding="utf-8")))
        for file in templates
    }


def test_a_language_is_added_by_the_translators_page_alone(tmp_path, monkeypatch, capsys):
    """docs/translating.md names each step: a line in LANGUAGES, the command, a translated catalog,
    the mark of a changed text that is taken away."""
    page = (paths.ROOT / "docs" / "translating.md").read_text(encoding="utf-8")
    assert "python -m course_lib.authoring.translations" in page and "`LANGUAGES`" in page
    assert 'LANGUAGES = {"en"' in (paths.PACKAGE / "base" / "translation.py").read_text()
    [(key, name)] = re.findall(r'`"(\w+)": "(\w+)"`', page)
    monkeypatch.setattr(translations, "LANGUAGES", languages := {"en": "English", key: name})
    monkeypatch.setattr(translation, "LANGUAGES", languages)
    monkeypatch.setattr(translation, "FOLDER", tmp_path / "locale")
    monkeypatch.setattr(translations, "find_readme", lambda language: tmp_path / "README.eo.md")
    monkeypatch.setattr(translations, "find_guide", lambda name, _: tmp_path / "docs" / name)
    texts = {"Run this cell.": "a place", "Each row has a mean.": "another"}
    monkeypatch.setattr(translations, "list_texts", lambda name: texts)
    monkeypatch.setenv("COURSE_LANG", "en")

    assert translations.main(["interface"]) == 0
    assert "eo/interface: 0 of 2 translated" in capsys.readouterr().out
    translate_entry(key, "Run this cell.", "Rulu la ĉelon.")
    texts["Every row has a mean."] = texts.pop("Each row has a mean.")
    translate_entry(key, "Each row has a mean.", "Ĉiu vico havas meznombron.")
    translations.main(["interface"])
    assert "1 of 2 translated, 1 fuzzy" in capsys.readouterr().out
    monkeypatch.setenv("COURSE_LANG", key)
    assert translation.gettext("Run this cell.") == "Rulu la ĉelon."
    assert translation.gettext("Every row has a mean.") == "Every row has a mean."

    file = translation.find_catalog(key, "interface")
    lines = file.read_text(encoding="utf-8").split("\n")
    file.write_text(
        "\n".join(line for line in lines if not line.startswith(("#, fuzzy", "#|"))),
        encoding="utf-8",
    )
    translation.read_catalog.cache_clear()
    assert translation.gettext("Every row has a mean.") == "Ĉiu vico havas meznombron."
    assert (tmp_path / "README.eo.md").exists()
    translation.read_catalog.cache_clear()


def translate_entry(language: str, english: str, translated: str) -> None:
    file = translation.find_catalog(language, "interface")
    catalog = polib.pofile(str(file))
    [entry] = [entry for entry in catalog if entry.msgid == english]
    entry.msgstr = translated
    catalog.save(str(file))
