"""Find the learner's own line that makes the mistake in a step's cell.

Most lines of a cell are given, and right. What the learner wrote is one line or a few: the mistake
is in one of these.
"""

from __future__ import annotations

import ast
import copy
from difflib import SequenceMatcher
from functools import cached_property

from course_lib.grading.step_slips import KnownSlip
from course_lib.grading.submission import places
from course_lib.grading.verdict import Place

# least likeness of a learner's line to the line of a known slip: above that of two lines which only
# share their names
_LIKE = 0.5


class OwnLines:
    """The lines of a cell ``text`` that are neither ``given`` nor lines of the ``solved`` cell."""

    def __init__(self, text: str, given: tuple[str, ...], solved: str):
        self.text, self.solved = text, solved
        self.given = {line.strip() for line in given}

    @cached_property
    def suspects(self) -> list[ast.stmt]:
        lines = places.split_lines(self.text)
        right = {_describe(statement) for statement in _list_statements(self.solved)}
        return [
            statement
            for statement in _list_statements(self.text)
            if lines[statement.lineno - 1].strip() not in self.given
            and _describe(statement) not in right
        ]

    def find_place(
        self, file: str, place: Place | None, slip: KnownSlip | None, *, is_seen: bool
    ) -> Place | None:
        """Return the place to show; None if it is not known which line has the mistake.

        Args:
            place: what an exercise's verdict would show.
            slip: the known slip that explains the results, or None.
            is_seen: True if ``place`` is the line of an access or an error. It is shown if no other
                line is the culprit for certain.
        """
        known = place if place is not None and not place.label else None
        if known and any(statement.lineno == known.line for statement in self.suspects):
            return known
        if (culprit := self._find_culprit(slip)) is not None:
            return places.make_place(file, self.text, places.find_span(culprit))
        return known if is_seen else None

    def _find_culprit(self, slip: KnownSlip | None) -> ast.stmt | None:
        if len(self.suspects) == 1 or slip is None:
            return self.suspects[0] if len(self.suspects) == 1 else None
        right = {_describe(statement) for statement in _list_statements(self.solved)}
        changed = [s for s in _list_statements(slip.cell) if _describe(s) not in right]
        likeness = {
            statement: max((_compare(statement, wrong) for wrong in changed), default=0.0)
            for statement in self.suspects
        }
        culprit = max(likeness, key=likeness.__getitem__, default=None)
        return culprit if culprit is not None and likeness[culprit] >= _LIKE else None


def _list_statements(text: str) -> list[ast.stmt]:
    """Return the statements of the cell without definitions and calls such as ``step(...)``, in the
    order of the text."""
    found = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.stmt) and not isinstance(node, (ast.FunctionDef, ast.Pass))
    ]
    return sorted(found, key=lambda statement: statement.lineno)


def _describe(statement: ast.stmt) -> str:
    """Return the code of a statement; of one with a body, its first line."""
    if isinstance(statement, (ast.For, ast.While, ast.If)):
        statement = copy.copy(statement)
        statement.body, statement.orelse = [], []
    return ast.unparse(statement)


def _compare(statement: ast.stmt, wrong: ast.stmt) -> float:
    return SequenceMatcher(None, _describe(statement), _describe(wrong), autojunk=False).ratio()
