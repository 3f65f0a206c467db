"""The exceptions and faults of a launch or a call, as typed values.

The child process that ran a case reports them and may have forged them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from course_lib.base.translation import gettext as _
from course_lib.base.translation import mark as N_


class Group(StrEnum):
    """The groups of faults: the group of a kind decides how the kind counts."""

    OUTSIDE = "outside"  # an access outside a tensor
    INPUT = "input"  # an input is written
    MINOR = "minor"  # it counts only if all outputs are right
    INTERLEAVED = "interleaved"  # it shows only if programs that share memory run in another order
    REFUSED = "refused"  # the file uses what the exercise does not allow


_READS_OUTSIDE = (
    Group.OUTSIDE,
    "",
    N_("It reads outside {tensor}; with hidden cases it is not shown where"),
)
_WRITES_OUTSIDE = (
    Group.OUTSIDE,
    "",
    N_("It writes outside {tensor}; with hidden cases it is not shown where"),
)
_DEPENDS_ON_THE_ORDER = N_("{tensor} depends on the order of the programs")
_WAITS = N_("The programs wait for one another")


class FaultKind(StrEnum):
    """The kinds of fault, each by the word that the child writes. If a case has several, the one
    that comes first here is the worst.

    ``cause``: the verdict's cause; "" if the outputs decide it. ``withheld``: the words of the
    verdict if the cases are hidden; "{tensor}" stands for the tensor's name.
    """

    group: Group
    cause: str
    withheld: str

    def __new__(
        cls,
        word: str,
        group: Group,
        cause: str = "",
        withheld: str = N_("It does with {tensor} what it must not"),
    ) -> FaultKind:
        kind = str.__new__(cls, word)
        kind._value_, kind.group, kind.cause, kind.withheld = word, group, cause, withheld
        return kind

    LOAD = "load", *_READS_OUTSIDE
    STORE = "store", *_WRITES_OUTSIDE
    ADD = "add", *_WRITES_OUTSIDE
    FADD = "fadd", *_WRITES_OUTSIDE
    AND = "and", *_WRITES_OUTSIDE
    CAS = "cas", *_WRITES_OUTSIDE
    EXCHANGE = "exch", *_WRITES_OUTSIDE
    MAX = "max", *_WRITES_OUTSIDE
    MIN = "min", *_WRITES_OUTSIDE
    UMAX = "umax", *_WRITES_OUTSIDE
    UMIN = "umin", *_WRITES_OUTSIDE
    OR = "or", *_WRITES_OUTSIDE
    XCHG = "xchg", *_WRITES_OUTSIDE
    XOR = "xor", *_WRITES_OUTSIDE
    INPUT = "input", Group.INPUT, "input_changed", N_("{tensor} is an input, and is written")
    READS = (
        "reads",
        Group.MINOR,
        "extra_pass",
        N_("It reads {tensor} more often than the exercise allows"),
    )
    MEETINGS = (
        "meetings",
        Group.MINOR,
        "lanes_meet_often",
        N_("The lanes meet more often than the exercise allows"),
    )
    EMPTY = "empty", Group.MINOR, "empty_tiles", N_("Most loads have no lane")
    ALONE = "alone", Group.MINOR, "work_not_shared", N_("One program does the work of the others")
    CALLS = "calls", Group.MINOR, "not_its_own", N_("An entry point leaves its work to another")
    OFTEN = (
        "often",
        Group.MINOR,
        "too_many_calls",
        N_("An entry point calls another more often than the exercise allows"),
    )
    UNCALLED = (
        "uncalled",
        Group.MINOR,
        "part_not_used",
        N_("An entry point does not use the one that it is to use"),
    )
    CTX = "ctx", Group.MINOR, "tensor_on_ctx", N_("A tensor is kept on ctx as an attribute")
    SECOND = (
        "second",
        Group.MINOR,
        "second_derivative_wrong",
        N_("A second derivative is wrong, without an error"),
    )
    READ_BACK = (
        "read back",
        Group.MINOR,
        "overwritten_read",
        N_("{tensor} is read after it was overwritten"),
    )
    UNLIKE = (
        "unlike",
        Group.MINOR,
        "chunks_disagree",
        N_("{tensor} has other bits in one column of a row than in another"),
    )
    BATCH = (
        "batch",
        Group.MINOR,
        "batch_dependent",
        N_("{tensor} has other bits in a batch of another number of rows"),
    )
    UNWRITTEN = (
        "unwritten",
        Group.MINOR,
        "output_read_first",
        N_("{tensor} is read before it is written"),
    )
    STALE_IN_AN_ORDER = ("stale in an order", Group.MINOR, "read_too_early", _DEPENDS_ON_THE_ORDER)
    RACE = (
        "race",
        Group.INTERLEAVED,
        "race",
        N_("Two programs touch {tensor} with nothing to order them"),
    )
    BOTH_STORE = (
        "both store",
        Group.INTERLEAVED,
        "race",
        N_("Two programs store into {tensor} with nothing to order them"),
    )
    GAVE_UP = (
        "gave up",
        Group.INTERLEAVED,
        "wait_given_up",
        N_("A program gives up a wait, and touches {tensor} all the same"),
    )
    NO_BARRIER = (
        "no barrier",
        Group.INTERLEAVED,
        "barrier_missing",
        N_("A barrier is missing before {tensor} is touched"),
    )
    EACH_LOADS = (
        "each loads",
        Group.INTERLEAVED,
        "number_of_each_thread",
        N_("A barrier is missing between a load and a store of {tensor}"),
    )
    DEADLOCK = "deadlock", Group.INTERLEAVED, "deadlock", _WAITS
    LIVELOCK = "livelock", Group.INTERLEAVED, "deadlock", _WAITS
    STALE = "stale", Group.INTERLEAVED, "read_too_early", _DEPENDS_ON_THE_ORDER
    ORDER = "order", Group.INTERLEAVED, "order_dependent", _DEPENDS_ON_THE_ORDER
    NOT_ALLOWED = "not_allowed", Group.REFUSED, "not_allowed"
    UNDEFINED_NAME = "undefined_name", Group.REFUSED, "undefined_name"


@dataclass(frozen=True)
class Fault:
    """A fault of a case, which its outputs need not show. ``tensor`` is a tensor's name or "";
    ``row`` and ``line`` are None if unknown."""

    kind: FaultKind
    tensor: str
    row: int | None
    line: int | None
    words: str = ""


@dataclass(frozen=True)
class Raised:
    """An exception of a case or of an import: the name of its type, and its place in the learner's
    file. With a ``fault`` the case may still have run to its end. ``lost``: no further case could
    be run."""

    type: str
    text: str
    line: int | None = None
    column: int | None = None
    end_column: int | None = None
    lost: bool = False
    fault: Fault | None = None


class Misuse(Exception):
    """A fault of a case that its outputs may not show. ``tensor`` is the name of the tensor, or ""
    if there is none.

    A minor fault is usually not raised: the case goes on, and its values are judged as well.
    """

    def __init__(
        self,
        kind: FaultKind,
        message: str,
        tensor: str = "",
        line: int | None = None,
        row: int | None = None,
    ):
        super().__init__(message)
        self.fault = Fault(kind, tensor, row, line)


def find_worst(*misuses: Misuse | None) -> Misuse | None:
    """Return the one whose kind comes first in :class:`FaultKind`."""
    order = list(FaultKind)
    return min(
        (misuse for misuse in misuses if misuse is not None),
        key=lambda misuse: order.index(misuse.fault.kind),
        default=None,
    )


def describe_line(line: int | None) -> str:
    return "" if line is None else _(" at line {line}").format(line=line)
