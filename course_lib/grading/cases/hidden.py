"""Cases that no learner has seen, for grading a class: other shapes and other values, drawn from an
instructor's secret.

A learner's own check runs the same cases every time, and prints their shapes. Code written for
those shapes (``if N == 129``, or the answers in a table) passes it. With a secret the shape of each
case is drawn anew, and the case keeps its purpose: padded lanes or none, one block or several, M a
multiple of ROWS or not, more rows than buffers or fewer, N = 1, a square, rows too far apart for 32
bits. Dtype, fill, layout, mean, spread and eps stay as they are, and the cost stays about the same.
So each bug is still found by its case, and the diagnosis still finds its cause.

The parent process draws; the child gets buffers and arguments as for a visible case. One secret
gives the same battery on every machine. All that is derived from the secret goes through a slow
hash first: a verdict shows a fingerprint, and the learner's code sees its inputs, and neither may
make it cheap to try a dictionary of secrets.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import prod
from pathlib import Path

import numpy as np

from course_lib.base import paths
from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.translation import join_sentences
from course_lib.base.translation import mark as N_
from course_lib.grading.cases.case import (
    PARTIALS,
    Case,
    SharedCase,
    describe_name,
    describe_padded_lanes,
)

LEAST_BYTES = 16
_MAKE_ONE = N_(
    'Make one: `python -c "import secrets; print(secrets.token_hex(16))" > FILE`, and keep it for'
    " the whole class."
)
_MOST_BYTES = 4096
_ROUNDS = 200_000  # rounds of the hash: they make every guess at the secret slow


class Secret:
    """An instructor's secret, as a source of random numbers. Neither ``repr`` nor a verdict shows
    more than ``fingerprint``.

    Raises: ValueError if the secret is empty.
    """

    def __init__(self, text: str | bytes):
        data = text.encode() if isinstance(text, str) else text
        if not data:
            raise ValueError("the secret is empty")
        self._key = _stretch_key(data)
        self.fingerprint = self._digest("fingerprint", 6).hex()

    def __repr__(self) -> str:
        return f"Secret({self.fingerprint})"

    def generator(self, purpose: str) -> np.random.Generator:
        """Return a generator that gives the same numbers for the same purpose, and unrelated ones
        for another."""
        return np.random.Generator(
            np.random.PCG64(int.from_bytes(self._digest(purpose, 32), "little"))
        )

    def _digest(self, purpose: str, size: int) -> bytes:
        return hashlib.blake2b(purpose.encode(), key=self._key, digest_size=size).digest()


@lru_cache(maxsize=4)
def _stretch_key(data: bytes) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", data, b"course: hidden cases, 1", _ROUNDS)


def derive_secret(secret: bytes, learner: str) -> bytes:
    """Return the secret of one learner's hidden cases. It reveals nothing about the cases of
    another learner."""
    return (
        hmac.digest(secret, f"course: learner: {learner}".encode(errors="surrogatepass"), "sha256")
        .hex()
        .encode()
    )


def read_secret(path: Path) -> bytes:
    """Return the secret in a file, without the white space around it.

    Raises: CourseError if the file cannot be read, is empty, is too long, or holds a secret that is
    too short.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise _refuse_secret(
            _("the secret cannot be read from {file}: {reason}.").format(
                file=paths.shown(path), reason=error.strerror or error
            )
        ) from None
    secret = data.strip()
    if not secret:
        raise _refuse_secret(
            _("{file} is empty; a secret belongs in it.").format(file=paths.shown(path))
        )
    if len(data) > _MOST_BYTES:
        raise _refuse_secret(
            _("{file} has more than {count} bytes; a secret is one line.").format(
                file=paths.shown(path), count=_MOST_BYTES
            )
        )
    if len(secret) < LEAST_BYTES:
        raise _refuse_secret(
            _("the secret in {file} has {count} bytes; one under {least} can be guessed.").format(
                file=paths.shown(path), count=len(secret), least=LEAST_BYTES
            )
        )
    return secret


def _refuse_secret(problem: str) -> CourseError:
    return CourseError(join_sentences(problem, _(_MAKE_ONE)))


def draw_hidden_case(case: Case, rng: np.random.Generator) -> Case:
    """Return ``case`` in another shape. The worked example has one shape only and stays as it
    is."""
    if case.fill == "worked":
        return case
    column = _draw_columns(case, rng)
    return _reshape_case(case, column, _draw_rows(case, column, rng))


def _draw_columns(case: Case, rng: np.random.Generator) -> _Columns:
    """Draw another N, a near one if there is one. Where N is 1 or 2 it has to stay; so M has to
    change, or BLOCK where M is 1."""
    now = _read_rows(case)
    near, wide = (
        [c for c in _list_columns(case, wide) if _is_affordable(case, c, now)]
        for wide in (False, True)
    )
    others = [[c for c in columns if c.N != case.N] for columns in (near, wide)]
    same_N = [c for c in near if case.M > 1 or c.block != case.block]
    return _choose(rng, [*others, same_N]) or _Columns(case.N, case.block)


def _draw_rows(case: Case, column: _Columns, rng: np.random.Generator) -> _Rows:
    """Draw rows to go with these columns. A square stays a square, and no other shape becomes
    one."""
    now = _read_rows(case)
    if case.M == case.N:
        return replace(now, M=column.N)
    # With the same columns, M or ROWS has to change: another number of buffers alone leaves the
    # shape that the learner knows.
    same_columns = column == _Columns(case.N, case.block)
    rows = [
        [
            r
            for r in _list_rows(case, wide)
            if column.N not in (r.M, *r.leading)
            and _is_affordable(case, column, r)
            and ((r.M, r.rows) != (now.M, now.rows) if same_columns else r != now)
        ]
        for wide in (False, True)
    ]
    return _choose(rng, rows) or now


def _choose(rng: np.random.Generator, lists: list[list]):
    """Draw an element of the first list that is not empty; return None if all are empty."""
    choices = next((choices for choices in lists if choices), None)
    return choices[rng.integers(len(choices))] if choices else None


@dataclass(frozen=True)
class _Columns:
    N: int
    block: int


@dataclass(frozen=True)
class _Rows:
    M: int
    rows: int
    leading: tuple[int, ...]
    partials: int = 0
    chunk: int = 0


def _read_rows(case: Case) -> _Rows:
    shared = (case.partials, case.chunk) if isinstance(case, SharedCase) else ()
    return _Rows(case.M, case.rows, case.leading, *shared)


def _reshape_case(case: Case, column: _Columns, rows: _Rows) -> Case:
    shared = (
        {"partials": rows.partials, "chunk": rows.chunk} if isinstance(case, SharedCase) else {}
    )
    made = replace(
        case,
        M=rows.M,
        N=column.N,
        block=column.block,
        rows=rows.rows,
        leading=rows.leading,
        **shared,
    )
    return replace(made, why=_describe_case(case, made))


def _describe_case(case: Case, made: Case) -> str:
    """Say what is special about the new case: the name of the visible case that it was drawn from,
    and its own numbers."""
    words = [
        _('hidden, of the kind "{name}"').format(name=describe_name(case.name)),
        PARTIALS * (PARTIALS in case.why),
        describe_padded_lanes(made),
    ]
    if made.fill == "constant":
        words.append(_("every element is {value}").format(value=f"{made.mean:g}"))
    else:
        words.append(_("mean {value}").format(value=f"{made.mean:g}") if made.mean else "")
        words.append(_("std {value}").format(value=f"{made.std:g}") if made.std != 1 else "")
    words.append(f"eps = {made.eps:g}" if made.eps != 1e-5 else "")
    return _(", ").join(part for part in words if part)


# ---- the shapes that may be drawn, and the traits that must stay


def _list_columns(case: Case, wide: bool) -> Iterator[_Columns]:
    """Yield N and BLOCK that have the traits of the case's own: padding or none, a similar number
    of blocks, a last block of one column."""
    blocks = (case.block,) if not case.block else (case.block // 2, case.block, 2 * case.block)
    wanted = _find_column_traits(case.N, case.block)
    for N, block in product(
        _list_sizes_near(case.N, 256, wide) if case.N > 2 else (case.N,), blocks
    ):
        if block and not (
            _keeps_limits(N % block, case.N % case.block)
            and _keeps_limits(-(-N // block), -(-case.N // case.block))
        ):
            continue
        if (
            (block >= 4 or not block)
            and _find_column_traits(N, block) == wanted
            and (N != case.M or case.M == case.N)
        ):
            yield _Columns(N, block)


def _find_column_traits(N: int, block: int) -> tuple:
    count = -(-N // block) if block else 1
    # N = 2 is a separate kind: the projections leave next to nothing of dy. A block with 8 or more
    # lanes per column is one, too: most merges in its tree merge empty lanes.
    return (
        min(N, 3),
        bool(block and -N % block),
        min(count, 3),
        count > 1 and N % block == 1,
        bool(block and block >= 8 * N),
    )


def _list_rows(case: Case, wide: bool) -> Iterator[_Rows]:
    """Yield M, ROWS, leading dimensions, buffers and chunks that relate to each other as those of
    the case do."""
    now = _read_rows(case)
    # fewer rows would not pass 2^31 and 2^32, and each further row takes more address space
    if case.is_far:
        yield now
        return
    traits = _find_row_traits(now)
    heights = (now.rows,) if now.rows == 1 else (now.rows // 2, now.rows, 2 * now.rows)
    for M, leading in _list_row_counts(case, wide):
        for rows, chunk in product(
            heights, _list_sizes_near(now.chunk, 12, wide) if now.chunk else (0,)
        ):
            for partials in _list_partials(now, M, chunk, wide):
                drawn = _Rows(M, rows, leading, partials, chunk)
                programs_keep = _keeps_limits(-(-M // rows), -(-now.M // now.rows))
                if (
                    _find_row_traits(drawn) == traits
                    and (min(now.M, 3) <= M or not case.has_bad_row)
                    and programs_keep
                ):
                    yield drawn


def _list_partials(now: _Rows, M: int, chunk: int, wide: bool) -> Sequence[int]:
    """Return numbers of partial sums: one per chunk, one per row, or near the case's own."""
    if now.chunk:
        return (-(-M // chunk),)
    if now.partials == now.M:
        return (M,)
    return _list_sizes_near(now.partials, 12, wide) if now.partials > 1 else (now.partials,)


def _list_row_counts(case: Case, wide: bool) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield M and the leading dimensions. A dimension of 1 stays, and dimensions that differ do not
    become equal."""
    if case.leading:
        for leading in product(
            *(range(2, size + 3) if size > 1 else (1,) for size in case.leading)
        ):
            if len(set(leading)) == len(set(case.leading)):
                yield prod(leading), leading
    elif case.M <= 1:
        yield case.M, ()
    else:
        # The plan searches for the rows of this fill and may not find more than M of them.
        most = case.M if case.fill == "below zero" else 2 * case.M
        yield from ((M, ()) for M in _list_sizes_near(case.M, 12, wide) if 2 <= M <= most)


def _find_row_traits(r: _Rows) -> tuple:
    tiles = -(-r.M // r.rows)
    traits: tuple = (r.M % r.rows == 0, r.rows > 1 and min(tiles, 3), r.rows > r.M)
    if r.chunk:
        traits += (
            r.chunk == 1,
            r.chunk % r.rows == 0,
            _sign(r.chunk - r.rows),
            _sign(r.chunk - r.M),
            min(r.M % r.chunk, 2),
            min(r.partials, 3),
        )
    elif r.partials:
        some_each = (
            -(-r.M // r.partials) * (r.partials - 1) < r.M
        )  # each buffer or program gets some rows, also if each takes a run of neighbouring rows
        traits += (
            some_each,
            r.partials == 1,
            _sign(r.M - r.partials),
            r.M % r.partials == 0,
            _sign(tiles - r.partials),
            tiles % r.partials == 0,
        )
    return traits


def _is_affordable(case: Case, column: _Columns, r: _Rows) -> bool:
    """Return True if the shape costs the interpreter about as much as ``case`` does, and a program
    at most about twice the registers."""
    before = _count_steps(case.M, case.rows, case.N, case.block)
    now = _count_steps(r.M, r.rows, column.N, column.block)
    tile = r.rows * column.block <= 2 * max(case.rows * case.block, 32)
    return now <= 1.5 * before + 1 and r.M * column.N <= 2 * case.M * case.N + 64 and tile


def _count_steps(M: int, rows: int, N: int, block: int) -> int:
    """Return the number of blocks that all programs load together; for a function, which has no
    blocks, the number of rows."""
    return -(-M // rows) * (-(-N // block) if block else 1)


def _list_sizes_near(size: int, most: int, wide: bool) -> list[int]:
    """Return the sizes at most a quarter away. ``wide`` adds sizes about half and twice as large:
    the only other powers of two.

    Sizes under 16 shrink by one at most: a row of three numbers may by chance have almost no
    variance, and then tests something else.
    """
    away = min(max(2, size // 4), most)
    found = {*range(size - (away if size >= 16 else 1), size + away + 1)}
    if wide:
        found |= {other + by for other in (size // 2, 2 * size)[size < 16 :] for by in (-1, 0, 1)}
    return sorted(n for n in found if n >= 1 and _keeps_limits(n, size))


def _keeps_limits(drawn: int, size: int) -> bool:
    """Return True if ``drawn`` is past each limit that ``size`` is past and that a wrong kernel may
    have.

    Such a kernel stops at a power of two, after 64 steps or at 128 programs, or it counts in fp16,
    which holds odd numbers up to 2048 alone.
    """
    passes = size <= 64 or drawn > 1 << (size - 1).bit_length() - 1
    return passes and (_fits_fp16(size) or not _fits_fp16(drawn))


def _fits_fp16(count: int) -> bool:
    """Return True if fp16 holds ``count`` exactly."""
    return count <= 65504 and int(np.float16(count)) == count


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)
