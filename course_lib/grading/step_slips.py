"""List the mistakes that are possible in the cell of any step, as wrong forms of its solution.

A step's author writes down the slips of that step alone (``Task.slips``). The mistakes here are of
kinds: a forgotten ``other=``, the other axis, a wrong divisor. A check knows both again in the same
way: by their results.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple, TypeVar

from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_
from course_lib.grading.judging.causes import CAUSES, make_sentence
from course_lib.grading.submission.syntax import SyntaxTree, list_names, name_call

# a replacement of some nodes of the solution by the text of other code
Edit = Sequence[tuple[ast.expr | ast.stmt, str]]
Node = TypeVar("Node", bound=ast.expr | ast.stmt)
_STRIDE = re.compile(r"stride|_row$|_col$")
_REDUCTIONS = ("sum", "mean", "max", "min", "var")
_TURNED: dict[type, ast.cmpop] = {
    ast.Lt: ast.LtE(), ast.LtE: ast.Lt(), ast.Gt: ast.GtE(), ast.GtE: ast.Gt(),
}  # fmt: skip
_OTHER_EXTREME = {"maximum": "minimum", "minimum": "maximum", "max": "min", "min": "max"}


@dataclass(frozen=True)
class KnownSlip:
    """A mistake that was foreseen: the whole cell with the mistake, and its cause as a verdict
    names it. ``common`` is True for a mistake of this module."""

    cell: str
    cause: str
    headline: str
    question: str
    common: bool = False


@dataclass(frozen=True)
class _Solution(SyntaxTree):
    """The course's answer to a step, with the questions that the kinds of mistakes ask about it."""

    text: str

    @cached_property
    def parameters(self) -> list[str]:
        return [node.arg for node in ast.walk(self.tree) if isinstance(node, ast.arg)]

    def list_nodes(self, kind: type[Node]) -> list[Node]:
        """Return the nodes of this type, in the order of the text."""
        return sorted((n for n in ast.walk(self.tree) if isinstance(n, kind)), key=_locate)

    def list_calls(self, *names: str) -> list[ast.Call]:
        return [call for call in self.list_nodes(ast.Call) if name_call(call) in names]

    def list_operations(self, *operators: type) -> list[ast.BinOp]:
        return [node for node in self.list_nodes(ast.BinOp) if isinstance(node.op, operators)]

    def is_in_address(self, node: ast.AST) -> bool:
        """Return True inside the address of a load, a store or an atomic, inside an index, and
        where an address or lanes are made."""
        for child, parent in pairwise([node, *self.list_ancestors(node)]):
            if isinstance(parent, ast.Subscript) and child is parent.slice:
                return True
            if isinstance(parent, ast.Call) and parent.args[:1] == [child]:
                name = name_call(parent)
                if name in ("load", "store", "range") or name.startswith("atomic_"):
                    return True
            if isinstance(parent, ast.Assign):
                return any(word in ast.unparse(parent) for word in ("_ptr +", "arange"))
        return False

    def apply(self, edit: Edit) -> str:
        """Return the text with the nodes replaced. No node of an edit lies inside another."""
        lines = self.text.encode().splitlines(keepends=True)
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line))
        text = self.text.encode()
        for node, code in sorted(edit, key=lambda change: _locate(change[0]), reverse=True):
            begin = starts[node.lineno - 1] + node.col_offset
            end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
            text = text[:begin] + code.encode() + text[end:]
        return text.decode()


def _locate(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _change(node: ast.AST, **fields: object) -> str:
    """Return the code of the node with other values in some of its fields."""
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return ast.unparse(changed)


def _each_and_all(edits: Edit) -> Iterator[Edit]:
    """Yield each edit alone, then all of them together: who forgets a thing often forgets it in
    each line."""
    yield from ([edit] for edit in edits)
    if len(edits) > 1:
        yield edits


# ---- kinds of mistakes: each yields the edits that make them


def _forget_other(solution: _Solution) -> Iterator[Edit]:
    changes: list[tuple[ast.expr | ast.stmt, str]] = []
    for call in solution.list_calls("load"):
        other_keywords = [keyword for keyword in call.keywords if keyword.arg != "other"]
        if len(other_keywords) < len(call.keywords):
            changes.append((call, _change(call, keywords=other_keywords)))
    yield from _each_and_all(changes)


def _take_other_axis(solution: _Solution) -> Iterator[Edit]:
    axes: list[tuple[ast.expr | ast.stmt, str]] = []
    for call in solution.list_calls(*_REDUCTIONS):
        for keyword in call.keywords:
            if keyword.arg in ("axis", "dim"):
                other = "1" if ast.unparse(keyword.value) == "0" else "0"
                axes.append((keyword.value, other))
    places = _list_turned(solution)
    yield from _each_and_all(axes)
    for place in places:
        yield from ([axis, place] for axis in axes)


def _turn_block(solution: _Solution) -> Iterator[Edit]:
    yield from _each_and_all(_list_turned(solution))


def _list_turned(solution: _Solution) -> Edit:
    """Make columns of rows, as in ``rows[None, :]`` for ``rows[:, None]``, and rows of columns."""
    turned = {"(:, None)": "None, :", "(None, :)": ":, None"}
    changes: list[tuple[ast.expr | ast.stmt, str]] = []
    for node in solution.list_nodes(ast.Subscript):
        index = f"({ast.unparse(node.slice).strip('()')})"
        if index in turned:
            changes.append((node.slice, turned[index]))
    return changes


def _leave_out_axis(solution: _Solution) -> Iterator[Edit]:
    for call in solution.list_calls(*_REDUCTIONS):
        if any(keyword.arg in ("axis", "dim") for keyword in call.keywords):
            yield [(call, _change(call, keywords=[]))]


def _divide_by_lanes(solution: _Solution) -> Iterator[Edit]:
    changes: list[tuple[ast.expr | ast.stmt, str]] = []
    for node in solution.list_operations(ast.Div):
        if ast.unparse(node.right) == "N" and "BLOCK" in solution.parameters:
            changes.append((node.right, "BLOCK"))
    yield from _each_and_all(changes)
    yield from ([(node, "(N - 1)")] for node, _code in changes)


def _forget_division(solution: _Solution) -> Iterator[Edit]:
    changes: list[tuple[ast.expr | ast.stmt, str]] = [
        (node, ast.unparse(node.left))
        for node in solution.list_operations(ast.Div)
        if any(isinstance(part, ast.Call) and name_call(part) == "sum" for part in ast.walk(node))
    ]
    for call in solution.list_calls("mean"):
        if isinstance(call.func, ast.Attribute):
            changes.append((call, _change(call, func=_rename(call.func, "sum"))))
    yield from _each_and_all(changes)


def _rename(attribute: ast.Attribute, name: str) -> ast.Attribute:
    return ast.Attribute(attribute.value, name, attribute.ctx)


def _overwrite_sum(solution: _Solution) -> Iterator[Edit]:
    for node in solution.list_nodes(ast.AugAssign):
        if any(isinstance(a, (ast.For, ast.While)) for a in solution.list_ancestors(node)):
            yield [(node, f"{ast.unparse(node.target)} = {ast.unparse(node.value)}")]


def _forget_widening(solution: _Solution) -> Iterator[Edit]:
    changes: list[tuple[ast.expr | ast.stmt, str]] = []
    for call in solution.list_calls("to", "astype", "float"):
        widens = name_call(call) == "float" or (
            bool(call.args) and ast.unparse(call.args[0]).endswith("float32")
        )
        if widens and isinstance(call.func, ast.Attribute):
            changes.append((call, ast.unparse(call.func.value)))
    outer = [
        (node, code)
        for node, code in changes
        if not any(node is not other and node in ast.walk(other) for other, _code in changes)
    ]
    yield from ([edit] for edit in changes)
    if len(outer) > 1:
        yield outer


def _take_other_stride(solution: _Solution) -> Iterator[Edit]:
    strides = [name for name in solution.parameters if _STRIDE.search(name)]
    others = [name for name in ("N", "BLOCK") if name in solution.parameters]
    for node in solution.list_operations(ast.Mult):
        if isinstance(node.right, ast.Name) and node.right.id in strides:
            for name in (*strides, *others):
                if name != node.right.id:
                    yield [(node.right, name)]
            yield [(node, ast.unparse(node.left))]
    for node in solution.list_operations(ast.Add):
        # a column's own stride may be left out of a sum, as in row * dy_row + cols * dy_col
        sides = [node.left, node.right]
        if all(isinstance(side, ast.BinOp) and isinstance(side.op, ast.Mult) for side in sides):
            yield [(node, " + ".join(ast.unparse(side) for side in sides[:1]))]


def _forget_row(solution: _Solution) -> Iterator[Edit]:
    """Leave the program's number out of what a load reads."""
    programs = {
        name
        for node in solution.list_nodes(ast.Assign)
        if "program_id" in ast.unparse(node.value)
        for target in node.targets
        for name in list_names(target)
    }
    for call in solution.list_calls("load"):
        for part in ast.walk(call.args[0]) if call.args else ():
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add):
                for dropped, remaining in ((part.right, part.left), (part.left, part.right)):
                    is_row = not any(name.endswith("_ptr") for name in list_names(dropped))
                    if is_row and programs & list_names(dropped):
                        yield [(part, ast.unparse(remaining))]
    for node in solution.list_operations(ast.Mult):
        if isinstance(node.left, ast.Name) and node.left.id in programs:
            yield [(node, ast.unparse(node.right))]


def _forget_lanes(solution: _Solution) -> Iterator[Edit]:
    """Leave the lanes out of what a load reads."""
    for call in solution.list_calls("load"):
        address = call.args[0] if call.args else None
        if not (isinstance(address, ast.BinOp) and isinstance(address.op, ast.Add)):
            continue
        if list_names(address.right) & {"cols", "lanes", "offsets"}:
            yield [(call, f"tl.load({ast.unparse(address.left)})")]


def _load_other_tensor(solution: _Solution) -> Iterator[Edit]:
    pointers = [name for name in solution.parameters if name.endswith("_ptr")]
    written = {
        name
        for call in solution.list_calls("store")
        for name in list_names(call.args[0])
        if name in pointers
    }
    for call in solution.list_calls("load"):
        for node in ast.walk(call.args[0]) if call.args else ():
            if isinstance(node, ast.Name) and node.id in pointers:
                others = [name for name in pointers if name != node.id and name not in written]
                yield from ([(node, name)] for name in others)


def _repeat_first_turn(solution: _Solution) -> Iterator[Edit]:
    """Let each turn of a loop take what its first turn takes."""
    for loop in solution.list_nodes(ast.For):
        if not (isinstance(loop.target, ast.Name) and isinstance(loop.iter, ast.Call)):
            continue
        starts = loop.iter.args if len(loop.iter.args) > 1 else [ast.Constant(0)]
        uses: list[tuple[ast.expr | ast.stmt, str]] = [
            (node, ast.unparse(starts[0]))
            for statement in loop.body
            for node in ast.walk(statement)
            if isinstance(node, ast.Name) and node.id == loop.target.id
        ]
        if uses:
            yield uses


def _shorten_loop(solution: _Solution) -> Iterator[Edit]:
    for loop in solution.list_nodes(ast.For):
        if isinstance(loop.iter, ast.Call) and name_call(loop.iter) == "range":
            stop = loop.iter.args[:2][-1]
            step = ast.unparse(loop.iter.args[2]) if len(loop.iter.args) == 3 else "1"
            yield [(stop, f"{ast.unparse(stop)} - {step}")]
            if len(loop.iter.args) == 1:
                yield [(stop, f"1, {ast.unparse(stop)}")]


def _forget_root(solution: _Solution) -> Iterator[Edit]:
    for call in solution.list_calls("rsqrt", "sqrt"):
        inside = ast.unparse(call.args[0])
        yield [(call, f"(1 / ({inside}))" if name_call(call) == "rsqrt" else f"({inside})")]


def _forget_square(solution: _Solution) -> Iterator[Edit]:
    changes: list[tuple[ast.expr | ast.stmt, str]] = [
        (node, ast.unparse(node.left))
        for node in solution.list_operations(ast.Mult)
        if ast.dump(node.left) == ast.dump(node.right)
    ]
    yield from _each_and_all(changes)


def _turn_sign(solution: _Solution) -> Iterator[Edit]:
    for node in solution.list_operations(ast.Add, ast.Sub):
        if not solution.is_in_address(node):
            other = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
            yield [(node, _change(node, op=other))]
    for node in solution.list_nodes(ast.AugAssign):
        if isinstance(node.op, (ast.Add, ast.Sub)):
            other = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
            yield [(node, _change(node, op=other))]


def _take_other_extreme(solution: _Solution) -> Iterator[Edit]:
    for call in solution.list_calls(*_OTHER_EXTREME):
        other = _OTHER_EXTREME[name_call(call)]
        if isinstance(call.func, ast.Attribute):
            yield [(call, _change(call, func=_rename(call.func, other)))]
        else:
            yield [(call.func, other)]


def _swap_values(solution: _Solution) -> Iterator[Edit]:
    for node in solution.list_nodes(ast.Return):
        if isinstance(node.value, ast.Tuple) and len(node.value.elts) == 2:
            first, second = node.value.elts
            yield [(first, ast.unparse(second)), (second, ast.unparse(first))]
    computed = [
        node
        for node in solution.list_nodes(ast.Assign)
        if not re.search(r"arange|program_id|zeros", ast.unparse(node.value))
    ]
    for one, other in pairwise(computed):
        [target], [next_target] = one.targets, other.targets
        if (
            isinstance(target, ast.Name)
            and isinstance(next_target, ast.Name)
            and not {target.id, next_target.id} & (list_names(one.value) | list_names(other.value))
        ):
            yield [(target, next_target.id), (next_target, target.id)]


def _miss_limit(solution: _Solution) -> Iterator[Edit]:
    for node in solution.list_nodes(ast.Compare):
        if len(node.ops) == 1 and type(node.ops[0]) in _TURNED:
            yield [(node, f"({_change(node, ops=[_TURNED[type(node.ops[0])]])})")]


class _Mistake(NamedTuple):
    """A kind of mistakes: a cause of the grader's, or a headline and a question of its own."""

    make: Callable[[_Solution], Iterator[Edit]]
    cause: str = ""
    headline: str = ""
    question: str = ""

    def write_words(self, kind: str) -> tuple[str, str, str]:
        """Return cause, headline and question for a step of this kind."""
        if self.cause:
            headline, question = CAUSES[self.cause].word_for(kind)
            return self.cause, make_sentence(headline), question
        return "known_slip", make_sentence(_(self.headline)), _(self.question)


# The likelier come first: of two mistakes with the same results the first is named.
_MISTAKES = (
    _Mistake(_forget_other, "masked_off"),
    _Mistake(_take_other_axis, "wrong_axis"),
    _Mistake(_leave_out_axis, "wrong_axis"),
    _Mistake(
        _turn_block,
        headline=N_("numbers lie along the wrong axis"),
        question=N_(
            "`[:, None]` makes a column, and `[None, :]` a row. Along which axis should each of"
            " your blocks lie, and which element of it meets the element [0, 1]?"
        ),
    ),
    _Mistake(_divide_by_lanes, "divisor"),
    _Mistake(_forget_division, "not_divided"),
    _Mistake(
        _overwrite_sum,
        headline=N_("only the last turn of the loop counts"),
        question=N_(
            "After the loop, what does the running sum hold: what all turns have brought, or what"
            " the last one has?"
        ),
    ),
    _Mistake(_forget_widening, "low_precision"),
    _Mistake(_take_other_stride, "stride_ignored"),
    _Mistake(_forget_row, "same_row"),
    _Mistake(
        _forget_lanes,
        headline=N_("every lane loads the same element"),
        question=N_("Which address does each of your lanes load from: lane 0, lane 1, lane 2?"),
    ),
    _Mistake(
        _load_other_tensor,
        headline=N_("a load reads another tensor than its name says"),
        question=N_("Through which pointer does each of your loads read, and how do you call it?"),
    ),
    _Mistake(
        _repeat_first_turn,
        headline=N_("every turn of the loop takes the same elements"),
        question=N_(
            "The second turn of the loop is to take other elements than the first. Which of your"
            " lines makes it take them?"
        ),
    ),
    _Mistake(
        _shorten_loop,
        headline=N_("the loop has a turn too few"),
        question=N_("What does your loop take in its first turn, what in its last, and what then"
                    " is left?"),
    ),
    _Mistake(_forget_root, "root_missing"),
    _Mistake(
        _forget_square,
        headline=N_("a number is not squared"),
        question=N_("Which numbers does the formula square, and which do you?"),
    ),
    _Mistake(
        _turn_sign,
        headline=N_("a sign is wrong"),
        question=N_(
            "Take one element: what do you add to it that is to be taken away, or take away that is"
            " to be added?"
        ),
    ),
    _Mistake(
        _take_other_extreme,
        headline=N_("the smaller number is taken where the larger belongs, or the larger for the"
                    " smaller"),
        question=N_("Of the two numbers 3 and 5, which does your line keep, and which should it?"),
    ),
    _Mistake(
        _swap_values,
        headline=N_("two values have changed places"),
        question=N_("In which order are the two values asked for, and in which do you give them?"),
    ),
    _Mistake(
        _miss_limit,
        headline=N_("a condition is wrong at its limit"),
        question=N_(
            "Take the number that a comparison of yours compares with: should this very number"
            " pass, and does it?"
        ),
    ),
)  # fmt: skip


@lru_cache(maxsize=8)
def list_common_slips(solved: str, kind: str) -> tuple[KnownSlip, ...]:
    """List the wrong forms of a step's solution, the likelier mistakes first. ``kind`` is that of
    the step: "kernel", "torch" or "numpy"."""
    solution = _Solution(ast.parse(solved), solved)
    slips: dict[str, KnownSlip] = {}
    for mistake in _MISTAKES:
        words = mistake.write_words(kind)
        for edit in mistake.make(solution):
            cell = solution.apply(edit)
            slips.setdefault(cell, KnownSlip(cell, *words, common=True))
    slips.pop(solved, None)
    return tuple(slips.values())
