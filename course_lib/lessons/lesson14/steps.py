"""The steps of lesson 14: the results of backward, rows in the layout that a launcher reads, shapes
and dtypes of the gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from course_lib.base.translation import gettext as _
from course_lib.base.translation import join_sentences
from course_lib.lessons.steps.step import In, Slip, Step, Try, WrongForm


def _accept_returned(returned: Any) -> str:
    if not isinstance(returned, (list, tuple)):
        raise WrongForm(
            _(
                "`returned` is a list of what backward returns, one entry for each argument of"
                " forward."
            )
        )
    if len(returned) != 4:
        return _(
            "`forward` has four arguments behind `ctx`: x, w, b and eps. `backward` returns {count}"
            " here."
        ).format(count=len(returned))
    gradients = {"x": "dx", "w": None, "b": None, "eps": None}
    for (name, right), answer in zip(gradients.items(), returned, strict=True):
        if answer != right:
            why = {
                "x": _("x is the first argument, and somebody waits for its gradient."),
                "w": _("w is frozen: nobody asked for its gradient."),
                "b": _("b is None in this call, and a gradient for None is an error."),
                "eps": _("eps is a number, and a number has no gradient."),
            }[name]
            wrong = _("In the place of {name} stands {value!r}.").format(name=name, value=answer)
            return join_sentences(wrong, why)
    return ""


def _try_rows(description: str, x: np.ndarray) -> Try:
    turned = np.swapaxes(x, -1, -2)
    return Try(description, arguments=(In(x),), expected=turned.reshape(-1, turned.shape[-1]))


def _try_back(description: str, shape: tuple[int, ...], dtype: str) -> Try:
    dx = np.arange(24.0).reshape(6, 4)
    dw = np.array([1.0, 2.0, 4.0, 5.0]) / 3
    rounded = dw.astype(np.float16 if dtype == "fp16" else np.float32)
    return Try(
        description,
        arguments=(In(dx), In(dw), In(np.ones(shape)), In(np.ones(4), dtype=dtype)),
        expected=(dx.reshape(shape), rounded.astype(np.float64)),
        within=1e-6,
    )


STEPS = (
    Step(
        "14-returned",
        kind="value",
        entry_point="returned",
        accepts=_accept_returned,
        question=(
            "Go through the arguments of forward one by one. Does anybody want a gradient for this"
            " one?"
        ),
        debrief=(
            "One value for each argument, by position. `ctx.needs_input_grad` is (True, False,"
            " False, False) in this call: it says where a gradient is wanted."
        ),
        slips=(
            Slip('["dx", None, None, None]', '["dx", "dw", "db", None]'),
            Slip('["dx", None, None, None]', '["dx"]'),
            Slip('["dx", None, None, None]', '["dx", None, "db", None]'),
            Slip('["dx", None, None, None]', '[None, "dx", None, None]'),
        ),
    ),
    Step(
        "14-rows",
        kind="torch",
        entry_point="read_rows",
        tries=(
            _try_rows("a matrix of shape (2, 3)", np.arange(6.0).reshape(2, 3)),
            _try_rows("a batch of shape (2, 3, 4)", np.arange(24.0).reshape(2, 3, 4)),
        ),
        question=(
            "`x` is a view with its last two dimensions exchanged. How far apart in memory are two"
            " neighbours of one row?"
        ),
        debrief=(
            "`reshape` copies only if it must, so its result may still have strides."
            " `.contiguous()` copies where the rows are not packed, and returns the same tensor"
            " where they are."
        ),
        slips=(
            Slip(
                "x.reshape(-1, x.shape[-1]).contiguous()", "x.contiguous().reshape(x.shape[-1], -1)"
            ),
            Slip(
                "x.reshape(-1, x.shape[-1]).contiguous()",
                "x.reshape(-1, x.shape[-1]) + 1",
                "the numbers are changed",
                "A view and a copy hold the same numbers. Which of your operations computes?",
            ),
            Slip(
                "x.reshape(-1, x.shape[-1]).contiguous()",
                "x.transpose(-1, -2).reshape(-1, x.shape[-1])",
                "the columns of the view are taken for its rows",
                "Which is the last dimension of the view, and what does your line do with it?",
            ),
        ),
    ),
    Step(
        "14-back",
        kind="torch",
        entry_point="hand_back",
        tries=(
            _try_back("a matrix, and w in fp32", (6, 4), "fp32"),
            _try_back("dy of shape (2, 3, 4), and w in fp32", (2, 3, 4), "fp32"),
            _try_back("a matrix, and w in fp16", (6, 4), "fp16"),
        ),
        question=(
            "Compare shape and dtype of what you return with those of the tensor that it belongs"
            " to. Which differs?"
        ),
        debrief=(
            "`dw` is added up in fp32 and rounded once, at the end, to the dtype of `w`. The dtype"
            " of `dy` has no say in it: a dive below shows what happens otherwise."
        ),
        slips=(
            Slip(
                "return dx.view(dy.shape), dw.to(w.dtype)",
                "return dx, dw",
                "dx is handed back as a matrix",
                "Which shape has `dy`, and which one has the `dx` that you return?",
            ),
            Slip(
                "return dx.view(dy.shape), dw.to(w.dtype)",
                "return dx, dw.to(w.dtype)",
                "dx is handed back as a matrix",
                "Which shape has `dy`, and which one has the `dx` that you return?",
            ),
            Slip(
                "return dx.view(dy.shape), dw.to(w.dtype)",
                "return dx.view(dy.shape), dw",
                "gradient_dtype",
                "`dw` belongs to `w`. Which dtype has `w`, and which one has your `dw`?",
            ),
            Slip(
                "return dx.view(dy.shape), dw.to(w.dtype)",
                "return dx.view(dy.shape), dw.to(dy.dtype)",
                "gradient_dtype",
                "`dw` belongs to `w`. Which dtype has `w`, and which one has your `dw`?",
            ),
        ),
    ),
)
