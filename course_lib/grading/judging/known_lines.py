"""Find the statement of a learner's file that is nearest to one that a known mistake of the
exercise changes.

The known mistakes are the edits of the solution in the exercise's ``wrong.toml``. A copy of the
course without solutions has none; then nothing is found.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher

from course_lib.base import paths
from course_lib.catalog import Exercise, mutants, texts

# A statement is the mistake from this similarity on. On 285 slips that were written without having
# seen the known mistakes, 0.8 marked wrong code in 83 % and right code in 4 %; with 0.75 right code
# was marked in 9 %. A higher limit changed nothing.
_MIN_SIMILARITY = 0.8
_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)
_COMPOUND = (ast.If, ast.For, ast.While)
Tokens = tuple[str, ...]


@dataclass(frozen=True)
class KnownLines:
    """The statements of an exercise's solution, and those that the known mistakes of one cause put
    in their place."""

    right: frozenset[Tokens]
    wrong: tuple[Tokens, ...]

    def is_right(self, statement: ast.stmt) -> bool:
        """Return True if the solution has the statement, token by token."""
        return _split(statement) in self.right

    def find_wrong(self, functions: list[ast.FunctionDef]) -> ast.stmt | None:
        """Return the statement of ``functions`` that is nearest to a wrong one, if it is near, and
        nearer than to any of the solution; the first, if several are."""
        nearest, best = None, _MIN_SIMILARITY
        for statement in list_statements(*functions):
            tokens = _split(statement)
            similarity = _find_similarity(tokens, self.wrong, best)
            if similarity > best and similarity > _find_similarity(tokens, self.right):
                nearest, best = statement, similarity
        return nearest


def read(exercise: Exercise, cause: str) -> KnownLines:
    """Return the statements that the exercise's known mistakes of ``cause`` change. There are none
    in a release, which has no solutions, and for a step of a lesson."""
    if paths.is_release() or not (paths.SOLUTIONS / f"{exercise.file}.py").exists():
        return KnownLines(frozenset(), ())
    wrong = [
        mutants.make_text(exercise, entry)
        for entry in mutants.read_mutants(exercise)
        if entry["cause"] == cause
    ]
    return compare(texts.read_solution(exercise), wrong)


def compare(solution: str, wrong: list[str]) -> KnownLines:
    """Return the statements of ``solution``, and those of the ``wrong`` texts that it has not.

    With what a name begins is no mistake where the same text changes more than that.
    """
    right = _list_tokens(solution)
    wrong_statements: dict[Tokens, None] = {}
    for text in wrong:
        changed = [tokens for tokens in _list_tokens(text) if tokens not in right]
        wrong_statements |= dict.fromkeys(
            [tokens for tokens in changed if not _begins_a_sum(tokens)] or changed
        )
    return KnownLines(frozenset(right), tuple(wrong_statements))


def _begins_a_sum(tokens: Tokens) -> bool:
    """Return True for an assignment of a block of equal numbers, as in ``s = tl.zeros(...)``."""
    return len(tokens) > 4 and tokens[1:4] == ("=", "tl", ".") and tokens[4] in ("zeros", "full")


def _find_similarity(tokens: Tokens, others: Iterable[Tokens], least: float = 0.0) -> float:
    """Return the similarity of a statement, from 0 to 1, to the nearest one of ``others``; or
    ``least``, if none is nearer."""
    for other in others:
        matcher = SequenceMatcher(None, other, tokens, autojunk=False)
        if matcher.quick_ratio() > least:  # an upper bound of ratio, which costs less
            least = max(least, matcher.ratio())
    return least


def _list_tokens(text: str) -> dict[Tokens, None]:
    return {_split(statement): None for statement in list_statements(ast.parse(text))}


def list_statements(*roots: ast.AST) -> list[ast.stmt]:
    return [
        node
        for root in roots
        for node in ast.walk(root)
        if isinstance(node, _SIMPLE + _COMPOUND)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]


def _split(statement: ast.stmt) -> Tokens:
    """Split a statement into its tokens; of a loop or a condition only the first line counts."""
    source = ast.unparse(statement)
    if isinstance(statement, _COMPOUND):
        source = source.partition("\n")[0]
    tokens = tokenize.generate_tokens(io.StringIO(source + "\n").readline)
    return tuple(token.string for token in tokens if token.string.strip())
