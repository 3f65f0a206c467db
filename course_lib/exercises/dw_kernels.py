"""dw and db as kernels, under a lock, in two stages and persistent: the inputs that find their
bugs, and their wrong formulas.

Programs share memory here, so a case is launched several times with its programs interleaved. This
finds races and deadlocks, and results whose bits depend on the order where they must not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np

from course_lib.exercises import by_hand
from course_lib.exercises.batteries import make_case
from course_lib.exercises.dx_kernels import (
    LAYER_NORM_MISTAKES,
    compute_wrong_dx,
    is_wrong_where_sums_vanish,
    list_dx_dtype_models,
)
from course_lib.exercises.gradients import (
    bound_terms,
    compute_hat,
    draw_backward_inputs,
    expect_dx,
    list_misread_models,
    place_by_rows,
    save_statistics,
)
from course_lib.exercises.making import (
    FEW,
    add_up_lanes,
    list_dtype_models,
    make_expected,
    place_statistic,
    place_vector,
)
from course_lib.grading.cases.buffers import Tensor, round_to, size_guard
from course_lib.grading.cases.case import FAR_STRIDE, SharedCase
from course_lib.grading.cases.plan import Expected, Model, Outputs, Part, Plan
from course_lib.grading.judging.elements import judge_elements
from course_lib.norms import reference

# Rows of cases with GROUP buffers, with P programs of a grid, and with chunks of rows.
_buffers = partial(make_case, of=SharedCase, partials_name="GROUP")
_programs = partial(make_case, of=SharedCase, partials_name="P")
_chunks = partial(make_case, of=SharedCase, block_name="BLOCK_N", rows_name="BLOCK_M")


@dataclass(frozen=True)
class _Sums(SharedCase):
    """A case of the second stage. In the layout "far" the matrices of partial sums have FAR_STRIDE
    columns, and only one program runs, which has the first N of them."""

    def describe(self) -> str:
        words = super().describe()
        return words.replace(f"N = {self.N}", f"N = {FAR_STRIDE}", 1) if self.is_far else words


_partials = partial(
    make_case, of=_Sums, partials_name="P", block_name="BLOCK_N", rows_name="BLOCK_P"
)

# In every case dy is normal with mean 0.5. The sums are those of buffers, chunks or programs, so
# few rows are enough.
LOCKED = (
    _buffers("the tutorial's picture", 4, 8, 8,
        "{partials}: rows 0 and 2 share a buffer, rows 1 and 3 the other",
        "rows go to a wrong buffer", partials=2, orders=6),
    _buffers("one buffer", 6, 17, 32, "{partials}: every row waits for every other",
        "a buffer is added to without its lock", mean=3.0, partials=1, orders=6),
    _buffers("fewer rows than buffers", 8, 20, 32,
        "{partials}: every row is the first of its buffer",
        "a buffer is added to before it is first written", mean=1.0, partials=11, orders=2),
    _buffers("M no multiple of GROUP", 7, 12, 16, "{partials}: the first buffer takes three rows",
        "a buffer takes neighbouring rows", mean=-2.0, partials=3, orders=4),
    _buffers("one row", 1, 30, 32, "M = 1, {partials}", mean=3.0, partials=4, orders=1),
    _buffers("one column", 5, 1, 16, "N = 1, {partials}", "a column past N is written", partials=2),
    _buffers("long row", 4, 1000, 1024, "{partials}, 24 padded lanes",
        "columns after the first block are left out", mean=3.0, partials=2),
    _buffers("mean 1000", 4, 96, 128, "{partials}, the mean is 1000 times the spread",
        "xhat is computed from a rounded mean", partials=2),
    _buffers("many rows", 20, 16, 16, "{partials}, more rows than run at once",
        "only the first rows are added up", partials=3),
    _buffers("fp16", 16, 33, 64, "{partials}: 16 rows in half precision", partials=1),
    _buffers("bf16", 6, 33, 64, "{partials}, bfloat16 in", partials=2),
    _buffers("fp32 dy", 6, 33, 64, "{partials}, each tensor in a dtype of its own",
        dtypes=(("x", "fp16"),), mean=3.0, partials=2, orders=1),
    _buffers("fp32 x", 6, 33, 64, "{partials}, each tensor in a dtype of its own",
        dtypes=(("dy", "bf16"),), mean=3.0, partials=2, orders=1),
    _buffers("66 rows", 66, 3, 4, "{partials}, more than 64 rows and more than 64 buffers",
        "rows or buffers after the 64th are left out", mean=1.0, partials=66, orders=1),
    _buffers("zeros", 5, 17, 32, "{partials}, 0 in x and as sums of rows whose terms are not 0",
        "a sum that is 0 is taken for a buffer not yet written", partials=2, orders=1),
    _buffers("far columns", 3, 4, 16,
        "{partials}, dy is transposed, its columns 1.5 * 2^30 elements apart", partials=2,
        orders=1),
    _buffers("sliced", 5, 50, 64, "{partials}, dy and x are slices of wider matrices",
        "one row stride is taken for all tensors", partials=2),
    _buffers("expanded", 4, 50, 64, "{partials}, dy is one number with strides (0, 0)", partials=2),
    _buffers("transposed", 5, 36, 64, "{partials}, dy is a transposed matrix", partials=2),
    _buffers("a NaN row", 4, 19, 32,
        "{partials}, dy holds a NaN in row 1: it must stay in buffer 1", partials=2),
    _buffers("an Inf row", 4, 19, 32,
        "{partials}, dy holds an Inf in row 1: it must stay in buffer 1", partials=2, orders=1),
    _buffers("far rows", 4, 17, 32, "{partials}, rows 1.5 * 2^30 elements apart", mean=1.0,
        partials=2),
)  # fmt: skip

# Where ``resident`` is 1, a program starts when the one before it has ended: what waits for a later
# program waits forever.
IN_ORDER = (
    _buffers("the tutorial's picture", 4, 8, 8,
        "{partials}: rows 0 and 2 share a buffer, rows 1 and 3 the other",
        "rows go to a wrong buffer", partials=2, orders=6),
    _buffers("one buffer", 6, 17, 32, "{partials}: every row waits for the one before it",
        "the rows of a buffer are added as they come", mean=3.0, partials=1, orders=6),
    _buffers("room for two", 6, 12, 16,
        "{partials}, two programs run at a time and start in any order",
        "a row waits for a program that has not started", mean=1.0, partials=2, orders=6,
        resident=2),
    _buffers("room for one", 5, 9, 16, "{partials}, one program runs at a time",
        "a program waits for a later one", mean=-1.0, partials=3, orders=4, resident=1),
    _buffers("fewer rows than buffers", 8, 20, 32,
        "{partials}: every row is the first of its buffer",
        "a buffer is added to before it is first written", mean=1.0, partials=11, orders=2),
    _buffers("M no multiple of GROUP", 7, 12, 16, "{partials}: the first buffer takes three rows",
        "a buffer takes neighbouring rows", mean=-2.0, partials=3, orders=4),
    _buffers("one row", 1, 30, 32, "M = 1, {partials}", mean=3.0, partials=4, orders=1),
    _buffers("one column", 5, 1, 16, "N = 1, {partials}", "a column past N is written", partials=2),
    _buffers("long row", 4, 1000, 1024, "{partials}, 24 padded lanes",
        "columns after the first block are left out", mean=3.0, partials=2),
    _buffers("mean 1000", 4, 96, 128, "{partials}, the mean is 1000 times the spread",
        "xhat is computed from a rounded mean", partials=2),
    _buffers("many rows", 20, 16, 16, "{partials}, more rows than run at once",
        "only the first rows are added up", partials=3),
    _buffers("fp16", 16, 33, 64, "{partials}: 16 rows in half precision", partials=1),
    _buffers("bf16", 6, 33, 64, "{partials}, bfloat16 in", partials=2),
    _buffers("fp32 dy", 6, 33, 64, "{partials}, each tensor in a dtype of its own",
        dtypes=(("x", "fp16"),), mean=3.0, partials=2, orders=1),
    _buffers("fp32 x", 6, 33, 64, "{partials}, each tensor in a dtype of its own",
        dtypes=(("dy", "bf16"),), mean=3.0, partials=2, orders=1),
    _buffers("66 rows", 66, 3, 4, "{partials}, more than 64 rows and more than 64 buffers",
        "rows or buffers after the 64th are left out", mean=1.0, partials=66, orders=1),
    _buffers("zeros", 5, 17, 32, "{partials}, 0 in x and as sums of rows whose terms are not 0",
        "a sum that is 0 is taken for a buffer not yet written", partials=2, orders=1),
    _buffers("sliced", 5, 50, 64, "{partials}, dy and x are slices of wider matrices",
        "one row stride is taken for all tensors", partials=2),
    _buffers("expanded", 4, 50, 64, "{partials}, dy is one number with strides (0, 0)", partials=2),
    _buffers("transposed", 5, 36, 64, "{partials}, dy is a transposed matrix", partials=2),
    _buffers("far columns", 3, 4, 16,
        "{partials}, dy is transposed, its columns 1.5 * 2^30 elements apart", partials=2,
        orders=1),
    _buffers("a NaN row", 4, 19, 32,
        "{partials}, dy holds a NaN in row 1: it must stay in buffer 1", partials=2),
    _buffers("an Inf row", 4, 19, 32,
        "{partials}, dy holds an Inf in row 1: it must stay in buffer 1", partials=2, orders=1),
    _buffers("far rows", 4, 17, 32, "{partials}, rows 1.5 * 2^30 elements apart", mean=1.0,
        partials=2),
)  # fmt: skip

BUFFERS = (
    _buffers("as many rows as buffers", 4, 20, 16, "{partials}", "dw and db are swapped",
        partials=4),
    _buffers("more rows than buffers", 100, 40, 32, "{partials}",
        "M is taken for the number of buffers", partials=7),
    _buffers("fewer rows than buffers, to be summed", 3, 20, 16,
        "{partials}: five buffers hold what was there before",
        "buffers that nobody wrote to are added up", partials=8),
    _buffers("one row, to be summed", 1, 9, 16, "{partials}, M = 1",
        "buffers that nobody wrote to are added up", partials=64),
    _buffers("many buffers", 270, 9, 16, "{partials}", "only the first buffers are added up",
        partials=260),
    _buffers("no row", 0, 20, 16, "M = 0: nobody has written to any buffer, and both sums are 0",
        "a buffer is added up for certain", partials=3),
    _buffers("fp16 gradients", 90, 33, 16,
        "{partials}, dw and db in fp16: one rounding, at the end",
        "sums are rounded to fp16 on the way", dtype="fp16", partials=40),
    _buffers("bf16 gradients", 90, 33, 16, "{partials}, dw and db in bf16",
        "sums are rounded to bf16 on the way", dtype="bf16", partials=40),
    _buffers("bf16 dw", 90, 33, 16, "{partials}, db in fp32", "db is rounded to the dtype of dw",
        dtypes=(("dw", "bf16"),), partials=40),
    _buffers("fp16 db", 90, 33, 16, "{partials}, dw in fp32", "dw is rounded to the dtype of db",
        dtypes=(("db", "fp16"),), partials=40),
)  # fmt: skip

CHUNKS = (
    _chunks("worked example", 3, 8, 8, "the 3 x 8 worked example, one chunk", rows=2, chunk=4,
        partials=1),
    _chunks("two chunks", 8, 16, 16, "two full chunks of two full steps",
        "every chunk adds up the same rows", mean=1.0, rows=2, chunk=4, partials=2, orders=4),
    _chunks("a short step", 10, 12, 16, "rows_a_chunk = 5 is no multiple of BLOCK_M = 4",
        "a step goes on into the next chunk", mean=-2.0, rows=4, chunk=5, partials=2),
    _chunks("a short last chunk", 7, 17, 16, "M = 7: the last chunk has one row",
        "the last chunk is taken to be full", mean=3.0, rows=2, chunk=3, partials=3),
    _chunks("fewer rows than a step", 3, 20, 16, "M = 3, BLOCK_M = 8", "rows past M are added up",
        mean=1.0, rows=8, chunk=8, partials=1),
    _chunks("one row", 1, 33, 16, mean=3.0, rows=4, chunk=4, partials=1),
    _chunks("one column", 9, 1, 16, mistake="a column past N is written", rows=2, chunk=4,
        partials=3),
    _chunks("wide", 5, 100, 32, "four blocks of columns, 28 padded lanes",
        "only the first block of columns is written", mean=3.0, rows=2, chunk=2, partials=3,
        orders=3),
    _chunks("many rows", 300, 8, 16, "300 rows in 2 chunks, 75 steps each",
        "only the first rows are added up", rows=2, chunk=150, partials=2, orders=1),
    _chunks("zeros", 5, 17, 32, "0 in x and as sums of rows whose terms are not 0",
        "a sum that is 0 is taken for a buffer not yet written", rows=2, chunk=3, partials=2,
        orders=1),
    _chunks("fp32 dy", 5, 17, 32, dtypes=(("x", "fp16"),), mean=3.0, rows=2, chunk=3, partials=2,
        orders=1),
    _chunks("fp32 x", 5, 17, 32, dtypes=(("dy", "bf16"),), mean=3.0, rows=2, chunk=3, partials=2,
        orders=1),
    _chunks("far columns", 3, 4, 16, rows=2, chunk=2, partials=2, orders=1),
    _chunks("mean 1000", 6, 33, 64, mistake="xhat is computed from a rounded mean", rows=4, chunk=4,
        partials=2),
    _chunks("fp16", 200, 17, 32, "200 rows in half precision", rows=16, chunk=100, partials=2),
    _chunks("bf16", 40, 17, 32, "40 rows in bfloat16", rows=8, chunk=20, partials=2),
    _chunks("sliced", 5, 50, 64, "dy and x are slices of wider matrices",
        "one row stride is taken for all tensors", rows=2, chunk=4, partials=2),
    _chunks("expanded", 5, 50, 64, rows=2, chunk=4, partials=2),
    _chunks("transposed", 5, 36, 64, rows=2, chunk=4, partials=2),
    _chunks("a NaN row", 4, 19, 32,
        "dy holds a NaN in row 1, which a step of the first chunk reaches, too", rows=2, chunk=1,
        partials=4),
    _chunks("an Inf row", 4, 19, 32, "dy holds an Inf in row 1", rows=2, chunk=2, partials=2,
        orders=1),
    _chunks("far rows", 5, 17, 32,
        "rows 1.5 * 2^30 elements apart: within a step, too, they pass 2^32", mean=1.0, rows=4,
        chunk=4, partials=2),
)  # fmt: skip

PARTIALS = (
    _partials("one step", 4, 20, 16, "{partials} rows of partial sums, one step",
        "dw and db are swapped", rows=4, partials=4),
    _partials("a row too many", 5, 20, 16, "{partials} is no multiple of BLOCK_P = 4",
        "rows past P are added up", partials=5, mean=0.0),
    _partials("fewer rows than a step, to be summed", 3, 9, 16, "{partials}, BLOCK_P = 16",
        "rows past P are added up", rows=16, partials=3),
    _partials("many steps", 140, 33, 16, "{partials}, BLOCK_P = 16",
        "only the last step, or all but the last, counts", rows=16, partials=140, orders=2),
    _partials("65 steps", 1030, 9, 16, "{partials}, BLOCK_P = 16",
        "steps after the 64th are left out", rows=16, partials=1030, orders=1),
    _partials("fp16 gradients", 132, 33, 16,
        "{partials}, dw and db in fp16: one rounding, at the end",
        "sums are rounded to fp16 on the way", dtype="fp16", rows=16, partials=132),
    _partials("bf16 gradients", 132, 33, 16, "{partials}, dw and db in bf16",
        "sums are rounded to bf16 on the way", dtype="bf16", rows=16, partials=132),
    _partials("bf16 dw", 40, 33, 16, "{partials}, db in fp32", "db is rounded to the dtype of dw",
        dtypes=(("dw", "bf16"),), rows=16, partials=40, orders=1),
    _partials("fp16 db", 40, 33, 16, "{partials}, dw in fp32", "dw is rounded to the dtype of db",
        dtypes=(("db", "fp16"),), rows=16, partials=40, orders=1),
    _partials("far partial sums", 3, 16, 16,
        "{partials}, and row 2 of the partial sums begins past 2^31: program 0 alone runs",
        "the offset of a row of partial sums is computed in 32 bits", rows=4, partials=3, orders=1,
        layout="far"),
)  # fmt: skip

PERSISTENT = (
    _programs("worked example", 3, 8, 8, "the 3 x 8 worked example, {partials}", partials=1),
    _programs("two tiles each", 8, 16, 16, "{partials} programs, four tiles",
        "only the first or the last tile counts", mean=1.0, rows=2, partials=2, orders=4),
    _programs("uneven", 11, 12, 16,
        "{partials} programs, six tiles of two rows, the last one short",
        "rows past M are added up, or programs take runs of tiles", mean=-2.0, rows=2, partials=3,
        orders=3),
    _programs("more programs than tiles", 3, 20, 32,
        "{partials} programs, two tiles: three rows are 0",
        "a program without a tile writes nothing", mean=1.0, rows=2, partials=5, orders=3),
    _programs("one row", 1, 30, 32, "M = 1, {partials}", mean=3.0, rows=4, partials=2),
    _programs("one column", 7, 1, 16, "N = 1: dx is 0", "a column past N is written", rows=2,
        partials=2),
    _programs("one row a tile", 9, 17, 32, "{partials}, ROWS = 1, 15 padded lanes, mean 3",
        "a padded lane adds -mean * rstd to c1", mean=3.0, partials=4),
    _programs("long row", 4, 1000, 1024, "{partials}, 24 padded lanes, mean 3",
        "columns after the first block are left out", mean=3.0, rows=1, partials=2),
    _programs("many rows", 150, 8, 16, "{partials}, 75 tiles", "only the first rows are added up",
        rows=2, partials=1, orders=0),
    _programs("zeros", 5, 17, 32,
        "{partials}, 0 in x, in w and as sums of rows whose terms are not 0",
        "a sum that is 0 is taken for a buffer not yet written", rows=2, partials=2, orders=1),
    _programs("many programs", 150, 3, 16, "{partials}, a row a program",
        "only the first programs write their sums", partials=150, orders=0, rows=1),
    _programs("fp32 dx", 5, 33, 64, rows=2, partials=2, orders=1),
    _programs("fp32 dy", 5, 33, 64, rows=2, partials=2, orders=1),
    _programs("far columns", 3, 4, 16, rows=2, partials=2, orders=1),
    _programs("large eps", 6, 100, 128, mistake="rstd is computed anew, without eps", rows=2,
        partials=2, mean=0.5),
    _programs("mean 1000", 4, 96, 128, mistake="xhat is computed from a rounded mean", rows=2,
        partials=2),
    _programs("fp16", 200, 17, 32, "200 rows in half precision", rows=16, partials=2),
    _programs("bf16", 40, 17, 32, "40 rows in bfloat16", rows=4, partials=3),
    _programs("fp32 weights", 5, 33, 64, rows=2, partials=2),
    _programs("sliced", 5, 50, 64, "dy, x and dx are slices: three row strides",
        "one row stride is taken for all tensors", rows=2, partials=2),
    _programs("expanded", 5, 50, 64, rows=2, partials=2),
    _programs("transposed", 5, 36, 64, rows=2, partials=2),
    _programs("a NaN row", 4, 19, 32, "dy holds a NaN in row 1", rows=2, partials=2),
    _programs("an Inf row", 4, 19, 32, "dy holds an Inf in row 1", rows=2, partials=2, orders=1),
    _programs("far rows", 5, 17, 32,
        "rows 1.5 * 2^30 elements apart: within a tile, too, they pass 2^32", rows=4, mean=1.0,
        partials=2),
)  # fmt: skip


@dataclass(frozen=True)
class _Walk(SharedCase):
    """A case of 13c: ``resident`` programs walk over the chunks. In the fill "padding" every row is
    padding."""

    def describe(self) -> str:
        return (
            super()
            .describe()
            .replace(
                f"rows_a_chunk = {self.chunk}",
                f"rows_a_chunk = {self.chunk}, P = {self.resident}",
                1,
            )
        )


_walk = partial(make_case, of=_Walk)

MASKED = (
    _walk("worked example", 3, 8, 8, "the 3 x 8 worked example, one chunk", rows=2, chunk=4,
        partials=1, resident=1, orders=1),
    _walk("two chunks each", 8, 16, 16, "two programs, four chunks",
        "only the first or the last chunk of a program is stored", mean=1.0, rows=2, chunk=2,
        partials=4, resident=2, orders=4),
    _walk("uneven", 22, 12, 16, "three programs, eight chunks, the last one short",
        "the last chunk is taken to be full", mean=-2.0, rows=2, chunk=3, partials=8, resident=3,
        orders=3),
    _walk("one program", 9, 17, 32, "one program has all five chunks", "a sum is not begun anew",
        mean=3.0, rows=2, chunk=2, partials=5, resident=1, orders=1),
    _walk("a short step", 10, 12, 16, "rows_a_chunk = 5 is no multiple of ROWS = 4",
        "a step goes on into the next chunk", mean=-2.0, rows=4, chunk=5, partials=2, resident=2),
    _walk("more programs than chunks", 7, 20, 32, "five programs, two chunks",
        "a program without a chunk stores a row", mean=1.0, rows=2, chunk=4, partials=2, resident=5,
        orders=3),
    _walk("all padding", 6, 12, 16, "every row is padding: all sums are 0",
        "a chunk of padding alone is not stored", fill="padding", rows=2, chunk=2, partials=3,
        resident=2, orders=1),
    _walk("chunks of one row", 12, 9, 16, "ROWS = 1 and rows_a_chunk = 1",
        "keep is read by the number of the step", mean=2.0, rows=1, chunk=1, partials=12,
        resident=5),
    _walk("one row", 1, 33, 64, mean=3.0, rows=4, chunk=4, partials=1, resident=2, orders=1),
    _walk("one column", 9, 1, 16, mistake="a column past N is written", rows=2, chunk=4, partials=3,
        resident=2, orders=1),
    _walk("long row", 6, 1000, 1024, "24 padded lanes",
        "columns after the first block are left out", mean=3.0, rows=1, chunk=3, partials=2,
        resident=2, orders=1),
    _walk("many rows", 300, 8, 16, "300 rows in 2 chunks, 75 steps each",
        "only the first rows are added up", rows=2, chunk=150, partials=2, resident=2, orders=0),
    _walk("many chunks", 150, 3, 16, "150 chunks and seven programs",
        "chunks after the 64th or the 128th are left out", rows=1, chunk=1, partials=150,
        resident=7, orders=0),
    _walk("66 programs", 70, 3, 4, "70 chunks, more programs than 64",
        "only the first programs work", mean=1.0, rows=1, chunk=1, partials=70, resident=66,
        orders=0),
    _walk("zeros", 15, 17, 32, "0 in x and as sums of rows whose terms are not 0",
        "an element or a sum that is 0 is taken for padding", rows=2, chunk=4, partials=4,
        resident=2, orders=1),
    _walk("fp32 dy", 9, 17, 32, dtypes=(("x", "fp16"),), mean=3.0, rows=2, chunk=3, partials=3,
        resident=2, orders=1),
    _walk("fp32 x", 9, 17, 32, dtypes=(("dy", "bf16"),), mean=3.0, rows=2, chunk=3, partials=3,
        resident=2, orders=1),
    _walk("large eps", 9, 100, 128, mistake="rstd is computed anew, without eps", rows=2, chunk=4,
        partials=3, resident=2, orders=1),
    _walk("fp16", 200, 17, 32, "200 rows in half precision", rows=16, chunk=100, partials=2,
        resident=2, orders=1),
    _walk("bf16", 80, 17, 32, "80 rows in bfloat16", rows=8, chunk=20, partials=4, resident=2,
        orders=1),
    _walk("sliced", 9, 50, 64, "dy and x are slices of wider matrices",
        "one row stride is taken for all tensors", rows=2, chunk=4, partials=3, resident=2,
        orders=1),
    _walk("expanded", 9, 50, 64, rows=2, chunk=4, partials=3, resident=2, orders=1),
    _walk("transposed", 9, 36, 64, rows=2, chunk=4, partials=3, resident=2, orders=1),
    _walk("far columns", 3, 4, 16, rows=2, chunk=2, partials=2, resident=2, orders=1),
    _walk("a NaN row", 9, 19, 32, "dy holds a NaN in row 1, which counts",
        "a NaN is taken for padding", rows=2, chunk=2, partials=5, resident=2, orders=1),
    _walk("an Inf row", 9, 19, 32, "dy holds an Inf in row 1, which counts", rows=2, chunk=2,
        partials=5, resident=2, orders=1),
    _walk("far rows", 5, 17, 32,
        "rows 1.5 * 2^30 elements apart: within a step, too, they pass 2^32", mean=1.0, rows=4,
        chunk=4, partials=2, resident=2, orders=1),
)  # fmt: skip


# ---- plans


def _plan_locked(case: SharedCase, kernel: str, rng: np.random.Generator) -> Plan[SharedCase]:
    return replace(_plan_by_words(case, kernel, rng, "lock", 2 * case.partials), any_order=True)


def _plan_in_order(case: SharedCase, kernel: str, rng: np.random.Generator) -> Plan[SharedCase]:
    return _plan_by_words(case, kernel, rng, "state", 1 + 2 * case.partials)


def _plan_by_words(
    case: SharedCase, kernel: str, rng: np.random.Generator, name: str, words: int
) -> Plan[SharedCase]:
    """Plan the sums in GROUP buffers, with so many integers, 0 at the start, by which the programs
    take turns."""
    group = case.partials
    # only the buffers that are written
    mine = [np.arange(g, case.M, group) for g in range(min(group, case.M))]
    taking_turns = Tensor(
        name,
        "int32",
        (words,),
        (1,),
        np.zeros(words, np.int32),
        scratch=True,
        guard=size_guard(case.M),
    )
    plan = _plan_backward(case, kernel, rng, mine, "buffer")
    plan = _extend_plan(
        plan, [name, *_list_strides(plan), case.N], {"GROUP": group, "BLOCK": case.block}
    )
    return replace(
        plan, grid=(case.M,), tensors=(*plan.tensors, taking_turns), resident=case.resident,
        spread={"x": case.M, "dw_buffer": case.M}
    )  # fmt: skip


def _plan_chunks(case: SharedCase, kernel: str, rng: np.random.Generator) -> Plan[SharedCase]:
    plan = _plan_backward(case, kernel, rng, _list_chunks(case), "partial")
    plan = _extend_plan(
        plan,
        [*_list_strides(plan), case.M, case.N, case.chunk],
        {"BLOCK_M": case.rows, "BLOCK_N": case.block},
    )
    grid = (-(-case.N // case.block), case.partials)
    return replace(plan, grid=grid, spread=dict.fromkeys(("x", "dw_partial"), grid[0] * grid[1]))


def _plan_persistent(case: SharedCase, kernel: str, rng: np.random.Generator) -> Plan[SharedCase]:
    plan = _plan_backward(case, kernel, rng, _list_programs(case), "partial", with_dx=True)
    plan = _extend_plan(
        plan, [*_list_strides(plan), case.M, case.N], {"ROWS": case.rows, "BLOCK": case.block}
    )
    return replace(
        plan, grid=(case.partials,),
        reads={"x": 1, "dy": 1, "dx": 0, "dw_partial": 0, "db_partial": 0},
        # A last step may find no tile, or go on row by row: about six loads per row or tile.
        empty_loads=6 * case.partials * case.rows,
        spread=dict.fromkeys(("x", "dx"), min(case.partials, -(-case.M // case.rows))),
    )  # fmt: skip


def _plan_masked(case: _Walk, kernel: str, rng: np.random.Generator) -> Plan[SharedCase]:
    """Plan dw of RMSNorm over the rows that count. Of four padding rows one holds numbers, and
    three a NaN or Inf in x, dy or rstd."""
    dy, x, _ = draw_backward_inputs(case, rng)
    rstd = save_statistics(x, case.eps, reference.rms_norm)["rstd"]
    keep = (rng.permutation(case.M) % 5 < 3) & (case.fill != "padding")
    keep[:2] |= case.has_bad_row
    mine = _keep_rows(keep, _list_chunks(case))
    expected = _expect_sums(
        case,
        {"dy": dy.astype(np.float64), "x": x.astype(np.float64), "rstd": rstd.astype(np.float64)},
        mine,
        reference.rms_norm_vjp,
    )
    for kind, row in enumerate(np.flatnonzero(~keep)):
        if kind % 4 and (kind % 4, case.layout) != (2, "expanded"):
            (x, dy, rstd)[kind % 4 - 1][row] = (np.nan, np.nan, np.inf)[kind % 4 - 1]
    tensors = (
        place_by_rows("dy", case, dy), place_by_rows("x", case, x),
        place_statistic("rstd", case, rstd),
        Tensor("keep", "int32", (case.M,), (1,), keep.astype(np.int32),
            guard=size_guard(case.rows)),
        Tensor("dw_partial", "fp32", (case.partials, case.N), (case.N, 1),
            guard=size_guard((case.partials + 1) * case.N + case.block)),
    )  # fmt: skip
    inputs = {
        tensor.name: tensor.values.astype(np.float64)
        for tensor in tensors
        if tensor.values is not None
    }
    arguments = (
        *(tensor.name for tensor in tensors),
        *tensors[0].strides,
        tensors[1].strides[0],
        case.M,
        case.N,
        case.chunk,
    )
    return Plan(
        case, kernel, (case.resident,), tensors, arguments,
        {"ROWS": case.rows, "BLOCK": case.block}, {"dw_partial": expected["dw"]},
        inputs=inputs, interleavings=case.orders, reads={"dy": 1, "x": 1, "dw_partial": 0},
        spread=dict.fromkeys(("x", "dw_partial"), min(case.resident, case.partials)),
    )  # fmt: skip


def _keep_rows(keep: np.ndarray, mine: list[np.ndarray]) -> list[np.ndarray]:
    return [rows[keep[rows] != 0] for rows in mine]


def _plan_backward(
    case: SharedCase,
    kernel: str,
    rng: np.random.Generator,
    mine: list[np.ndarray],
    ending: str,
    with_dx: bool = False,
) -> Plan[SharedCase]:
    """Plan dw and db over the rows of each element of ``mine``, and dx from w if ``with_dx``; the
    arguments are tensors alone."""
    dy, x, w = draw_backward_inputs(case, rng)
    saved = save_statistics(x, case.eps)
    room = size_guard((case.partials + 1) * case.N + case.block)
    tensors = [place_by_rows("dy", case, dy), place_by_rows("x", case, x)]
    tensors += [place_vector("w", case, w)] * with_dx
    tensors += [place_statistic(name, case, values) for name, values in saved.items()]
    tensors += [place_by_rows("dx", case, None)] * with_dx
    tensors += [
        Tensor(f"{name}_{ending}", "fp32", (len(mine), case.N), (case.N, 1), guard=room)
        for name in ("dw", "db")
    ]
    inputs = {
        tensor.name: tensor.values.astype(np.float64)
        for tensor in tensors
        if tensor.values is not None
    }
    expected = (
        {"dx": expect_dx(case, inputs, reference.layer_norm_vjp(dy, x, w, case.eps).dx)}
        if with_dx
        else {}
    )
    expected |= {
        f"{name}_{ending}": value for name, value in _expect_sums(case, inputs, mine).items()
    }
    arguments = tuple(tensor.name for tensor in tensors)
    return Plan(
        case,
        kernel,
        (),
        tuple(tensors),
        arguments,
        {},
        expected,
        inputs=inputs,
        interleavings=case.orders,
    )


def _list_strides(plan: Plan[SharedCase]) -> list[int]:
    """Return the arguments for the row and the column stride of dy, and for the row strides of x
    and dx."""
    return [
        *plan.tensor("dy").strides,
        *(tensor.strides[0] for tensor in plan.tensors if tensor.name in ("x", "dx")),
    ]


def _plan_buffers(case: SharedCase, kernel: str, rng: np.random.Generator) -> Plan[SharedCase]:
    """Plan the sum of GROUP buffers; those from number M on hold NaN."""
    plan = _plan_sum(case, kernel, rng, ("dw_buffer", "db_buffer"), min(case.M, case.partials))
    return _extend_plan(plan, [case.M, case.N], {"GROUP": case.partials, "BLOCK": case.block})


def _plan_partials(case: SharedCase, kernel: str, rng: np.random.Generator) -> Plan[SharedCase]:
    plan = _plan_sum(case, kernel, rng, ("dw_partial", "db_partial"), case.partials)
    return _extend_plan(
        plan,
        [case.partials, FAR_STRIDE if case.is_far else case.N],
        {"BLOCK_P": case.rows, "BLOCK_N": case.block},
    )


def _plan_sum(
    case: SharedCase, kernel: str, rng: np.random.Generator, names: tuple[str, str], written: int
) -> Plan[SharedCase]:
    tensors, expected, inputs = [], {}, {}
    for name in names:
        shape = (case.partials, case.N)
        drawn = (
            by_hand.choose_sums(*shape, len(tensors))
            if case.by_hand
            else rng.normal(0.5, 4.0, size=shape)
        )
        values = drawn.astype(np.float32)
        values[written:] = np.nan
        whole = values[:written].astype(np.float64)
        inputs[name] = values.astype(np.float64)
        tensors.append(
            Tensor(
                name,
                "fp32",
                values.shape,
                (FAR_STRIDE if case.is_far else case.N, 1),
                values,
                case.is_far,
                size_guard(case.block if case.is_far else (case.rows + 1) * case.N + case.block),
            )
        )
        expected[name[:2]] = make_expected(
            whole.sum(axis=0), np.abs(whole).sum(axis=0), case.dtype_of(name[:2])
        )
    tensors += [
        Tensor(name, case.dtype_of(name), (case.N,), (1,), guard=size_guard(case.block))
        for name in expected
    ]
    arguments = tuple(tensor.name for tensor in tensors)
    return Plan(
        case,
        kernel,
        (-(-case.N // case.block),),
        tuple(tensors),
        arguments,
        {},
        expected,
        inputs=inputs,
        interleavings=case.orders,
        spread=dict.fromkeys(expected, -(-case.N // case.block)),
    )


def _extend_plan(
    plan: Plan[SharedCase], arguments: list[str | int], constexprs: dict[str, int]
) -> Plan[SharedCase]:
    return replace(plan, arguments=(*plan.arguments, *arguments), constexprs=constexprs)


def _list_chunks(case: SharedCase) -> list[np.ndarray]:
    return [
        np.arange(at, min(at + case.chunk, case.M))
        for at in range(0, case.partials * case.chunk, case.chunk)
    ]


def _list_programs(case: SharedCase) -> list[np.ndarray]:
    """Return the rows of each program: tiles p, p + P, p + 2 P, ..."""
    rows = np.arange(case.M)
    return [rows[rows // case.rows % case.partials == p] for p in range(case.partials)]


def _expect_sums(
    case: SharedCase,
    inputs: dict[str, np.ndarray],
    mine: list[np.ndarray],
    vjp: Callable = reference.layer_norm_vjp,
) -> dict[str, Expected]:
    """Return dw, and db if there is one, over the rows of each element of ``mine``, with the errors
    that fp32 may make in them."""
    dy, x, terms = inputs["dy"], inputs["x"], bound_terms(inputs)
    ones, nothing = np.ones(case.N), np.zeros(case.N)
    vjps = [vjp(dy[rows], x[rows], ones, case.eps) if rows.size else None for rows in mine]
    return {
        name: make_expected(
            np.stack([nothing if of_rows is None else getattr(of_rows, name) for of_rows in vjps]),
            np.stack([terms[name][rows].sum(axis=0) for rows in mine]),
            "fp32",
            infinite=case.fill == "inf row",
        )
        for name in (("dw", "db") if vjp is reference.layer_norm_vjp else ("dw",))
    }


# ---- wrong formulas

_Rows = Callable[[Plan[SharedCase]], list[np.ndarray]]
_DW = (
    *(
        ("xhat_wrong", {"dw": which})
        for which in ("x", "deviation", "scaled", "divided", "scaled twice")
    ),
    ("zeros_left_out", {"dw": "0 for 0"}),
    ("dw_without_xhat", {"dw": "ones"}),
    ("xhat_in_db", {"db": "xhat"}),
    ("rstd_in_db", {"db": "rstd"}),
    ("dw_and_db_swapped", {"dw": "ones", "db": "xhat"}),
    ("dy_ignored", {"dy": 0}),
    ("sign_of_dw_or_db", {"sign_dw": -1}),
    ("sign_of_dw_or_db", {"sign_db": -1}),
    ("sign_of_dw_or_db", {"sign_dw": -1, "sign_db": -1}),
)
_WITH_W = (
    ("w_in_dw", {"w_dw": "w / w"}),
    ("w_in_dw", {"w_dw": 1}),
    ("w_in_dw", {"w_db": 1}),
    ("w_in_dw", {"w_dw": 1, "w_db": 1}),
)


def _take_steps(
    p: Plan[SharedCase], steps: Callable[[int, int], range], *, whole_steps: bool = False
) -> list[np.ndarray]:
    """Return the rows that each chunk adds up if it takes the steps that ``steps`` makes of (rows
    per chunk, BLOCK_M)."""
    case = p.case
    out = []
    for c in range(case.partials):
        within = [start + i for start in steps(case.chunk, case.rows) for i in range(case.rows)]
        if not whole_steps:
            within = [i for i in within if i < case.chunk]
        rows = np.array([c * case.chunk + i for i in within], dtype=int)
        out.append(rows[rows < case.M])
    return out


def _take_last_step(p: Plan[SharedCase]) -> list[np.ndarray]:
    """Return the rows of the last step: each step overwrites the sums of the one before. Lanes past
    M or the chunk add 0."""
    return _take_steps(p, lambda chunk, rows: range((chunk - 1) // rows * rows, chunk, rows))


def _begin_at_row_0(p: Plan[SharedCase]) -> list[np.ndarray]:
    """Return as many steps of rows as a chunk has, but from row 0 of the matrix, and not past the
    chunk's last row."""
    case = p.case
    steps = -(-case.chunk // case.rows) * case.rows
    return [np.arange(min(steps, (c + 1) * case.chunk, case.M)) for c in range(case.partials)]


def _skip_vanishing(p: Plan[SharedCase], mine: list[np.ndarray], of: str) -> list[np.ndarray]:
    """Leave out the rows in which dy, or dy times xhat, has the sum 0."""
    sums = (p.inputs["dy"] * compute_hat(p.inputs, of)).sum(axis=1)
    return [rows[sums[rows] != 0] for rows in mine]


def _repeat_rows(rows: np.ndarray, step: int) -> np.ndarray:
    """Return the rows with repetitions: a step of this many rows begins at every row, so most rows
    are in several steps."""
    return np.repeat(rows, np.minimum(np.arange(len(rows)) + 1, step))


_SOME_ROWS: tuple[tuple[str, Callable[[np.ndarray], np.ndarray]], ...] = (
    ("rows_left_out", lambda rows: rows[1:]),
    ("rows_left_out", lambda rows: rows[:-1]),
    *(("rows_left_out", lambda rows, most=most: rows[:most]) for most in FEW),
)
_CHUNK_ROWS: tuple[tuple[str, _Rows], ...] = (
    ("rows_not_summed", _take_last_step),
    ("rows_not_summed", lambda p: _take_steps(p, lambda chunk, rows: range(0, rows, rows))),
    (
        "rows_counted_twice",
        lambda p: _take_steps(p, lambda chunk, rows: range(0, chunk, rows), whole_steps=True),
    ),
    (
        "rows_counted_twice",
        lambda p: _take_steps(p, lambda chunk, rows: range(0, chunk + 1, rows), whole_steps=True),
    ),
    (
        "rows_left_out",
        lambda p: _take_steps(p, lambda chunk, rows: range(0, chunk // rows * rows, rows)),
    ),
    ("same_rows", lambda p: [np.arange(min(p.case.chunk, p.case.M))] * p.case.partials),
    (
        "wrong_rows",
        lambda p: [_clip(p, c * p.case.rows, p.case.chunk) for c in range(p.case.partials)],
    ),
    ("wrong_rows", lambda p: [_clip(p, c, p.case.chunk) for c in range(p.case.partials)]),
    (
        "wrong_rows",
        lambda p: [np.arange(c, p.case.M, p.case.partials) for c in range(p.case.partials)],
    ),
    ("wrong_rows", _begin_at_row_0),
    (
        "rows_counted_twice",
        lambda p: [_repeat_rows(rows, p.case.rows) for rows in _list_chunks(p.case)],
    ),
    *(
        (cause, lambda p, some=some: [some(rows) for rows in _list_chunks(p.case)])
        for cause, some in _SOME_ROWS
    ),
    *(
        ("sum_of_zero", lambda p, of=of: _skip_vanishing(p, _list_chunks(p.case), of))
        for of in ("ones", "xhat")
    ),
)


def _clip(p: Plan[SharedCase], first: int, count: int) -> np.ndarray:
    return np.arange(min(first, p.case.M), min(first + count, p.case.M))


def _take_last_tile(p: Plan[SharedCase], rows: np.ndarray) -> np.ndarray:
    return rows[rows // p.case.rows == rows.max() // p.case.rows] if rows.size else rows


def _take_first_tile(p: Plan[SharedCase], rows: np.ndarray) -> np.ndarray:
    return rows[rows // p.case.rows == rows.min() // p.case.rows] if rows.size else rows


def _take_but_first_tile(p: Plan[SharedCase], rows: np.ndarray) -> np.ndarray:
    return rows[rows // p.case.rows > rows.min() // p.case.rows] if rows.size else rows


def _list_runs_of_tiles(p: Plan[SharedCase]) -> list[np.ndarray]:
    """Return the rows of each program if it takes neighbouring tiles instead of every P-th."""
    case = p.case
    tiles = -(-case.M // case.rows)
    each = -(-tiles // case.partials) * case.rows
    return [_clip(p, program * each, each) for program in range(case.partials)]


_PROGRAM_ROWS: tuple[tuple[str, _Rows], ...] = (
    ("rows_not_summed", lambda p: [_take_last_tile(p, rows) for rows in _list_programs(p.case)]),
    ("rows_not_summed", lambda p: [_take_first_tile(p, rows) for rows in _list_programs(p.case)]),
    ("rows_left_out", lambda p: [_take_but_first_tile(p, rows) for rows in _list_programs(p.case)]),
    (
        "rows_left_out",
        lambda p: [
            rows[rows < p.case.M // p.case.rows * p.case.rows] for rows in _list_programs(p.case)
        ],
    ),
    ("wrong_rows", _list_runs_of_tiles),
    ("same_rows", lambda p: [_list_programs(p.case)[0]] * p.case.partials),
    *(
        (cause, lambda p, some=some: [some(rows) for rows in _list_programs(p.case)])
        for cause, some in _SOME_ROWS
    ),
    *(
        ("sum_of_zero", lambda p, of=of: _skip_vanishing(p, _list_programs(p.case), of))
        for of in ("ones", "xhat")
    ),
)


def _list_right_chunks(p: Plan[SharedCase]) -> list[np.ndarray]:
    return _list_chunks(p.case)


def _list_right_programs(p: Plan[SharedCase]) -> list[np.ndarray]:
    return _list_programs(p.case)


def _list_groups(p: Plan[SharedCase]) -> list[np.ndarray]:
    return [np.arange(g, p.case.M, p.case.partials) for g in range(min(p.case.partials, p.case.M))]


def _list_locked_models() -> Iterator[tuple[str, Model[SharedCase]]]:
    yield (
        "uninitialised",
        lambda p: {name: np.full_like(want.values, np.nan) for name, want in p.expected.items()},
    )
    rows = (
        ("wrong_rows", _list_neighbours),
        *(
            (cause, lambda p, some=some: [some(rows) for rows in _list_groups(p)])
            for cause, some in _SOME_ROWS
        ),
        *(
            ("sum_of_zero", lambda p, of=of: _skip_vanishing(p, _list_groups(p), of))
            for of in ("ones", "xhat")
        ),
    )
    yield from _combine(_DW, rows, _list_groups, "buffer")


def _list_neighbours(p: Plan[SharedCase]) -> list[np.ndarray]:
    """Return the rows of each buffer if it takes neighbouring rows instead of every GROUP-th."""
    each = -(-p.case.M // p.case.partials)
    return [_clip(p, g * each, each) for g in range(min(p.case.partials, p.case.M))]


def _list_chunk_models() -> Iterator[tuple[str, Model[SharedCase]]]:
    yield from _combine(_DW, _CHUNK_ROWS, _list_right_chunks, "partial")
    yield from _list_spare_row_models(_list_right_chunks)
    for names in (("mean", "rstd"), ("mean",), ("rstd",)):
        yield (
            "statistics_of_another_row",
            lambda p, n=names: _compute_wrong(
                _take_first_statistics(p, n), _list_chunks(p.case), "partial"
            ),
        )


def _list_masked_models() -> Iterator[tuple[str, Model[SharedCase]]]:
    for take in (
        _list_right_chunks,
        lambda p: _keep_rows(1 - p.inputs["keep"], _list_chunks(p.case)),
    ):
        yield "padding_rows", lambda p, take=take: _compute_dw(p, take(p))
    for within in (
        lambda p: np.arange(p.case.M) % p.case.chunk,
        lambda p: np.arange(p.case.M) - np.arange(p.case.M) % p.case.chunk % p.case.rows,
    ):
        yield (
            "padding_rows",
            lambda p, at=within: _compute_dw(
                p, _keep_rows(p.inputs["keep"][at(p)], _list_chunks(p.case))
            ),
        )
    for names in (("dy",), ("x",), ("rstd",), ("dy", "x"), ("dy", "rstd"), ("x", "rstd")):
        yield (
            "padding_times_0",
            lambda p, names=names: _compute_dw(_zero_padding(p, names), _list_chunks(p.case)),
        )
    yield (
        "padding_times_0",
        lambda p: _compute_dw(_zero_padding(p, ("dy",), times=True), _list_chunks(p.case)),
    )
    yield (
        "sum_carried_over",
        lambda p: {"dw_partial": _add_up_walk(p, _compute_dw(p, _list_kept(p))["dw_partial"])},
    )
    rows = tuple(
        (cause, lambda p, take=take: _keep_rows(p.inputs["keep"], take(p)))
        for cause, take in _CHUNK_ROWS
    )
    formulas = (
        *(mistake for mistake in _DW if "db" not in mistake[1]),
        ("mean_subtracted", {"dw": "centred"}),
    )
    for cause, model in _combine(formulas, rows, _list_kept, "partial"):
        yield (
            cause,
            lambda p, model=model: {
                name: values for name, values in model(p).items() if name in p.expected
            },
        )
    yield (
        "statistics_of_another_row",
        lambda p: _compute_dw(_take_first_statistics(p, ("rstd",)), _list_kept(p)),
    )


def _list_kept(p: Plan[SharedCase]) -> list[np.ndarray]:
    return _keep_rows(p.inputs["keep"], _list_chunks(p.case))


def _compute_dw(p: Plan[SharedCase], mine: list[np.ndarray]) -> Outputs:
    return {"dw_partial": _compute_wrong(p, mine, "partial")["dw_partial"]}


def _zero_padding(
    p: Plan[SharedCase], names: tuple[str, ...], times: bool = False
) -> Plan[SharedCase]:
    """Return the plan with 0 in the padding rows of these inputs alone; ``times``: they are
    multiplied by 0."""
    zeroed = {}
    for name in names:
        values = p.inputs[name]
        keep = p.inputs["keep"].reshape((-1,) + (1,) * (p.inputs[name].ndim - 1))
        zeroed[name] = values * keep if times else np.where(keep != 0, values, 0.0)
    return replace(p, inputs=p.inputs | zeroed)


def _add_up_walk(p: Plan[SharedCase], sums: np.ndarray) -> np.ndarray:
    """Return for each chunk the sum of all chunks that its program has taken so far."""
    return np.stack(
        [sums[c % p.case.resident : c + 1 : p.case.resident].sum(axis=0) for c in range(len(sums))]
    )


def _take_first_statistics(p: Plan[SharedCase], names: tuple[str, ...]) -> Plan[SharedCase]:
    """Take mean, rstd or both of the first chunk for every chunk."""
    rows = np.arange(p.case.M) % p.case.chunk
    return replace(p, inputs=p.inputs | {name: p.inputs[name][rows] for name in names})


def _list_spare_row_models(right: _Rows) -> Iterator[tuple[str, Model[SharedCase]]]:
    """Yield sums in which a step loads dy as 1, NaN or Inf in rows that do not exist."""
    for value in (1.0, np.nan, np.inf):
        yield "row_mask", lambda p, v=value: _add_spare_rows(p, right(p), v)


def _add_spare_rows(p: Plan[SharedCase], mine: list[np.ndarray], value: float) -> Outputs:
    db = _compute_wrong(p, mine, "partial")["db_partial"]
    spare = np.array([-len(rows) % p.case.rows for rows in mine], dtype=np.float64)
    return {"db_partial": db + np.where(spare > 0, spare * value, 0.0)[:, None]}


def _list_persistent_models() -> Iterator[tuple[str, Model[SharedCase]]]:
    yield from _combine((*_DW, *_WITH_W), _PROGRAM_ROWS, _list_right_programs, "partial")
    yield from _list_spare_row_models(_list_right_programs)
    yield "dx_for_dy", lambda p: _take_dx_for_dy(p, "db_partial")
    yield "dx_for_dy", lambda p: _take_dx_for_dy(p, "dw_partial")
    yield "dx_and_xhat_swapped", _swap_dx_and_xhat
    yield from list_dx_dtype_models(("dy", "x", "w"))
    yield from list_misread_models(
        lambda p: {
            "dx": compute_wrong_dx(p),
            **_compute_wrong(p, _list_programs(p.case), "partial"),
        }
    )
    yield from list_misread_models(lambda p: {"dx": compute_wrong_dx(p)})
    for cause, changes in LAYER_NORM_MISTAKES:
        yield cause, lambda p, changes=changes: {"dx": compute_wrong_dx(p, **changes)}


def _combine(
    formulas, rows: tuple[tuple[str, _Rows], ...], right: _Rows, ending: str
) -> Iterator[tuple[str, Model[SharedCase]]]:
    """Yield single mistakes, then pairs: one in the rows and one in the formula, under the cause of
    the rows."""
    for cause, take in rows:  # the mistake is in one of the two sums only
        for name in ("dw", "db"):
            yield (
                cause,
                lambda p, take=take, n=f"{name}_{ending}": {
                    n: _compute_wrong(p, take(p), ending)[n]
                },
            )
    choices = [(r, f) for r, f in product((None, *rows), (None, *formulas)) if r or f]
    for of_rows, formula in sorted(
        choices, key=lambda chosen: sum(mistake is not None for mistake in chosen)
    ):
        named, changes = of_rows or formula, formula[1] if formula else {}
        assert named is not None  # the choice of no mistake at all was left out above
        yield (
            named[0],
            lambda p, take=of_rows[1] if of_rows else right, changes=changes: _compute_wrong(
                p, take(p), ending, **changes
            ),
        )
    yield from list_misread_models(lambda p: _compute_wrong(p, right(p), ending))
    yield "mean_for_sum", lambda p: _compute_wrong(p, right(p), ending, mean=True)
    for name in ("dw", "db"):
        n = f"{name}_{ending}"
        yield from list_dtype_models(
            lambda p, n=n: {n: _compute_wrong(p, right(p), ending)[n]}, ("x", "dy")
        )


def _compute_wrong(
    p: Plan[SharedCase],
    mine: list[np.ndarray],
    ending: str,
    *,
    dw="xhat",
    db="ones",
    dy=1,
    w_dw=0,
    w_db=0,
    mean=False,
    sign_dw=1,
    sign_db=1,
) -> Outputs:
    out: Outputs = {}
    values = p.inputs["dy"] ** dy
    for name, hat, power, sign in (("dw", dw, w_dw, sign_dw), ("db", db, w_db, sign_db)):
        of_w = {
            0: 1.0,
            1: p.inputs.get("w"),
            "w / w": p.inputs["w"] / p.inputs["w"] if power else 1.0,
        }[power]
        terms = sign * values * compute_hat(p.inputs, hat) * of_w
        out[f"{name}_{ending}"] = np.stack(
            [terms[rows].sum(axis=0) / (max(len(rows), 1) if mean else 1) for rows in mine]
        )
    return out


def _swap_dx_and_xhat(p: Plan[SharedCase]) -> Outputs:
    mine, dx = _list_programs(p.case), compute_wrong_dx(p)
    dw = np.stack([(p.inputs["dy"] * dx)[rows].sum(axis=0) for rows in mine])
    return {"dx": compute_hat(p.inputs, "xhat"), "dw_partial": dw}


def _take_dx_for_dy(p: Plan[SharedCase], name: str) -> Outputs:
    changed = replace(p, inputs=p.inputs | {"dy": p.expected["dx"].values})
    return {name: _compute_wrong(changed, _list_right_programs(p), "partial")[name]}


def _list_buffer_models() -> Iterator[tuple[str, Model[SharedCase]]]:
    yield "uninitialised", lambda p: _sum_rows(p, slice(None))
    for count in (
        lambda M, group: M % group,
        lambda M, group: M // group,
        lambda M, group: -(-M // group),
    ):
        yield (
            "buffers_left_out",
            lambda p, c=count: _sum_rows(p, slice(0, c(p.case.M, p.case.partials))),
        )
    yield from _list_sum_models(
        lambda p: min(p.case.M, p.case.partials), left_out="buffers_left_out"
    )


def _list_partials_models() -> Iterator[tuple[str, Model[SharedCase]]]:
    yield (
        "rows_left_out",
        lambda p: _sum_rows(p, slice(0, p.case.partials // p.case.rows * p.case.rows)),
    )
    yield (
        "rows_not_summed",
        lambda p: _sum_rows(p, slice((p.case.partials - 1) // p.case.rows * p.case.rows, None)),
    )
    yield "rows_not_summed", lambda p: _sum_rows(p, slice(0, p.case.rows))
    yield (
        "rows_counted_twice",
        lambda p: _weigh_rows(p, np.minimum(np.arange(p.case.partials) + 1, p.case.rows)),
    )
    for names in (("dw", "db"), ("dw",), ("db",)):
        yield "max_for_sum", lambda p, names=names: {name: _take_largest(p, name) for name in names}
    yield from _list_sum_models(lambda p: p.case.partials)


def _weigh_rows(p: Plan[SharedCase], weights: np.ndarray) -> Outputs:
    return {name: weights @ p.inputs[f"{name}_partial"] for name in ("dw", "db")}


def _take_largest(p: Plan[SharedCase], name: str) -> np.ndarray:
    """Return the largest of the sums of a tile's lanes, where their total belongs."""
    return add_up_lanes(p.inputs[f"{name}_partial"].T, p.case.rows).max(axis=1)


def _list_sum_models(
    count: Callable[[Plan[SharedCase]], int], left_out: str = "rows_left_out"
) -> Iterator[tuple[str, Model[SharedCase]]]:
    yield "rows_not_summed", lambda p: _sum_rows(p, slice(count(p) - 1, count(p)))
    yield "rows_not_summed", lambda p: _sum_rows(p, slice(0, 1))
    yield left_out, lambda p: _sum_rows(p, slice(1, count(p)))
    yield left_out, lambda p: _sum_rows(p, slice(0, count(p), 2))
    for most in FEW:
        yield left_out, lambda p, most=most: _sum_rows(p, slice(0, min(most, count(p))))
    for name, other in (("dw", "db"), ("db", "dw")):
        yield (
            "another_dtype",
            lambda p, n=name, o=other: {
                n: (
                    round_to(_sum_rows(p, slice(0, count(p)))[n], p.tensor(o).dtype).astype(
                        np.float64
                    )
                )
            },
        )
    yield left_out, lambda p: _sum_rows(p, slice(0, max(count(p) - 1, 0)))
    yield "dw_and_db_swapped", lambda p: _sum_rows(p, slice(0, count(p)), ("db", "dw"))
    yield "dw_and_db_swapped", lambda p: _sum_rows(p, slice(0, count(p)), ("dw", "dw"))
    yield "dw_and_db_swapped", lambda p: _sum_rows(p, slice(0, count(p)), ("db", "db"))
    yield (
        "mean_for_sum",
        lambda p: {
            name: values / count(p) for name, values in _sum_rows(p, slice(0, count(p))).items()
        },
    )


def _sum_rows(p: Plan[SharedCase], rows: slice, order: tuple[str, str] = ("dw", "db")) -> Outputs:
    ending = "_buffer" if "dw_buffer" in p.inputs else "_partial"
    return {
        name: p.inputs[source + ending][rows].sum(axis=0)
        for name, source in zip(("dw", "db"), order, strict=True)
    }


def _shares_a_buffer(case: SharedCase) -> bool:
    return case.partials < case.M


def _is_spoiled_by_spare_rows(p: Plan[SharedCase], outputs: Outputs) -> bool:
    """Return True if the only error is that the partial sums of the program with the short last
    tile are not finite, in whole rows.

    The sums then contain the values that rows past M loaded. If such rows happen to load finite
    numbers, this symptom is absent.
    """
    case = p.case
    if not outputs:  # the case did not finish
        return False
    spoiled = np.zeros((len(_PARTIAL_NAMES), case.partials), bool)
    for which, name in enumerate(_PARTIAL_NAMES):
        lost = ~np.isfinite(outputs[name]) & np.isfinite(p.expected[name].values)
        if (lost != judge_elements(outputs[name], p.expected[name]).wrong).any():
            return False
        if (lost.any(axis=1) != lost.all(axis=1)).any():
            return False
        spoiled[which] = lost.any(axis=1)
    of_last_tile = (-(-case.M // case.rows) - 1) % case.partials
    short = case.M % case.rows != 0 and set(np.flatnonzero(spoiled.any(axis=0))) == {of_last_tile}
    return short and not judge_elements(outputs["dx"], p.expected["dx"]).wrong.any()


def _has_unwritten_buffers(case: SharedCase) -> bool:
    return case.partials > case.M


def _has_short_steps(case: SharedCase) -> bool:
    return case.chunk > 0 and (case.chunk % case.rows != 0 or case.M % case.chunk != 0)


_PARTIAL_NAMES = ("dw_partial", "db_partial")

ADD_TO_BUFFERS = Part(
    LOCKED,
    _plan_locked,
    _list_locked_models,
    traits=(("buffer_not_accumulated", _shares_a_buffer),),
)

PARTS = {
    "add_to_buffers_kernel": ADD_TO_BUFFERS,
    "add_in_order_kernel": Part(
        IN_ORDER,
        _plan_in_order,
        _list_locked_models,
        traits=(("buffer_not_accumulated", _shares_a_buffer),),
    ),
    "sum_buffers_kernel": Part(
        BUFFERS,
        _plan_buffers,
        _list_buffer_models,
        rare=(("uninitialised", lambda p, outputs: _has_unwritten_buffers(p.case)),),
    ),
    "column_partials_kernel": Part(
        CHUNKS,
        _plan_chunks,
        _list_chunk_models,
        traits=(("row_mask", _has_short_steps),),
        partials=_PARTIAL_NAMES,
    ),
    "rms_norm_masked_dw_kernel": Part(
        MASKED,
        _plan_masked,
        _list_masked_models,
        traits=(("row_mask", _has_short_steps),),
        partials=("dw_partial",),
    ),
    "sum_partials_kernel": Part(PARTIALS, _plan_partials, _list_partials_models),
    "persistent_backward_kernel": Part(
        PERSISTENT,
        _plan_persistent,
        _list_persistent_models,
        rare=(("row_mask", _is_spoiled_by_spare_rows), ("sum_of_zero", is_wrong_where_sums_vanish)),
        partials=_PARTIAL_NAMES,
    ),
}
