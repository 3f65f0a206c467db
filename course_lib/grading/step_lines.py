"""Find the learner's own line that makes the mistake in a step's cell.

Most lines of a cell are given, and right. What the learner wrote is one line or a few: the mistake
is in one of these.
"""

from __future__ import annotations

import ast

from course_lib.grading.judging import known_lines
from course_lib.grading.step_slips import KnownSlip
from course_lib.grading.submission import places
from course_lib.grading.verdict import Place


def find_own_place(
    file: str,
    text: str,
    place: Place | None,
    slips: list[KnownSlip],
    *,
    given: tuple[str, ...],
    solved: str,
    is_seen: bool,
) -> Place | None:
    """Return the place to show in the ``text`` of a cell; None if it is not known which line has
    the mistake.

    Args:
        place: what an exercise's verdict would show.
        slips: the known slips of the cause that explains the results.
        given: the lines of the cell that the learner need not write.
        solved: the cell with the course's answer.
        is_seen: True if ``place`` is the line of an access or an error. It is shown if no other
            line has the mistake for certain.
    """
    lines, tree = places.split_lines(text), ast.parse(text)
    differences = known_lines.compare(solved, [slip.cell for slip in slips])
    right = {line.strip() for line in given}
    suspects = [
        statement
        for statement in known_lines.list_statements(tree)
        if lines[statement.lineno - 1].strip() not in right and not differences.is_right(statement)
    ]
    place = None if place is not None and place.label else place
    if place is not None and any(statement.lineno == place.line for statement in suspects):
        return place
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    culprit = suspects[0] if len(suspects) == 1 else differences.find_wrong(functions)
    if culprit in suspects:
        return places.make_place(file, text, places.find_span(culprit))
    return place if is_seen else None
