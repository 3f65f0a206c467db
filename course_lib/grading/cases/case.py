"""One case of a battery, as data. The batteries stand in the cases.py of their exercises, one line
per case.

Inputs matter more than tolerances. Normal values around zero with N a power of two let a third of
all wrong LayerNorm kernels pass. Each line of a battery is there because some wrong solution passes
all other lines; its ``mistake`` says which one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from course_lib.base.translation import gettext as _
from course_lib.base.translation import translate
from course_lib.base.words import list_words

# stands in the `why` of a SharedCase for the name and the number of the partial sums
PARTIALS = "{partials}"
# Elements from one row to the next. Row 2 starts past 2^31, where a signed 32-bit product turns
# negative, and row 3 past 2^32, where an unsigned one wraps round.
FAR_STRIDE = 3 * 2**29
_BETWEEN_PARTS = re.compile("(, |: )")


@dataclass(frozen=True)
class Case:
    """One case, before its values are drawn.

    ``fill`` is "normal" (mean, std), "constant" (every element is ``mean``), "nan row" (row 0 of
    normal values begins with NaN), "inf row" (row 1 gets one Inf), "first far out" (or "middle far
    out", "last far out": one element of each row lies 200 std away), "large first" (the first
    quarter of each row is 1500 times as large as the rest, so that the order of a sum shows in its
    bits), or "worked" (the 3 x 8 worked example).
    ``layout`` is "packed" (rows follow each other), "sliced" (x and y are slices of wider matrices
    that are filled with NaN and differ in width), or "far" (rows 1.5 * 2^30 elements apart).
    An exercise may add other fills and layouts. ``dtypes`` lists the tensors whose dtype is not
    ``dtype``.
    """

    name: str
    M: int
    N: int
    block: int  # columns per block; 0 for a function, which has no blocks
    why: str
    # The mistake of a wrong solution that this case finds; a learner does not see it. It is left
    # out of the repr for the reason given below.
    mistake: str = field(default="", repr=False, compare=False)
    dtype: str = "fp32"
    rows: int = 1
    mean: float = 0.0
    std: float = 1.0
    eps: float = 1e-5
    fill: str = "normal"
    layout: str = "packed"
    w_dtype: str = ""  # the dtype of w and b; empty means ``dtype``
    dtypes: tuple[tuple[str, str], ...] = ()
    vector: bool = False  # x has one dimension, of N numbers
    plain: bool = False  # w is 1 and b is 0, so that y is easy to read
    # the leading dimensions of x, with the product M; empty means (M,)
    leading: tuple[int, ...] = ()
    block_name: str = "BLOCK"  # the kernel's name for the columns per step
    rows_name: str = "ROWS"  # the kernel's name for the rows per program
    # x and the other inputs are small whole numbers. No case of a battery sets this field. It is
    # left out of the repr, because measurements on a battery are stored under the repr of its
    # cases.
    by_hand: bool = field(default=False, repr=False)

    @property
    def padded_lanes(self) -> int:
        """The number of lanes past the last column, over all blocks of a row."""
        return -self.N % self.block if self.block else 0

    @property
    def bad_row(self) -> int | None:
        """The row that holds a NaN or an Inf, if there is one."""
        return {"nan row": 0, "inf row": 1}.get(self.fill)

    @property
    def has_bad_row(self) -> bool:
        return self.bad_row is not None

    @property
    def is_far(self) -> bool:
        """True if some tensor's rows or columns lie so far apart that offsets need 64 bits."""
        return self.layout.startswith("far")

    @property
    def has_far_columns(self) -> bool:
        return self.layout == "far columns"

    @property
    def has_mixed_dtypes(self) -> bool:
        return self.w_dtype not in ("", self.dtype) or any(
            dtype != self.dtype for _name, dtype in self.dtypes
        )

    def dtype_of(self, name: str) -> str:
        """Return the dtype of the tensor ``name``."""
        return (
            dict(self.dtypes).get(name)
            or (self.w_dtype if name in ("w", "b") else "")
            or self.dtype
        )

    @property
    def one_block(self) -> bool:
        return not self.block or self.block >= self.N

    def describe(self) -> str:
        """Describe the case for a learner: shape, dtype and what is special."""
        return _("{shape}: {why}").format(shape=self.describe_shape(), why=self.describe_why())

    def describe_shape(self) -> str:
        """Describe shape and dtype for a learner."""
        if self.leading:
            parts = [
                _("x of shape {shape}").format(
                    shape=f"({', '.join(map(str, self.leading))}, {self.N})"
                )
            ]
        else:
            parts = [f"n = {self.N}"] if self.vector else [f"M = {self.M}", f"N = {self.N}"]
        if self.block:
            parts.append(f"{self.block_name} = {self.block}")
        if self.rows > 1:
            parts.append(f"{self.rows_name} = {self.rows}")
        others = list_words(
            _("{name} in {dtype}").format(name=name, dtype=dtype) for name, dtype in self.dtypes
        )
        parts.append(
            _("{dtype} but {others}").format(dtype=self.dtype, others=others)
            if others
            else self.dtype
        )
        return _(", ").join(parts)

    def describe_why(self) -> str:
        """Return ``why`` in the chosen language."""
        function, words = self.split_why()
        return f"{function}{_(', ')}{_(words)}" if function else _(words)

    def split_why(self) -> tuple[str, str]:
        """Return the function that ``why`` names at its beginning, in backquotes, and the other
        words; "" if it names none."""
        function, comma, words = self.why.partition(", ")
        return (
            (function, words) if comma and function[:1] == function[-1] == "`" else ("", self.why)
        )

    def describe_outcome(self, entry_point: str, outputs: dict[str, Any]) -> str:
        """Say what wrong outputs mean, if their numbers alone tell a learner nothing; else return
        ""."""
        return ""

    def describe_success(self, outputs: dict[str, Any]) -> str:
        """Say what right outputs mean, if there is more to tell than that they are right; else
        return ""."""
        return ""


@dataclass(frozen=True)
class SharedCase(Case):
    """A case whose rows are added up by several programs.

    ``partials``: the number of partial sums, one per buffer, per chunk of the M rows, or per
    program. ``partials_name``: the kernel's name for this number. ``{partials}`` in ``why`` stands
    for both, as in "GROUP = 2". ``chunk``: rows per chunk. ``orders``: how many orders of the
    programs' memory operations are tried. ``resident``: how many programs run at one time in these
    orders; it is left out of the repr for the reason given at ``by_hand``.
    """

    partials: int = 1
    chunk: int = 0
    orders: int = 2
    partials_name: str = ""
    resident: int = field(default=8, repr=False)

    def describe(self) -> str:
        rest = f"{_(', ')}rows_a_chunk = {self.chunk}" if self.chunk else ""
        words = super().describe().replace(f"N = {self.N}", f"N = {self.N}{rest}", 1)
        return words.replace(PARTIALS, f"{self.partials_name} = {self.partials}")


def split_name(name: str) -> list[str]:
    """Return the parts of a case's name: "welford" and "many rows" of "welford, many rows"."""
    return _BETWEEN_PARTS.split(name)[::2]


def describe_name(name: str) -> str:
    """Return the name of a case in the chosen language, in which each part is translated by
    itself."""
    return "".join(
        _(piece) if _BETWEEN_PARTS.fullmatch(piece) else translate(piece, "causes")
        for piece in _BETWEEN_PARTS.split(name)
    )


def describe_padded_lanes(case: Case) -> str:
    """Say how many padded lanes the case has; return "" if it has none."""
    words = _("{count} padded lane") if case.padded_lanes == 1 else _("{count} padded lanes")
    return words.format(count=case.padded_lanes) if case.padded_lanes else ""
