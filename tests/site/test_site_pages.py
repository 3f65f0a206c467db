"""What a notebook and a document become before Sphinx reads them."""

from __future__ import annotations

import copy
import itertools
import re
from html import unescape as html_words

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course_lib import catalog
from course_lib.authoring.notebooks import ANSWER, DIVE, read_with_answers
from course_lib.authoring.repository import DISTRIBUTION, START, list_launches
from course_lib.authoring.site import front, guides, html, lessons
from course_lib.authoring.site.html import CourseSource, write_headings_flat
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.translation import VARIABLE, translate_markdown
from course_lib.lessons import prediction

NOTEBOOKS = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
README = (paths.ROOT / "README.md").read_text(encoding="utf-8")
HERE, PUBLISHED = CourseSource(), CourseSource("https://example.org/norms/course")
TITLE = "# 99 Nothing\n\nIt is here. In this lesson you look at it.\n\n*About 5 minutes.*"


def place_of(page: nbformat.NotebookNode) -> list[tuple[int, str]]:
    """Each cell's source with the number of folds that are open where it stands."""
    depth, found = 0, []
    for cell in page.cells:
        found.append((depth, cell.source))
        depth += cell.source.count("<details ") - cell.source.count("</details>")
        assert depth >= 0
    assert depth == 0, "a fold is never closed"
    return found


def make_notebook(*cells: nbformat.NotebookNode) -> nbformat.NotebookNode:
    return new_notebook(cells=[new_markdown_cell(TITLE), *cells])


def tagged(tag: str, cell: nbformat.NotebookNode) -> nbformat.NotebookNode:
    cell.metadata["tags"] = [tag]
    return cell


def show(markup: str, source: str = "show()") -> nbformat.NotebookNode:
    return new_code_cell(
        source, outputs=[new_output("display_data", {"text/html": markup, "text/plain": "words"})]
    )


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_every_answer_of_a_lesson_is_folded(file):
    notebook = nbformat.read(file, as_version=4)
    before = copy.deepcopy(notebook)
    placed = place_of(lessons.make_page(notebook, file.stem, HERE))
    assert notebook == before
    for cell in notebook.cells:
        if ANSWER in cell.metadata.get("tags", []):
            assert [depth for depth, source in placed if cell.source in source] == [1]
    for question in prediction.read_lesson(file.stem[:2]).values():
        answer = lessons.write_markdown(question.why)
        depths = [depth + source.count("<details ") for depth, source in placed if answer in source]
        assert depths and min(depths) >= 1, question.id
        asked = [
            depth for depth, source in placed if lessons.write_markdown(question.question) in source
        ]
        assert asked, f"{question.id} is not asked on the page"


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_what_a_lesson_printed_and_drew_is_on_its_page(file):
    notebook = read_with_answers(file)
    page = lessons.make_page(notebook, file.stem, HERE)

    def list_kept(of):
        return list(filter(None, [
            output.get("text") or output["data"].get("image/png") or re.findall(r'data-picture="[^"]+"', output["data"].get("text/html", ""))  # noqa: E501
            for cell in of.cells if cell.cell_type == "code" and not lessons._find_call(cell,
                "predict") for output in cell.outputs
        ]))  # fmt: skip

    assert list_kept(page) == list_kept(notebook)


def test_outputs_of_other_code_are_refused(tmp_path):
    other = nbformat.read(NOTEBOOKS[0], as_version=4)
    next(
        cell
        for cell in other.cells
        if ANSWER in cell.metadata.get("tags", []) and cell.cell_type == "code"
    ).source = "1"
    nbformat.write(other, tmp_path / NOTEBOOKS[0].name)
    with pytest.raises(CourseError, match="outputs of other code"):
        read_with_answers(tmp_path / NOTEBOOKS[0].name)


def test_a_lesson_links_the_next_one():
    for file, following in itertools.pairwise(NOTEBOOKS):
        words = "".join(cell.source for cell in nbformat.read(file, as_version=4).cells)
        assert f"**Next:** [lesson {following.name[:2]}]({following.name})" in words


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_each_exercise_of_a_lesson_shows_the_code_that_is_given(file):
    page = lessons.make_page(nbformat.read(file, as_version=4), file.stem, HERE)
    shown = [
        cell.source for cell in page.cells if cell.source.startswith("Your file as you get it")
    ]
    given = [
        exercise for exercise in catalog.exercises().values() if exercise.id[:2] == file.stem[:2]
    ]
    assert len(shown) == len(given)
    for exercise, source in zip(given, shown, strict=True):
        unsolved = (paths.ROOT / "exercises" / f"{exercise.file}.py").read_text(encoding="utf-8")
        code = source.partition("```python\n")[2].removesuffix("\n```")
        assert unsolved.rstrip().endswith(code) and ("YOUR CODE" in code or "REPAIR" in code)
        assert exercise.file in source


def test_answers_in_a_row_share_a_fold_with_their_question():
    question = next(iter(prediction.read_lesson("03").values()))
    notebook = make_notebook(
        new_code_cell(f'predict("{question.id}")'),
        tagged(ANSWER, new_code_cell("print(1)")),
        tagged(ANSWER, new_code_cell("print(2)")),
        new_markdown_cell("On it goes."),
    )
    placed = place_of(lessons.make_page(notebook, "99_nothing", HERE))
    depths = {source: depth for depth, source in placed}
    assert depths["print(1)"] == depths["print(2)"] == 1 and depths["On it goes."] == 0
    assert sum(source.count("<details ") for _, source in placed) == 1
    assert not any("What came out" in source for source in depths)


def test_a_dive_is_folded_up_to_the_next_heading():
    notebook = make_notebook(
        tagged(DIVE, new_markdown_cell("## Dive: why\n\nBecause.")),
        new_markdown_cell("### And then\n\nMore."),
        new_markdown_cell("## After\n\nOutside."),
    )
    depths = {
        source.strip(): depth
        for depth, source in place_of(lessons.make_page(notebook, "99_nothing", HERE))
    }
    assert depths["## Dive: why"] == 0 and depths["Because."] == 1
    assert next(depth for source, depth in depths.items() if "And then" in source) == 1
    assert depths["## After\n\nOutside."] == 0


def test_a_sentence_stands_where_only_python_can_answer():
    page = lessons.make_page(
        make_notebook(
            tagged(
                "step", show("<p>○ Step 99-add: not yet</p>", '# REPAIR: x\nx = 1\nstep("99-add")')
            ),
            show("<p><em>Run this cell for the controls that ask Python.</em></p>"),
            show("<p>Run this cell to see</p>", 'review_predictions("99")'),
            show("<p>A game. Run this cell to play it; or leave it.</p>", "play()"),
        ),
        "99_nothing",
        HERE,
    )
    outputs = [
        output["data"]["text/html"] for cell in page.cells for output in cell.get("outputs", [])
    ]
    assert all(lessons.RUN in markup for markup in outputs)
    assert outputs[-1] == f"<p>A game. To play it, {lessons.RUN}; or leave it.</p>"
    assert "marked REPAIR" in outputs[0] and "not yet" not in outputs[0]
    assert any('id="run-this-lesson"' in cell.source for cell in page.cells)


def test_an_output_that_tells_the_reader_to_run_a_cell_is_refused():
    with pytest.raises(CourseError, match="Run this cell and hope"):
        lessons.make_page(make_notebook(show("<p>Run this cell and hope.</p>")), "99_nothing", HERE)


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_the_first_page_knows_each_lesson(file):
    lesson = lessons.read_lesson(nbformat.read(file, as_version=4), file.stem, README)
    assert lesson.title.startswith(file.stem[:2]) and 5 <= lesson.minutes <= 120
    assert lesson.about.endswith((".", "?")) and len(lesson.about) < 500
    assert set(lesson.exercises) == {key for key in catalog.exercises() if key[:2] == file.stem[:2]}
    assert lesson.predictions >= len(prediction.read_lesson(file.stem[:2]))


def test_a_lesson_without_its_minutes_is_refused():
    with pytest.raises(CourseError, match="About N minutes"):
        lessons.read_lesson(
            new_notebook(cells=[new_markdown_cell("# 99 Nothing\n\nWords.")]), "99_nothing", ""
        )


def test_a_lesson_that_the_readme_does_not_have_is_told_by_its_first_sentences():
    assert (
        lessons.read_lesson(make_notebook(), "99_nothing", README).about
        == "It is here. In this lesson you look at it."
    )
    row = "| [99 nothing](notebooks/99_nothing.ipynb): what is not there | 5 | nothing |"
    assert lessons.read_lesson(make_notebook(), "99_nothing", row).about == "What is not there."


def test_a_lesson_is_about_the_same_in_chinese(monkeypatch):
    monkeypatch.setenv(VARIABLE, "zh_CN")
    readme = translate_markdown(README, "readme")
    for file in NOTEBOOKS:
        about = lessons.read_lesson(nbformat.read(file, as_version=4), file.stem, readme).about
        assert about.endswith("。") and about.removesuffix("。") in readme


def test_the_commands_of_a_clone_name_the_repository_where_it_is_known():
    assert PUBLISHED.clone == (
        "git clone https://example.org/norms/course && cd course",
        "make lab",
    )
    assert HERE.clone == ()


def test_the_same_commands_stand_wherever_the_course_says_how_it_starts():
    setup = (paths.ROOT / "docs" / "setup.md").read_text(encoding="utf-8")
    assert "\n".join(START) in setup
    assert START[0] in README
    folder_readme = (paths.ROOT / "course_lib" / "learner" / "folder_readme.md").read_text(
        encoding="utf-8"
    )
    assert f"uvx {DISTRIBUTION} lab" in folder_readme, "that folder has no Makefile"


@pytest.mark.parametrize(
    ("page", "file"),
    [
        ("notebooks/00_start_here", "notebooks/source/00_start_here.py"),
        ("docs/setup", "docs/setup.md"),
        ("CONTRIBUTING", "CONTRIBUTING.md"),
        ("index", ""),  # put together from many files
        ("docs/verdicts", ""),  # written by the course
        ("search", ""),
    ],
)
def test_a_page_is_edited_where_its_text_stands(page, file):
    assert PUBLISHED.find_edit_link(page) == (
        file and f"https://example.org/norms/course/edit/main/{file}"
    )
    assert HERE.find_edit_link(page) == ""


def test_a_lesson_opens_elsewhere_where_the_repository_is_known():
    def list_links(source):
        page = lessons.make_page(make_notebook(), "99_nothing", source)
        return set(
            re.findall(
                r'class="button" href="([^"]+)"', "".join(cell.source for cell in page.cells)
            )
        )

    github = "https://github.com/example/norms"
    assert list_links(CourseSource(github)) == set(
        list_launches(github, "notebooks/99_nothing.ipynb").values()
    )
    assert list_links(HERE) == list_links(PUBLISHED) == set()


TAB = CourseSource(tab_bytes=23_400_000, bf16_in_tab=False)
RUN_HERE = "Run this lesson here (23 MB, nothing to install)"


def write_page(name, source):
    page = lessons.make_page(make_notebook(), name, source)
    return "".join(cell.source for cell in page.cells)


def find_places(page, *words):
    assert [page.count(each) for each in words] == [1] * len(words)
    return [page.index(each) for each in words]


def test_the_first_button_of_a_lesson_runs_it_here_where_the_site_has_a_tab():
    page = write_page("03_large_means", TAB)
    button, text = re.findall(r'<a class="button[^>]*href="([^"]+)"[^>]*>([^<]+)</a>', page)[0]
    assert (button, text) == ("../tab/lab/index.html?path=notebooks/03_large_means.ipynb", RUN_HERE)
    places = find_places(
        page,
        RUN_HERE,
        "Or read it on this page",
        "On your machine everything runs",
        'class="commands"',
    )
    assert places == sorted(places)
    assert "tab/lab" not in write_page("03_large_means", HERE)


@pytest.mark.parametrize("bf16, said", [(True, 0), (False, 1)])
def test_the_button_says_what_stands_in_for_bf16(bf16, said):
    assert (
        write_page("03_large_means", CourseSource(tab_bytes=1, bf16_in_tab=bf16)).count(
            "fp16 stands in for bf16"
        )
        == said
    )


@pytest.mark.parametrize("number, reason", [("14", "PyTorch"), ("15", "GPU")])
def test_a_lesson_that_does_not_run_in_a_tab_says_why(number, reason):
    (name,) = [file.stem for file in NOTEBOOKS if file.stem.startswith(number)]
    (sentence,) = re.findall(
        r"This lesson does not run in a browser tab: [^<]+", write_page(name, TAB)
    )
    assert reason in sentence and "tab/lab" not in write_page(name, TAB)
    assert "browser tab" not in write_page(name, HERE)


def write_first_page(source):
    notebooks = {file.stem: nbformat.read(file, as_version=4) for file in NOTEBOOKS[:2]}
    return front.write_front(
        notebooks,
        [lessons.read_lesson(notebook, name, README) for name, notebook in notebooks.items()],
        [],
        source,
    )


def test_the_first_page_says_how_to_run_then_to_read_then_to_install():
    page = write_first_page(TAB)
    first, *_ = re.findall(r'<a class="button[^>]*href="([^"]+)"', page)
    assert first == "tab/lab/index.html?path=notebooks/00_start_here.ipynb"
    places = find_places(
        page,
        RUN_HERE,
        ">Read it</a>",
        'data-picture="block_stepper',
        "## Start",
        'class="commands"',
    )
    assert places == sorted(places) and "In JupyterLab, on your machine" not in page


def test_the_first_page_of_a_site_without_a_tab_lets_read_first():
    page = write_first_page(HERE)
    assert re.findall(r'<a class="button[^>]*href="([^"]+)"', page) == [
        "notebooks/00_start_here.html"
    ]
    assert (
        "tab" not in re.findall(r'href="([^"]+)"', page)
        and "On this site you can read every lesson" in page
    )


@pytest.mark.parametrize(
    "page", [lambda source: write_page("03_large_means", source), write_first_page]
)
@pytest.mark.parametrize(
    "published, source, commands",
    [(True, HERE, START), (False, PUBLISHED, PUBLISHED.clone), (False, HERE, ("make lab",))],
)
def test_the_commands_are_those_that_work_today(page, published, source, commands, monkeypatch):
    monkeypatch.setattr(html, "is_published", lambda: published)
    monkeypatch.setattr(html, "START", commands)
    (shown,) = re.findall(r'<pre class="commands">([^<]+)</pre>', page(source))
    assert html_words(shown) == "\n".join(commands)


def test_the_first_page_has_a_picture_that_says_what_moves_it():
    notebooks = {file.stem: nbformat.read(file, as_version=4) for file in NOTEBOOKS[:2]}
    name, moves, markup = front.find_picture(notebooks)
    assert name == NOTEBOOKS[1].stem and "Play" in moves
    assert 'data-picture="block_stepper-' in markup and "Run this cell" not in markup


def test_a_lesson_cannot_be_first_without_a_picture():
    with pytest.raises(CourseError, match="first page"):
        front.find_picture({"99_nothing": make_notebook()})


@pytest.mark.parametrize(
    ("given", "here", "published"),
    [
        ("[way](../CONTRIBUTING.md)", "[way](../CONTRIBUTING.md)", "[way](../CONTRIBUTING.md)"),
        (
            "[it](../Makefile#L3)",
            "it",
            "[it](https://example.org/norms/course/blob/main/Makefile#L3)",
        ),
        (
            "[out](https://example.org/x.md)",
            "[out](https://example.org/x.md)",
            "[out](https://example.org/x.md)",
        ),
        ("[below](#part)", "[below](#part)", "[below](#part)"),
    ],
)
def test_links_lead_to_a_page_or_to_the_repository(given, here, published):
    pages = {"CONTRIBUTING.md", "docs/kernels.md"}
    assert guides.mend_links(given, "docs/kernels.md", HERE, pages) == here
    assert guides.mend_links(given, "docs/kernels.md", PUBLISHED, pages) == published


def test_a_link_to_no_file_is_refused():
    with pytest.raises(CourseError, match=r"no docs/nowhere\.md in the repository"):
        guides.mend_links("[x](nowhere.md)", "docs/kernels.md", HERE, set())


def test_each_verdict_is_folded_under_its_exercise():
    text = (paths.ROOT / guides.VERDICTS).read_text(encoding="utf-8")
    page = guides.write_verdicts(text)
    assert page.count("<details ") == page.count("</details>") == text.count(", mutant `")
    exercises = re.findall(r"^## (\d\d[a-z]) ", page, re.MULTILINE)
    assert exercises == sorted(exercises) and set(exercises) == set(
        re.findall(r"^Exercise (\w+), mutant", text, re.MULTILINE)
    )
    for cause in re.findall(r"^## (\w+): ", text, re.MULTILINE):
        assert page.count(f'id="cause-{cause}"') == page.count(f'href="#cause-{cause}"') == 1


def test_verdicts_that_are_laid_out_otherwise_are_refused():
    with pytest.raises(CourseError, match="laid out"):
        guides.write_verdicts(
            "# Verdicts\n\n| Exercise | Wrong |\n\n## one: is\n\nwrong\n\n## two: is\n\nwrong,"
            " too\n"
        )


def test_only_headings_become_rubrics():
    flat = write_headings_flat("## A\n\n```python\n# a comment\n```\n#not a heading\n### B")
    assert (
        flat.count("{rubric}") == 2 and "\n# a comment\n" in flat and "\n#not a heading\n" in flat
    )
    assert ":heading-level: 2" in flat and ":heading-level: 3" in flat
