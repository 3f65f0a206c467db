"""The exceptions and the faults of a case, as typed values. The child process that ran the case reports them and may have forged them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

_NUMBER = (int, type(None))
_MOST_LINES = 10_000_000
_NAMES = {"type", "text", "line", "column", "end_column", "lost", "fault"}


class FaultKind(StrEnum):
    """The kinds of fault, each by the word that the child writes. :data:`FACTS` has the rest of what is known of a kind."""

    LOAD = "load"
    STORE = "store"
    ADD = "add"
    FADD = "fadd"
    AND = "and"
    CAS = "cas"
    EXCHANGE = "exch"
    MAX = "max"
    MIN = "min"
    UMAX = "umax"
    UMIN = "umin"
    OR = "or"
    XCHG = "xchg"
    XOR = "xor"
    INPUT = "input"
    READS = "reads"
    EMPTY = "empty"
    ALONE = "alone"
    CALLS = "calls"
    UNCALLED = "uncalled"
    CTX = "ctx"
    UNWRITTEN = "unwritten"
    RACE = "race"
    BOTH_STORE = "both store"
    GAVE_UP = "gave up"
    NO_BARRIER = "no barrier"
    DEADLOCK = "deadlock"
    LIVELOCK = "livelock"
    ORDER = "order"
    NOT_ALLOWED = "not_allowed"
    UNDEFINED_NAME = "undefined_name"


class Group(StrEnum):
    """The groups of faults: the group of a kind decides how the kind counts."""

    OUTSIDE = "outside"  # an access outside a tensor
    INPUT = "input"  # an input is written
    MINOR = "minor"  # it counts only if all outputs are right
    INTERLEAVED = "interleaved"  # it shows only if programs that share memory run in another order
    REFUSED = "refused"  # the file uses what the exercise does not allow


@dataclass(frozen=True)
class Facts:
    """The facts about a kind of fault. ``cause``: the verdict's cause; "" if the outputs decide it. ``withheld``: the words of the verdict
    if the cases are hidden; "{tensor}" stands for the tensor's name."""

    group: Group
    cause: str = ""
    withheld: str = "It does with {tensor} what it must not"


_READS_OUTSIDE = Facts(Group.OUTSIDE, withheld="It reads outside {tensor}; with hidden cases it is not shown where")
_WRITES_OUTSIDE = Facts(Group.OUTSIDE, withheld="It writes outside {tensor}; with hidden cases it is not shown where")
_WAITS = "The programs wait for one another"
# The order counts: if a case has several minor faults, the verdict names the one that comes first here, which is the worst.
FACTS: dict[FaultKind, Facts] = {
    FaultKind.LOAD: _READS_OUTSIDE,
    **dict.fromkeys(
        (
            FaultKind.STORE, FaultKind.ADD, FaultKind.FADD, FaultKind.AND, FaultKind.CAS, FaultKind.EXCHANGE, FaultKind.MAX, FaultKind.MIN,
            FaultKind.UMAX, FaultKind.UMIN, FaultKind.OR, FaultKind.XCHG, FaultKind.XOR,
        ),
        _WRITES_OUTSIDE,
    ),
    FaultKind.INPUT: Facts(Group.INPUT, "input_changed", "{tensor} is an input, and is written"),
    FaultKind.READS: Facts(Group.MINOR, "extra_pass", "It reads {tensor} more often than the exercise allows"),
    FaultKind.EMPTY: Facts(Group.MINOR, "empty_tiles", "Most loads have no lane"),
    FaultKind.ALONE: Facts(Group.MINOR, "work_not_shared", "One program does the work of the others"),
    FaultKind.CALLS: Facts(Group.MINOR, "not_its_own", "An entry point leaves its work to another"),
    FaultKind.UNCALLED: Facts(Group.MINOR, "part_not_used", "An entry point does not use the one that it is to use"),
    FaultKind.CTX: Facts(Group.MINOR, "tensor_on_ctx", "A tensor is kept on ctx as an attribute"),
    FaultKind.UNWRITTEN: Facts(Group.MINOR, "output_read_first", "{tensor} is read before it is written"),
    FaultKind.RACE: Facts(Group.INTERLEAVED, "race", "Two programs touch {tensor} with nothing to order them"),
    FaultKind.BOTH_STORE: Facts(Group.INTERLEAVED, "race", "Two programs store into {tensor} with nothing to order them"),
    FaultKind.GAVE_UP: Facts(Group.INTERLEAVED, "wait_given_up", "A program gives up a wait, and touches {tensor} all the same"),
    FaultKind.NO_BARRIER: Facts(Group.INTERLEAVED, "barrier_missing", "A barrier is missing before {tensor} is touched"),
    FaultKind.DEADLOCK: Facts(Group.INTERLEAVED, "deadlock", _WAITS),
    FaultKind.LIVELOCK: Facts(Group.INTERLEAVED, "deadlock", _WAITS),
    FaultKind.ORDER: Facts(Group.INTERLEAVED, "order_dependent", "{tensor} depends on the order of the programs"),
    FaultKind.NOT_ALLOWED: Facts(Group.REFUSED, "not_allowed"),
    FaultKind.UNDEFINED_NAME: Facts(Group.REFUSED, "undefined_name"),
}  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """A fault of a case, which its outputs need not show. ``tensor`` is a tensor's name or ""; ``row`` and ``line`` are None if unknown."""

    kind: FaultKind
    tensor: str
    row: int | None
    line: int | None
    words: str = ""

    @property
    def group(self) -> Group:
        return FACTS[self.kind].group

    @property
    def cause(self) -> str:
        return FACTS[self.kind].cause


@dataclass(frozen=True)
class Raised:
    """An exception of a case or of an import: the name of its type, and its place in the learner's file. With a ``fault`` the case may
    still have run to its end. ``lost``: no further case could be run."""

    type: str
    text: str
    line: int | None = None
    column: int | None = None
    end_column: int | None = None
    lost: bool = False
    fault: Fault | None = None


def decode_raised(plain: Any) -> Raised | None:
    """Decode what the child wrote; return None if its form is not the one that the child writes."""
    if not isinstance(plain, dict) or not plain.keys() <= _NAMES:
        return None
    if not isinstance(plain.get("type"), str) or not isinstance(plain.get("text"), str):
        return None
    numbers = {name: plain.get(name) for name in ("line", "column", "end_column")}
    if not all(isinstance(number, _NUMBER) for number in numbers.values()) or not isinstance(plain.get("lost"), bool):
        return None
    fault = _decode_fault(plain.get("fault"), plain["text"])
    if plain.get("fault") is not None and fault is None:
        return None
    if not 0 < (numbers["line"] or 0) < _MOST_LINES:
        numbers["line"] = None
    return Raised(plain["type"], plain["text"], **numbers, lost=plain["lost"], fault=fault)


def _decode_fault(plain: Any, words: str) -> Fault | None:
    if not isinstance(plain, dict) or plain.get("kind") not in list(FaultKind):
        return None
    kind, tensor, row, line = (plain.get(name) for name in ("kind", "tensor", "row", "line"))
    if not isinstance(tensor, str) or not isinstance(row, _NUMBER) or not isinstance(line, _NUMBER):
        return None
    return Fault(FaultKind(kind), tensor, row, line, words)
