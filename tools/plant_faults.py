"""Measure what the tests catch: draw small faults of course_lib at random, and plant one at a time.

    python tools/plant_faults.py draw --seed 54 --count 40    # writes tests/faults.json anew
    python tools/plant_faults.py apply 7                      # plants fault 7 in this checkout
    python tools/plant_faults.py revert                       # takes it back
    python tools/plant_faults.py replace 7 --seed 57 --why "both branches return the same text"

A fault is found by its file, function and statement, never by its line or its layout, so that it
outlives other changes of the file. `replace` draws another fault of the same room for one that
changes no behaviour, and keeps the old one with the reason.
"""

from __future__ import annotations

import argparse
import ast
import collections
import copy
import json
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FAULTS = ROOT / "tests" / "faults.json"
PLANTED = ROOT / "build" / "planted_fault.json"  # what `revert` takes back
LARGE_ROOM = 20_000  # characters; such a room gets a fault in every draw
KINDS = ("operator", "bound", "condition", "call")
SWAPS: dict[type[ast.AST], tuple[str, str, str]] = {
    ast.Add: ("operator", "+", "-"), ast.Sub: ("operator", "-", "+"),
    ast.Mult: ("operator", "*", "/"), ast.Div: ("operator", "/", "*"),
    ast.FloorDiv: ("operator", "//", "*"), ast.Mod: ("operator", "%", "//"),
    ast.Pow: ("operator", "**", "*"), ast.BitAnd: ("operator", "&", "|"),
    ast.BitOr: ("operator", "|", "&"), ast.LShift: ("operator", "<<", ">>"),
    ast.RShift: ("operator", ">>", "<<"), ast.Eq: ("operator", "==", "!="),
    ast.NotEq: ("operator", "!=", "=="), ast.Is: ("operator", "is", "is not"),
    ast.IsNot: ("operator", "is not", "is"), ast.In: ("operator", "in", "not in"),
    ast.NotIn: ("operator", "not in", "in"), ast.Lt: ("bound", "<", "<="),
    ast.LtE: ("bound", "<=", "<"), ast.Gt: ("bound", ">", ">="), ast.GtE: ("bound", ">=", ">"),
    ast.And: ("condition", "and", "or"), ast.Or: ("condition", "or", "and"),
}  # fmt: skip
HEADER_PARTS = (ast.expr, ast.comprehension, ast.keyword, ast.withitem)


@dataclass(frozen=True)
class Edit:
    """A possible fault: the bytes from ``start`` to ``end`` of a file become ``replacement``."""

    kind: str
    function: str  # qualified name, or <module>
    statement: str  # without its body, as ast.unparse writes it
    start: int
    end: int
    replacement: str


class Source:
    """A file of Python, and every edit that may be drawn from it."""

    def __init__(self, path: Path) -> None:
        self.path, self.data = path, path.read_bytes()
        lengths = [len(line) for line in self.data.splitlines(keepends=True)]
        self._line_starts = [sum(lengths[:number]) for number in range(len(lengths) + 1)]
        self.edits = list(self._list_edits(ast.parse(self.data).body, ()))

    def find_alike(self, function: str, statement: str) -> list[Edit]:
        where = function, statement
        return [edit for edit in self.edits if (edit.function, edit.statement) == where]

    def _span(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = self._line_starts[node.lineno - 1] + node.col_offset
        return start, self._line_starts[node.end_lineno - 1] + node.end_col_offset

    def _text(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return self.data[start:end].decode()

    def _list_edits(self, body: list[ast.stmt], names: tuple[str, ...]) -> Iterator[Edit]:
        for statement in body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield from self._list_edits(statement.body, (*names, statement.name))
                continue
            is_if = isinstance(statement, ast.If)
            if is_if and re.search("TYPE_CHECKING|__name__", self._text(statement.test)):
                continue
            header = write_header(statement)
            for kind, start, end, replacement in self._list_changes(statement):
                yield Edit(kind, ".".join(names) or "<module>", header, start, end, replacement)
            for block in list_blocks(statement):
                yield from self._list_edits(block, names)

    def _list_changes(self, statement: ast.stmt) -> Iterator[tuple[str, int, int, str]]:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            yield "call", *self._span(statement.value), "pass"
        if isinstance(statement, (ast.If, ast.While)):
            yield self._negate(statement.test)
        for node in walk_expressions(statement):
            match node:
                case ast.BinOp(left, operator, right) if not is_text(left) and not is_text(right):
                    yield from self._swap(left, operator, right)
                case ast.BoolOp(operator, [left, right, *_]):
                    yield from self._swap(left, operator, right)
                case ast.Compare(left, operators, comparators):
                    operands = [left, *comparators]
                    for number, operator in enumerate(operators):
                        yield from self._swap(operands[number], operator, operands[number + 1])
                    yield from (self._shift(operand) for operand in operands if is_integer(operand))
                case ast.Call(ast.Name("range") | ast.Attribute(attr="range" | "arange"), bounds):
                    yield from (self._shift(bound) for bound in bounds)
                case ast.Slice(lower, upper):
                    yield from (self._shift(bound) for bound in (lower, upper) if bound)
                case ast.Subscript(slice=ast.Constant() | ast.UnaryOp() as index):
                    yield from [self._shift(index)] if is_integer(index) else []
                case ast.IfExp(test):
                    yield self._negate(test)
                case ast.comprehension(ifs=tests):
                    yield from (self._negate(test) for test in tests)

    def _swap(
        self, left: ast.expr, operator: ast.AST, right: ast.expr
    ) -> Iterator[tuple[str, int, int, str]]:  # fmt: skip
        if type(operator) not in SWAPS:
            return
        kind, original, replacement = SWAPS[type(operator)]
        start, end = self._span(left)[1], self._span(right)[0]
        between = self.data[start:end].decode()
        match = re.search(re.escape(original).replace(r"\ ", r"\s+"), between)
        if match and "#" not in between:
            yield kind, start + match.start(), start + match.end(), replacement

    def _shift(self, bound: ast.expr) -> tuple[str, int, int, str]:
        if is_integer(bound):
            return "bound", *self._span(bound), str(ast.literal_eval(bound) + 1)
        is_simple = isinstance(bound, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
        text = self._text(bound) if is_simple else f"({self._text(bound)})"
        return "bound", *self._span(bound), f"{text} - 1"

    def _negate(self, test: ast.expr) -> tuple[str, int, int, str]:
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return "condition", *self._span(test), f"({self._text(test.operand)})"
        return "condition", *self._span(test), f"(not ({self._text(test)}))"


def is_text(node: ast.expr) -> bool:
    """Tell whether ``node`` is a string: with another operator it only raises TypeError."""
    is_string = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return is_string or isinstance(node, ast.JoinedStr)


def is_integer(node: ast.expr) -> bool:
    is_negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    operand = node.operand if is_negative else node
    return isinstance(operand, ast.Constant) and type(operand.value) is int


def list_blocks(statement: ast.AST) -> Iterator[list[ast.stmt]]:
    for _, value in ast.iter_fields(statement):
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            yield value
        elif isinstance(value, list):
            with_bodies = (ast.ExceptHandler, ast.match_case)
            yield from (part.body for part in value if isinstance(part, with_bodies))


def walk_expressions(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the expressions of a simple statement, or of the line before a body; no annotations.

    An f-string is left out: Python 3.11 does not know where its parts stand.
    """
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            is_part = isinstance(child, HEADER_PARTS) and not isinstance(child, ast.JoinedStr)
            if is_part and name != "annotation":
                yield child
                yield from walk_expressions(child)


def write_header(statement: ast.stmt) -> str:
    """Return a simple statement, or of a compound one the line before its body."""
    header, blocks = copy.copy(statement), list(list_blocks(statement))
    for name, value in ast.iter_fields(statement):
        if any(value is block for block in blocks):
            setattr(header, name, [ast.Pass()] if name == "body" else [])
    return ast.unparse(header).removesuffix("\n    pass")


def normalise(header: str) -> str:
    """Return a stored header as this version of Python writes it."""
    return write_header(ast.parse(f"{header} pass" if header.endswith(":") else header).body[0])


def get_room(path: Path) -> str:
    return path.relative_to(ROOT / "course_lib").parts[0].removesuffix(".py")


def list_files() -> list[Path]:
    files = sorted((ROOT / "course_lib").rglob("*.py"))
    return [
        path
        for path in files
        if path.name != "__main__.py" and path.parent.name not in ("right", "unusual")
    ]


def share_out(sizes: dict[str, int], count: int) -> dict[str, int]:
    """Return how many of ``count`` faults each room gets, by its number of characters."""
    shares = {room: int(size >= LARGE_ROOM) for room, size in sizes.items()}
    while sum(shares.values()) < count:
        shares[max(sizes, key=lambda room: sizes[room] / (2 * shares[room] + 1))] += 1
    return shares


def describe(source: Source, edit: Edit) -> dict:
    before, until_end = source.data[: edit.start], source.data[: edit.end]
    return {
        "room": get_room(source.path), "file": source.path.relative_to(ROOT).as_posix(),
        "kind": edit.kind, "function": edit.function, "statement": edit.statement,
        "place": source.find_alike(edit.function, edit.statement).index(edit),
        "original": until_end[edit.start :].decode(), "replacement": edit.replacement,
        "lines": [before.count(b"\n") + 1, until_end.count(b"\n") + 1],
        "columns": [len(before.rpartition(b"\n")[2]) + 1, len(until_end.rpartition(b"\n")[2])],
    }  # fmt: skip


def draw_from_room(room: str, chance: random.Random, taken: list[dict]) -> dict:
    """Draw a fault that is not in ``taken``: first its kind, then one of the room's such edits."""
    by_kind = collections.defaultdict(list)
    for source in [Source(path) for path in list_files() if get_room(path) == room]:
        for edit in source.edits:
            by_kind[edit.kind].append((source, edit))
    while True:
        kind = chance.choice([kind for kind in KINDS if by_kind[kind]])
        fault = describe(*chance.choice(by_kind[kind]))
        if not any(fault.items() <= other.items() for other in taken):
            return fault


def draw(seed: int, count: int) -> None:
    sizes: collections.Counter[str] = collections.Counter()
    for path in list_files():
        sizes[get_room(path)] += len(path.read_text(encoding="utf-8"))
    chance, faults = random.Random(seed), []
    for room, share in sorted(share_out(sizes, count).items()):
        for _ in range(share):
            fault = draw_from_room(room, chance, faults)
            faults.append({"number": len(faults) + 1, **fault, "seed": seed})
    write_faults({"faults": faults, "replaced": []})


def replace(number: int, seed: int, why: str) -> None:
    stored = read_faults()
    old = get_fault(stored, number)
    taken = [*stored["faults"], *stored["replaced"]]
    fault = {"number": number, **draw_from_room(old["room"], random.Random(seed), taken)}
    stored["faults"][stored["faults"].index(old)] = fault | {"seed": seed}
    stored["replaced"].append(old | {"why": why})
    write_faults(stored)


def read_faults() -> dict:
    return json.loads(FAULTS.read_text(encoding="utf-8"))


def write_faults(stored: dict) -> None:
    text = json.dumps(stored, indent=1, ensure_ascii=False)
    FAULTS.write_text(f"{text}\n", encoding="utf-8")


def get_fault(stored: dict, number: int) -> dict:
    for fault in stored["faults"]:
        if fault["number"] == number:
            return fault
    numbers = f"1 to {len(stored['faults'])}"
    sys.exit(f"plant_faults: {FAULTS} has no fault {number}. Name one from {numbers}.")


def find_edit(fault: dict) -> tuple[Source, Edit]:
    """Return where a fault is planted today: in its file, or in another if only that one has it."""
    statement, path = normalise(fault["statement"]), ROOT / fault["file"]
    for files in ([path] if path.exists() else [], list_files()):
        matches = []
        for source in map(Source, files):
            alike = source.find_alike(fault["function"], statement)[fault["place"] :]
            if alike and alike[0].kind == fault["kind"]:
                matches.append((source, alike[0]))
        if len(matches) == 1:
            return matches[0]
    sys.exit(
        f"plant_faults: fault {fault['number']} of {fault['file']} cannot be planted: no file of "
        f"course_lib, or more than one, has {fault['function']} with `{fault['statement']}`. "
        f"Write into {FAULTS} where that code stands today."
    )  # fmt: skip


def apply(number: int) -> None:
    if PLANTED.exists():
        sys.exit("plant_faults: a fault is planted in this checkout. `revert` takes it back.")
    source, edit = find_edit(get_fault(read_faults(), number))
    fault = {"number": number, "start": edit.start, **describe(source, edit)}
    PLANTED.parent.mkdir(exist_ok=True)
    PLANTED.write_text(json.dumps(fault), encoding="utf-8")
    before, after = source.data[: edit.start], source.data[edit.end :]
    source.path.write_bytes(before + edit.replacement.encode() + after)
    place = f"{fault['file']}:{fault['lines'][0]}"
    print(f"fault {number}: {place}: `{fault['original']}` is now `{edit.replacement}`")


def revert() -> None:
    if not PLANTED.exists():
        sys.exit("plant_faults: no fault is planted in this checkout.")
    fault = json.loads(PLANTED.read_text(encoding="utf-8"))
    path, replacement = ROOT / fault["file"], fault["replacement"].encode()
    data, start = path.read_bytes(), fault["start"]
    if not data.startswith(replacement, start):
        sys.exit(f"plant_faults: {path} changed since the fault was planted: take it back by hand.")
    rest = data[start + len(replacement) :]
    path.write_bytes(data[:start] + fault["original"].encode() + rest)
    PLANTED.unlink()


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    commands = parser.add_subparsers(dest="command", required=True)
    drawing, replacing = commands.add_parser("draw"), commands.add_parser("replace")
    planting, reverting = commands.add_parser("apply"), commands.add_parser("revert")
    drawing.set_defaults(function=draw)
    drawing.add_argument("--count", type=int, default=40)
    replacing.set_defaults(function=replace)
    replacing.add_argument("--why", required=True)
    planting.set_defaults(function=apply)
    reverting.set_defaults(function=revert)
    for command in (drawing, replacing):
        command.add_argument("--seed", type=int, required=True)
    for command in (replacing, planting):
        command.add_argument("number", type=int)
    arguments = vars(parser.parse_args())
    del arguments["command"]
    arguments.pop("function")(**arguments)


if __name__ == "__main__":
    main()
