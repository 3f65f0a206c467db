"""The proof of a lesson's notebook as it lies on disk: its cells, its stored outputs, and the cells
that prove what it says.

The learner's page lacks the cells tagged ``check`` and ``values``, and shows its steps unsolved.
Both come from the script. A person may have changed the page in JupyterLab, so its cells are
matched with those that the script builds by their texts, not by their ids.
"""

from __future__ import annotations

import copy
import difflib
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_notebook

from course_lib.authoring import notebooks
from course_lib.authoring.notebooks import STEP, VARIES, find_notebook, read_script, read_source
from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.words import format_count
from course_lib.catalog.cut import CELL_WIDTH, drop_marks, fill_in

NAME = "nbval_name"  # metadata of a cell of a proof: what a report calls the cell
_MIN_SIMILARITY = 0.6  # of two texts that are the same cell, edited


@dataclass(frozen=True)
class PageProof:
    """The proof of a page.

    Args:
        notebook: the cells that run, with the outputs that the page has stored.
        changes: where the page says something else than its script builds, such as "cell 7 is
            changed".
        stored_by_build: False if somebody ran the page and saved it. Then the outputs may be those
            of another machine.
        never_run: the names of the code cells without a stored output that somebody added or
            cleared.
    """

    notebook: NotebookNode
    changes: tuple[str, ...]
    stored_by_build: bool
    never_run: tuple[str, ...]


def read_page(source: Path) -> NotebookNode:
    """Return the notebook of a script as it lies on disk.

    Raises: CourseError if it is not there, or is no notebook.
    """
    page = find_notebook(source)
    command = f"python -m course_lib.authoring.notebooks {source.name[:2]}"
    remedy = f"`{command}` builds it from {paths.shown(source)}."
    try:
        return nbformat.read(page, as_version=4)
    except FileNotFoundError:
        raise CourseError(f"{paths.shown(page)} is not there. {remedy}") from None
    except (OSError, ValueError, AttributeError, nbformat.ValidationError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        problem = f"{paths.shown(page)} cannot be read as a notebook: {reason}."
        raise CourseError(f"{problem} {remedy}") from error


def make_page_proof(source: Path) -> PageProof:
    """Return the proof of a lesson's page as it lies on disk.

    Raises: CourseError if the page cannot be read.
    """
    page, built = read_page(source), read_source(source)
    scripted = {cell.id: cell for cell in read_script(source).cells}
    proving = read_source(source, proof=True).cells
    in_proof = {cell.id: cell for cell in proving}
    answers = _read_answers(source)
    matches = match_cells(page.cells, built.cells)
    waiting = _CheckCells(proving, built.cells, source)

    cells: list[NotebookNode] = []
    never_run: list[str] = []
    number = 0  # of the code cell, as JupyterLab counts when it runs them all
    for index, cell in enumerate(page.cells):
        original = built.cells[matches[index]] if index in matches else None
        if original is not None:
            cells += waiting.take_until(original.id, number)
        proof_cell = copy.deepcopy(cell)
        proof_cell.id = original.id if original else f"added-{index:03}"
        if cell.cell_type != "code":
            is_unchanged = original is not None and cell.source == original.source
            cells.append(in_proof[proof_cell.id] if is_unchanged else proof_cell)
            continue
        number += 1
        proof_cell.metadata[NAME] = f"Cell {number}"
        if original is not None:
            proving_cell = in_proof[original.id]
            if VARIES in proving_cell.metadata:
                proof_cell.metadata[VARIES] = proving_cell.metadata[VARIES]
            if STEP in original.metadata.get("tags", []):
                proof_cell.source = _solve(
                    cell, original, scripted[original.id].source, proving_cell.source
                )
            if not cell.outputs:
                proof_cell.outputs = answers.get((original.id, cell.source), [])
        if not proof_cell.outputs and cell.execution_count is None:
            never_run.append(f"Cell {number}")
        # nbval refuses an output without a count
        proof_cell.execution_count = 1 if proof_cell.outputs else None
        cells.append(proof_cell)
    cells += waiting.take_until(None, number)
    return PageProof(
        notebook=new_notebook(cells=cells, metadata=built.metadata),
        changes=tuple(_list_changes(page.cells, built.cells, matches)),
        # the build leaves the version of Python out, JupyterLab writes it
        stored_by_build="version" not in page.metadata.get("language_info", {}),
        never_run=tuple(never_run),
    )


def _read_answers(source: Path) -> dict[tuple[str, str], list[NotebookNode]]:
    """Return the outputs of answers that the build took out of the page, by id and code of the
    cell."""
    answers_notebook = nbformat.read(notebooks.find_answers(source.stem), as_version=4)
    return {(cell.id, cell.source): cell.outputs for cell in answers_notebook.cells}


def describe_changes(source: Path, proof: PageProof) -> list[str]:
    """Return what a person has to know about a page before it runs, in sentences.

    There is none about a page that is as it was built.
    """
    page, script = paths.shown(find_notebook(source)), paths.shown(source)
    sentences = []
    if proof.changes:
        sentences.append(
            f"{page} is not what {script} builds: {'; '.join(proof.changes)}. "
            f"The notebook runs as it is on disk. To keep a change, make it in {script}, too: "
            "`make build` builds the notebook from there, and overwrites it."
        )
    if proof.never_run:
        count = format_count(len(proof.never_run), "code cell")
        names = ", ".join(proof.never_run[:5]) + (", ..." if len(proof.never_run) > 5 else "")
        sentences.append(
            f"{page} has no stored output of {count} ({names}), so nothing is compared there. "
            "Run the cells in JupyterLab and save, or build the notebook."
        )
    return sentences


def match_cells(page: list[NotebookNode], built: list[NotebookNode]) -> dict[int, int]:
    """Return for each cell of a page, by its place, the place of the built cell that it is, perhaps
    edited. An added cell has none.

    Cells with the same text are matched first. Between two of these, cells are matched by the
    likeness of their texts, else by id.
    """

    def write_key(cell: NotebookNode) -> tuple[str, str]:
        return cell.cell_type, cell.source

    matches: dict[int, int] = {}
    page_keys, built_keys = ([write_key(cell) for cell in cells] for cells in (page, built))
    matcher = difflib.SequenceMatcher(None, page_keys, built_keys, autojunk=False)
    for operation, begin, end, built_begin, built_end in matcher.get_opcodes():
        if operation == "equal":
            matches |= dict(zip(range(begin, end), range(built_begin, built_end), strict=True))
        elif operation == "replace":
            next_free = built_begin  # matched cells keep their order
            for index in range(begin, end):
                chosen = _choose_match(page[index], built, range(next_free, built_end))
                if chosen is not None:
                    matches[index], next_free = chosen, chosen + 1
    return matches


def _choose_match(cell: NotebookNode, built: list[NotebookNode], places: range) -> int | None:
    candidates = [place for place in places if built[place].cell_type == cell.cell_type]

    def measure_similarity(place: int) -> float:
        return difflib.SequenceMatcher(None, cell.source, built[place].source).ratio()

    best = max(candidates, key=measure_similarity, default=None)
    if best is not None and measure_similarity(best) >= _MIN_SIMILARITY:
        return best
    return next((place for place in candidates if built[place].id == cell.get("id")), None)


class _CheckCells:
    """The cells of a proof that the page lacks. Each runs before the next cell of the page that the
    script builds.
    """

    def __init__(
        self, proving: list[NotebookNode], built: list[NotebookNode], source: Path
    ) -> None:
        self.proving = proving
        self.script = source.name
        self.lines = notebooks.list_cell_lines(source)
        self.on_page = {cell.id for cell in built}
        self.position = 0

    def take_until(self, built_id: str | None, number: int) -> list[NotebookNode]:
        """Return those before the cell with this id that were not returned yet.

        Args:
            built_id: None for all that are left.
            number: how many code cells of the page stand before them.
        """
        cells = []
        while self.position < len(self.proving):
            cell = self.proving[self.position]
            if cell.id == built_id:
                break
            self.position += 1
            if cell.id not in self.on_page:
                if cell.cell_type == "code":
                    place = f"{self.script} line {self.lines[cell.id]}"
                    cell.metadata[NAME] = f"Cell {number}, check in {place}"
                cells.append(cell)
        return cells


def _solve(cell: NotebookNode, built: NotebookNode, solution: str, proving: str) -> str:
    """Return a step's cell with the course's answer where the cell still asks for it, and with the
    line that asserts its verdict.
    """
    if cell.source == built.source:
        return proving
    return fill_in(cell.source, solution, CELL_WIDTH) + proving.removeprefix(drop_marks(solution))


def _list_changes(
    page: list[NotebookNode], built: list[NotebookNode], matches: dict[int, int]
) -> list[str]:
    """Return where a page says something else than the built one, in its order."""
    changes = []
    number = 0
    for index, cell in enumerate(page):
        number += cell.cell_type == "code"
        place = f"cell {number}"
        if cell.cell_type != "code":
            place = f"the text after {place}" if number else "the text at the top"
        if index not in matches:
            changes.append(f"{place} is new")
        elif cell.source != built[matches[index]].source:
            changes.append(f"{place} is changed")
    removed = [cell for place, cell in enumerate(built) if place not in matches.values()]
    changes += [f"the cell that begins with {_quote(cell.source)} is missing" for cell in removed]
    return changes


def _quote(text: str) -> str:
    line = (text.strip().splitlines() or [""])[0]
    return repr(line if len(line) <= 60 else f"{line[:57]}...")
