"""The inputs that find bugs, as data: one line a case, with the reason it is there.

Inputs matter more than tolerances. Normal values around zero with N a power of two let a third of all wrong LayerNorm
kernels through; each line below is there because some wrong kernel passes all the others.
"""

from __future__ import annotations

from dataclasses import dataclass

FAR_STRIDE = 2**30  # elements between rows: row 2 starts at 2^31, where a 32-bit product turns negative


@dataclass(frozen=True)
class Case:
    """One case, before it is made concrete.

    ``fill`` is "normal" (mean, std), "constant" (every element is ``mean``), "nan row" or "inf row" (row 1 of normal
    values gets one NaN or Inf), "worked" (the 3 x 8 worked example). ``layout`` is "packed" (rows follow each other),
    "sliced" (x and y are slices of wider, NaN-filled matrices, of different widths) or "far" (rows 2^30 apart).
    """

    name: str
    M: int
    N: int
    block: int
    why: str
    dtype: str = "fp32"
    rows: int = 1
    mean: float = 0.0
    std: float = 1.0
    eps: float = 1e-5
    fill: str = "normal"
    layout: str = "packed"
    w_dtype: str = ""  # empty: as dtype
    vector: bool = False  # x is no matrix but N numbers

    @property
    def padded_lanes(self) -> int:
        """Lanes past the last column, over all blocks of a row."""
        return -self.N % self.block

    @property
    def has_bad_row(self) -> bool:
        """Row 1 holds a NaN or an Inf."""
        return self.fill in ("nan row", "inf row")

    @property
    def one_block(self) -> bool:
        return self.block >= self.N

    def described(self) -> str:
        """Shape, dtype and what is special, for a person."""
        parts = [f"n = {self.N}"] if self.vector else [f"M = {self.M}", f"N = {self.N}"]
        parts.append(f"BLOCK = {self.block}")
        if self.rows > 1:
            parts.append(f"ROWS = {self.rows}")
        parts.append(self.dtype)
        return f"{', '.join(parts)}: {self.why}"


COPY = (
    Case("one full block", 1, 8, 8, "n equals BLOCK, one program", vector=True),
    Case("two full blocks", 1, 16, 8, "two programs", vector=True),
    Case("three lanes over", 1, 13, 8, "n is no multiple of BLOCK", vector=True),
    Case("one element", 1, 1, 8, "seven of eight lanes are past the end", vector=True),
    Case("many programs", 1, 1000, 64, "16 programs, the last one partly filled", vector=True),
    Case("half precision", 1, 200, 128, "another dtype", dtype="fp16", vector=True),
)

# Each line is one row of work a program; cheap in the interpreter because M is small and N costs little.
LAYER_NORM_BLOCKED = (
    Case("worked example", 3, 8, 4, "the 3 x 8 matrix of lesson 06, two full blocks", fill="worked"),
    Case("padded, mean 3", 5, 17, 8, "7 padded lanes, mean 3", mean=3.0),
    Case("one short block", 3, 7, 16, "N below BLOCK, 9 padded lanes, mean -2", mean=-2.0),
    Case("one column", 2, 1, 16, "N = 1: the variance is 0, so y is b"),
    Case("one row", 1, 129, 128, "M = 1, one column in the second block", mean=1.0),
    Case("many blocks", 2, 1000, 64, "16 blocks, 24 padded lanes, mean 3", mean=3.0),
    Case("small spread", 3, 100, 128, "std 0.03: eps = 0.1 rules the result", std=0.03, eps=0.1, mean=0.5),
    Case("tiny eps", 3, 96, 32, "std 0.03, eps = 1e-12", std=0.03, eps=1e-12),
    Case("constant row", 2, 20, 8, "the variance is exactly 0", fill="constant", mean=0.75, eps=1e-3),
    Case("mean 1000", 2, 768, 256, "the mean is 1000 times the spread", mean=1e3),
    Case("mean 10000", 2, 255, 64, "the mean is 10000 times the spread", mean=1e4),
    Case("fp16", 3, 129, 64, "half precision in and out, mean 3", dtype="fp16", mean=3.0),
    Case("fp16, std 100", 2, 2500, 1024, "squares pass fp16's largest number, 65504", dtype="fp16", std=100.0),
    Case("fp16, mean 8", 2, 1025, 512, "sums of squares need more than fp16's 11 bits", dtype="fp16", mean=8.0, std=0.5),
    Case("bf16", 3, 127, 128, "bfloat16 in and out, mean 3", dtype="bf16", mean=3.0),
    Case("fp32 weights", 2, 33, 16, "x in fp16, w and b in fp32", dtype="fp16", w_dtype="fp32"),
    Case("sliced", 4, 50, 16, "x and y are slices of wider matrices, so their row strides differ", mean=2.0, layout="sliced"),
    Case("a NaN row", 4, 19, 8, "row 1 holds a NaN: it must stay in row 1", fill="nan row"),
    Case("an Inf row", 4, 19, 8, "row 1 holds an Inf: it must stay in row 1", fill="inf row"),
    Case("far rows", 3, 17, 16, "rows 2^30 elements apart", dtype="fp16", layout="far"),
)

LAYER_NORM_RESIDENT = (
    Case("worked example", 3, 8, 8, "the 3 x 8 matrix of lesson 06, one row a program", fill="worked"),
    Case("padded, mean 3", 5, 17, 32, "15 padded lanes, mean 3", mean=3.0),
    Case("two rows a program", 4, 16, 16, "no padding, two full tiles", rows=2, mean=1.0),
    Case("a row too many", 5, 12, 16, "M = 5 is no multiple of ROWS = 4", rows=4, mean=-2.0),
    Case("one row, many asked", 1, 30, 32, "M = 1, ROWS = 8", rows=8, mean=3.0),
    Case("one column", 3, 1, 16, "N = 1: the variance is 0, so y is b", rows=2),
    Case("many rows", 70, 20, 32, "9 programs of 8 rows, the last one partly filled", rows=8, mean=1.0),
    Case("small spread", 3, 100, 128, "std 0.03: eps = 0.1 rules the result", rows=2, std=0.03, eps=0.1, mean=0.5),
    Case("tiny eps", 3, 96, 128, "std 0.03, eps = 1e-12", rows=2, std=0.03, eps=1e-12),
    Case("constant row", 2, 20, 32, "the variance is exactly 0", fill="constant", mean=0.75, eps=1e-3),
    Case("mean 1000", 2, 768, 1024, "the mean is 1000 times the spread", mean=1e3),
    Case("mean 10000", 2, 255, 256, "the mean is 10000 times the spread", rows=2, mean=1e4),
    Case("fp16", 3, 129, 256, "half precision in and out, mean 3", rows=2, dtype="fp16", mean=3.0),
    Case("fp16, std 100", 2, 2500, 4096, "squares pass fp16's largest number, 65504", dtype="fp16", std=100.0),
    Case("fp16, mean 8", 2, 1025, 2048, "sums of squares need more than fp16's 11 bits", dtype="fp16", mean=8.0, std=0.5),
    Case("bf16", 3, 127, 128, "bfloat16 in and out, mean 3", rows=2, dtype="bf16", mean=3.0),
    Case("fp32 weights", 2, 33, 64, "x in fp16, w and b in fp32", rows=2, dtype="fp16", w_dtype="fp32"),
    Case("sliced", 5, 50, 64, "x and y are slices of wider matrices, so their row strides differ", rows=2, mean=2.0, layout="sliced"),
    Case("a NaN row", 4, 19, 32, "row 1 holds a NaN: it must stay in row 1", rows=4, fill="nan row"),
    Case("an Inf row", 4, 19, 32, "row 1 holds an Inf: it must stay in row 1", rows=4, fill="inf row"),
    Case("far rows", 3, 17, 32, "rows 2^30 elements apart", rows=2, dtype="fp16", layout="far"),
)

RMS_NORM = (
    Case("worked example", 3, 8, 8, "the 3 x 8 matrix of lesson 07", fill="worked"),
    Case("padded, mean 3", 5, 17, 32, "15 padded lanes, mean 3", mean=3.0),
    Case("one column", 2, 1, 16, "N = 1"),
    Case("one row", 1, 129, 256, "M = 1, 127 padded lanes"),
    Case("long row", 2, 1000, 1024, "24 padded lanes"),
    Case("near zero", 3, 100, 128, "values around 0.003: where eps stands decides the result", std=0.003, eps=1e-5),
    Case("large eps", 3, 96, 128, "std 0.03, eps = 0.1", std=0.03, eps=0.1),
    Case("tiny eps", 3, 96, 128, "std 0.03, eps = 1e-12", std=0.03, eps=1e-12),
    Case("zero row", 2, 20, 32, "every element is 0: y is 0, not NaN", fill="constant", mean=0.0),
    Case("fp16", 3, 129, 256, "half precision in and out, mean 3", dtype="fp16", mean=3.0),
    Case("fp16, std 100", 2, 2500, 4096, "squares pass fp16's largest number, 65504", dtype="fp16", std=100.0),
    Case("fp16, mean 8", 2, 1025, 2048, "sums of squares need more than fp16's 11 bits", dtype="fp16", mean=8.0, std=0.5),
    Case("bf16", 3, 127, 128, "bfloat16 in and out, mean 3", dtype="bf16", mean=3.0),
    Case("fp32 weights", 2, 33, 64, "x in fp16, w in fp32", dtype="fp16", w_dtype="fp32"),
    Case("sliced", 4, 50, 64, "the matrices are slices of wider ones, so their row strides differ", mean=2.0, layout="sliced"),
    Case("a NaN row", 4, 19, 32, "row 1 holds a NaN: it must stay in row 1", fill="nan row"),
    Case("an Inf row", 4, 19, 32, "row 1 holds an Inf: it must stay in row 1", fill="inf row"),
    Case("far rows", 3, 17, 32, "rows 2^30 elements apart", dtype="fp16", layout="far"),
)
