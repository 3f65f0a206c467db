"""One case of a battery, as data. The batteries stand with their families, in families/, one line a case.

Inputs matter more than tolerances. Normal values around zero with N a power of two let a third of all wrong LayerNorm
kernels through; every line of a battery is there because some wrong solution passes all the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PARTIALS = "{partials}"  # in the `why` of a SharedCase: their name and number
# elements between rows: row 2 starts past 2^31, where a 32-bit product turns negative, and row 3 past 2^32, where one without
# a sign begins anew
FAR_STRIDE = 3 * 2**29


@dataclass(frozen=True)
class Case:
    """One case, before it is made concrete.

    ``fill`` is "normal" (mean, std), "constant" (every element is ``mean``), "nan row" or "inf row" (row 1 of normal
    values gets one NaN or Inf), "first far out" (or "middle", "last": one element of each row lies 200 std away), "worked" (the 3 x 8
    worked example). ``layout`` is "packed" (rows follow each other),
    "sliced" (x and y are slices of wider, NaN-filled matrices, of different widths), "far" (rows 1.5 * 2^30 apart), or what
    a family adds to these. ``dtypes`` are those of tensors whose dtype is another than ``dtype``.
    """

    name: str
    M: int
    N: int
    block: int  # 0 for a function, which has no blocks
    why: str
    dtype: str = "fp32"
    rows: int = 1
    mean: float = 0.0
    std: float = 1.0
    eps: float = 1e-5
    fill: str = "normal"
    layout: str = "packed"
    w_dtype: str = ""  # of w and b; empty: as dtype
    dtypes: tuple[tuple[str, str], ...] = ()
    vector: bool = False  # x is no matrix but N numbers
    plain: bool = False  # w is 1 and b is 0, for a person who looks at y
    leading: tuple[int, ...] = ()  # the leading dimensions of x, M elements in all; empty: (M,)
    block_name: str = "BLOCK"  # what the kernel calls the columns a step, and the rows
    rows_name: str = "ROWS"
    # x and all that goes with it are small whole numbers. No case of a battery has them, and none is to look changed by this field:
    # what was measured on a battery is kept under its cases' repr
    by_hand: bool = field(default=False, repr=False)

    @property
    def padded_lanes(self) -> int:
        """Lanes past the last column, over all blocks of a row."""
        return -self.N % self.block if self.block else 0

    @property
    def has_bad_row(self) -> bool:
        """Row 1 holds a NaN or an Inf."""
        return self.fill in ("nan row", "inf row")

    @property
    def is_far(self) -> bool:
        """Some tensor's rows, or columns, lie so far apart that offsets need 64 bits."""
        return self.layout.startswith("far")

    @property
    def has_far_columns(self) -> bool:
        return self.layout == "far columns"

    @property
    def has_mixed_dtypes(self) -> bool:
        return self.w_dtype not in ("", self.dtype) or any(dtype != self.dtype for _, dtype in self.dtypes)

    def dtype_of(self, name: str) -> str:
        """The dtype of the case's tensor of this name."""
        return dict(self.dtypes).get(name) or (self.w_dtype if name in ("w", "b") else "") or self.dtype

    @property
    def one_block(self) -> bool:
        return not self.block or self.block >= self.N

    def describe(self) -> str:
        """Shape, dtype and what is special, for a person."""
        if self.leading:
            parts = [f"x of shape ({', '.join(map(str, self.leading))}, {self.N})"]
        else:
            parts = [f"n = {self.N}"] if self.vector else [f"M = {self.M}", f"N = {self.N}"]
        if self.block:
            parts.append(f"{self.block_name} = {self.block}")
        if self.rows > 1:
            parts.append(f"{self.rows_name} = {self.rows}")
        others = [f"{name} in {dtype}" for name, dtype in self.dtypes]
        parts.append(f"{self.dtype} but {', '.join(others)}" if others else self.dtype)
        return f"{', '.join(parts)}: {self.why}"

    def describe_outcome(self, entry_point: str, outputs: dict[str, Any]) -> str:
        """What wrong outputs mean, where their numbers say nothing to a person; empty where they do."""
        return ""

    def describe_success(self, outputs: dict[str, Any]) -> str:
        """What right outputs mean, where a person wants to know more than that they are right; else empty."""
        return ""


@dataclass(frozen=True)
class SharedCase(Case):
    """A case whose rows are added up by several programs.

    ``partials``: rows of the partial sums: buffers, chunks of the M rows, or programs of the grid. ``partials_name``: what the
    kernel calls their number; ``{partials}`` in ``why`` stands for both, as in "GROUP = 2". ``chunk``: rows a chunk.
    ``orders``: how many orders of the programs' operations are tried.
    """

    partials: int = 1
    chunk: int = 0
    orders: int = 2
    partials_name: str = ""

    def describe(self) -> str:
        rest = f", rows_a_chunk = {self.chunk}" if self.chunk else ""
        words = super().describe().replace(f"N = {self.N}", f"N = {self.N}{rest}", 1)
        return words.replace(PARTIALS, f"{self.partials_name} = {self.partials}")
