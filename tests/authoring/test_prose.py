"""The numbers in a lesson's prose: filled from stored files, or tied to what a run contradicts."""

from __future__ import annotations

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course_lib.authoring import prose
from course_lib.authoring.notebooks import list_sources, read_source
from course_lib.authoring.page_proof import make_page_proof
from course_lib.base.errors import CourseError
from course_lib.base.words import format_count


@pytest.mark.parametrize("source", list_sources(), ids=lambda s: s.stem)
def test_every_number_in_the_prose_comes_from_a_run(source):
    untied = prose.list_untied(make_page_proof(source).notebook)
    listed = "; ".join(f"{number} in {line!r}" for number, line in untied)
    assert not untied, (
        f"the prose of lesson {source.name[:2]} has {format_count(len(untied), 'number')} from no"
        f" run: {listed}"
    )


def list_untied(text: str, *cells: nbformat.NotebookNode) -> list[str]:
    return [
        number
        for number, _ in prose.list_untied(new_notebook(cells=[new_markdown_cell(text), *cells]))
    ]


@pytest.mark.parametrize(
    "text",
    [
        "LayerNorm takes 49 µs.",
        "It takes 2.5 reads.",
        "That is 9 %, a little.",
        "There are 489 chunks.",
        "An error of 3e-4.",
        "It did 67 · 10¹² of them.",
        "A block moves 16 MB.",
        "It was 1.27\ntimes the floor.",
        "In all, 14,000 rows.",
        "lane 3 takes 37 numbers",
    ],
)
def test_a_claim_is_listed_unless_it_is_tied(text):
    assert len(list_untied(text)) == 1
    number = {"67": "67e12", "14,000": "14_000"}
    (found,) = list_untied(text)
    literal = found.split(" ")[0].removesuffix("%")
    assert not list_untied(
        text, new_code_cell(f"assert measured == {number.get(literal, literal)}")
    )
    assert not list_untied(
        text,
        new_code_cell(
            f"find('x').answer == 'about {number.get(literal, literal)}'".replace("_", "")
        ),
    )
    if literal not in number:
        assert not list_untied(
            text,
            new_code_cell(
                "print(x)", outputs=[new_output("stream", text=f"x = {literal} of it\n")]
            ),
        )


@pytest.mark.parametrize(
    "text",
    [
        "# 06 A title with 77 in it",
        "*About 45 minutes, exercises included. Needs: lesson 00.*",
        "`x[77]` and $x_{77}$ and\n\n```python\n77\n```",
        "In lesson 77 and exercise 07a, rows 77 and 78 of fp16.",
        "Read on 21 November 2026, and in March 2025; it began in 2016.",
        "N = 1000, BLOCK = 1024 and eps = 1e-5; three of 12 programs.",
        "1024 columns, 65,536 rows, 1000 of them",
        "PyTorch 2.11 and Triton 3.6",
        "The [post](https://example.org/77) times three kernels: 126.5 µs.",
        "It took {{total_us}} µs.",
    ],
)
def test_a_definition_is_not_listed(text):
    assert not list_untied(text)


def test_a_guide_that_the_paragraph_names_is_a_source():
    assert list_untied("It took 1.61 times the floor.") == ["1.61 times"]
    assert not list_untied("It took 1.61 times the floor (`docs/kernels.md`).")
    assert list_untied("It took 1.61 times the floor.\n\nSee `docs/kernels.md`.") == ["1.61 times"]


def write_lesson(folder, *cells: str):
    path = folder / "99_some.py"
    path.write_text("\n\n".join(["# %%\nimport course_lib", *cells]))
    return path


def test_a_name_is_filled_from_a_cell_that_reads_stored_files(tmp_path):
    source = write_lesson(
        tmp_path,
        "# %% [markdown]\n# It takes {{us}} µs, {{ratio}} of the floor.",
        '# %% tags=["values"]\nmeasured = 48.7\nvalues = {"us": f"{measured:.0f}"}',
        '# %% tags=["values"]\nvalues = {"ratio": round(measured / 47.7, 2)}',
    )
    page = read_source(source)
    assert [cell.source for cell in page.cells] == [
        "import course_lib",
        "It takes 49 µs, 1.02 of the floor.",
    ]
    assert len(read_source(source, proof=True).cells) == 4, "nbval runs what made the values"


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (
            'values = {"ms": 1}',
            (
                r"cell-001: \{\{us\}\} has no value. A cell tagged `values` puts it into `values`;"
                r" these have ms."
            ),
        ),
        (
            "values = {'us': x}",
            "cell-002: NameError: name 'x' is not defined. A cell tagged `values` runs alone",
        ),
        ("us = 3", "cell-002: it makes no dictionary `values`"),
    ],
)
def test_a_value_that_is_not_there_stops_the_build(tmp_path, cell, words):
    source = write_lesson(
        tmp_path, "# %% [markdown]\n# It takes {{us}} µs.", f'# %% tags=["values"]\n{cell}'
    )
    with pytest.raises(CourseError, match=words):
        read_source(source)


def test_two_cells_do_not_say_two_things_under_one_name(tmp_path):
    cell = '# %% tags=["values"]\nvalues = {"us": 1}'
    with pytest.raises(CourseError, match="cell-002: `us` has a value already"):
        read_source(write_lesson(tmp_path, cell, cell))
