"""The figure of lesson 18: the memory that a loss without stored logits needs."""

from __future__ import annotations

from course_lib.base.translation import gettext as _
from course_lib.base.words import list_words
from course_lib.lessons.kit.output import MovingPicture
from course_lib.lessons.lesson18.own_loss import CHUNK
from course_lib.lessons.pictures.chart.model import Bar, Bars, View, chart

_LOGIT_BYTES = 2  # bf16
_FP32_BYTES = 4


def count_loss_bytes(M: int, N: int, rows: int) -> int:
    """Return the bytes that a loss and its gradient need beside h, w and their gradients, if the
    logits of ``rows`` of the M rows of N columns exist at one time: these logits and their gradient
    in bf16, and loss, lse and dloss of all rows in fp32."""
    return 2 * _LOGIT_BYTES * rows * N + 3 * _FP32_BYTES * M


def show_loss_memory(M: int, N: int) -> MovingPicture:
    """Show what :func:`count_loss_bytes` counts with all logits stored, and with those of a few
    rows at a time."""
    stored = {
        _("18a: all logits and their gradient"): (count_loss_bytes(M, N, M), "torch"),
        _("18c and 18a: {rows} rows at a time").format(rows=CHUNK): (
            count_loss_bytes(M, N, CHUNK),
            "welford",
        ),
    }
    bars = [
        Bar(name, [(size / 1e9, colour)], _("{value} GB").format(value=f"{size / 1e9:.3g}"))
        for name, (size, colour) in stored.items()
    ]
    largest, smallest = (size for size, _colour in stored.values())
    title = _("The loss of {M} tokens: {times} times less memory").format(
        M=M, times=round(largest / smallest)
    )
    caption = _(
        "A vocabulary of {N:,}. Logits and their gradient in bf16, loss, lse and dloss in fp32."
        " h, w and their gradients come on top in both."
    ).format(N=N)
    words = list_words([f"{bar.name}: {bar.words}" for bar in bars])
    return chart(
        View(title, [Bars([("", bars)], _("GB"))], caption),
        alt=_("Two bars. {told}.").format(told=words),
    )
