"""The numbers in a lesson's prose: each has a source that a run would contradict.

``{{name}}`` in a markdown cell of a script stands for ``values["name"]``, which a cell tagged
``values`` computes from stored files. A number that is written out has to be in the lesson's code,
check cells included, or in what its cells print: nbval runs the first and compares the second.
:func:`list_untied` lists the numbers that are in neither.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

from nbformat import NotebookNode

from course_lib.base import paths
from course_lib.base.errors import CourseError

VALUES = "values"  # the tag of the cells, and the name of the dictionary that each of them makes
_FILLED = re.compile(r"\{\{(\w+)\}\}")
_MONTHS = (
    "January February March April May June July August September October November December".split()
)
# Nouns behind which a number is a name. A number that is part of a word (fp16, 07a, #518) is none
# here.
_NOUNS = (
    "lesson exercise room section issue request PR commit version program row column lane thread"
    " input PyTorch Triton torch RTX quack".split()
)
_NO_CLAIM = re.compile(
    "|".join((
        r"```.*?```", r"`[^`]*`",  # code
        r"\$\$.*?\$\$", r"\$[^$\n]+\$",  # formulas
        r"^#+ .*?$", r"^\*About \d.*?\*$", r"^\d+\. ",  # titles, minutes, items of a list
        rf"(?:\b\d+ )?\b(?:{'|'.join(_MONTHS)}) \d{{4}}", r"\b\d{4}-\d\d-\d\d\b",  # dates
        rf"\b(?i:{'|'.join(_NOUNS)})s?\s+\d[\d.]*(?:(?:,| and|, and| or| to)\s+\d[\d.]*)*",
        r"\b(?:M|N|P|M N|ROWS|BLOCK|BLOCK_M|eps) = \d[\d.,^e-]*",  # a setting of an example
        r"\{\{\w+\}\}",
    )),
    re.DOTALL | re.MULTILINE,
)  # fmt: skip
_LINK = re.compile(r"\]\(https?://")
_GUIDE = re.compile(r"`(docs/[\w-]+\.md)`")
_DIGITS = r"\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?|\.\d+"
_POWERS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_NUMBER = re.compile(
    rf"(?<![\w.#⁻])(?P<digits>{_DIGITS})(?:\s·\s10(?P<power>[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?"
    r"(?P<unit>\s?(?:µs|ms|ns|[GT]B/s|[KMGT]B|times|percent)\b|\s?%)?(?!\w|\.\d|[⁻⁰¹²³⁴⁵⁶⁷⁸⁹])"
)
_YEARS = range(1900, 2100)


def fill(cells: Sequence[NotebookNode], source: Path) -> None:
    """Put the values of a lesson in the place of each ``{{name}}`` in its markdown cells.

    Raises: CourseError if a name has no value or two, or a cell tagged ``values`` cannot be run.
    """
    values = _compute_values(cells, source)
    for cell in cells:
        if cell.cell_type != "markdown":
            continue
        if unknown := [name for name in _FILLED.findall(cell.source) if name not in values]:
            raise CourseError(
                f"{paths.shown(source)}, {cell.id}: {{{{{unknown[0]}}}}} has no value. A cell"
                f" tagged `{VALUES}` puts it into `{VALUES}`; these have"
                f" {', '.join(values) or 'none'}."
            )
        cell.source = _FILLED.sub(lambda match: str(values[match[1]]), cell.source)


def _compute_values(cells: Sequence[NotebookNode], source: Path) -> dict[str, object]:
    """Run the cells tagged ``values`` one after the other, in a namespace of their own, and collect
    what they put into ``values``."""
    namespace: dict[str, object] = {}
    values: dict[str, object] = {}
    for cell in cells:
        if VALUES not in cell.metadata.get("tags", []):
            continue
        where = f"{paths.shown(source)}, {cell.id}"
        try:
            exec(compile(cell.source, where, "exec"), namespace)
        except Exception as error:
            raise CourseError(
                f"{where}: {type(error).__name__}: {error}. A cell tagged `{VALUES}` runs alone"
                " when the lesson is built: it sees stored files and what other such cells"
                " computed, and nothing of the rest of the page."
            ) from error
        cell_values = namespace.pop(VALUES, None)
        if not isinstance(cell_values, dict):
            raise CourseError(
                f"{where}: it makes no dictionary `{VALUES}`, though it is tagged so."
            )
        if twice := values.keys() & cell_values.keys():
            raise CourseError(f"{where}: `{min(twice)}` has a value already. Take another name.")
        values |= cell_values
    return values


def list_untied(notebook: NotebookNode) -> list[tuple[str, str]]:
    """Return the numbers in the prose of a lesson's proof that nothing ties to a run, each with the
    line in which it stands.

    A number is tied if the same number stands in the lesson's code, in what a cell prints, or in a
    file of docs/ that its paragraph names. Not listed are numbers in code, formulas and titles,
    names ("lesson 07"), dates, settings ("N = 1000"), powers of two and of ten, whole numbers up to
    12 without a unit, and what a paragraph says that links to a source on the web.

    Args:
        notebook: the proof with the stored outputs. Its ``{{name}}`` are not filled.
    """
    tied: set[float] = set()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            tied |= _find_constants(cell.source)
            tied.update(
                *(
                    _read_numbers(output.text)
                    for output in cell.get("outputs", [])
                    if output.output_type == "stream"
                )
            )
    untied = []
    for cell in notebook.cells:
        for paragraph in cell.source.split("\n\n") if cell.cell_type == "markdown" else ():
            if _LINK.search(paragraph):
                continue
            tied_here = tied.union(
                *(
                    _read_numbers((paths.ROOT / guide).read_text(encoding="utf-8"))
                    for guide in _GUIDE.findall(paragraph)
                )
            )
            # what stands behind it keeps its place
            prose = _NO_CLAIM.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), paragraph)
            for match in _NUMBER.finditer(prose):
                number = float(match["digits"].replace(",", "")) * 10.0 ** int(
                    (match["power"] or "0").translate(_POWERS)
                )
                if not _is_definition(number, match["unit"]) and number not in tied_here:
                    untied.append(
                        (
                            " ".join(match[0].split()),
                            paragraph.splitlines()[paragraph.count("\n", 0, match.start())].strip(),
                        )
                    )
    return untied


def _is_definition(number: float, unit: str | None) -> bool:
    if unit or not number.is_integer():
        return False
    whole = int(number)
    return (
        whole <= 12 or whole in _YEARS or whole & (whole - 1) == 0 or str(whole).strip("0") == "1"
    )


def _read_numbers(text: str) -> set[float]:
    return {float(digits.replace(",", "")) for digits in re.findall(_DIGITS, text)}


def _find_constants(code: str) -> set[float]:
    """The numbers that stand in code, in strings too."""
    constants: set[float] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                constants |= _read_numbers(node.value)
            elif isinstance(node.value, (int, float)):
                constants.add(float(node.value))
    return constants
