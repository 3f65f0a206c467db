"""LayerNorm and RMSNorm modules on the course's kernels: PyTorch's own modules with another
forward.

Constructor, parameters, initialisation, ``repr`` and ``state_dict`` are inherited, so weights load
from :class:`torch.nn.LayerNorm` and :class:`torch.nn.RMSNorm`, and back, without a change. Each
constructor takes ``weight_offset`` as well.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from course_lib.norms import functional


class _WithOffset(torch.nn.Module):
    """What both modules add to PyTorch's: ``weight_offset``, which is added to the weight. A new
    weight is 1 minus the offset, so that a new module scales by 1."""

    weight: Tensor | None
    weight_offset: float

    def __init__(self, *arguments: Any, weight_offset: float = 0.0, **options: Any):
        self.weight_offset = weight_offset
        super().__init__(*arguments, **options)

    def reset_parameters(self) -> None:
        super().reset_parameters()  # pyright: ignore[reportAttributeAccessIssue] - of PyTorch's norm
        if self.weight is not None:
            torch.nn.init.constant_(self.weight, 1 - self.weight_offset)

    def extra_repr(self) -> str:
        offset = f", weight_offset={self.weight_offset}" if self.weight_offset else ""
        return super().extra_repr() + offset


class LayerNorm(_WithOffset, torch.nn.LayerNorm):
    """:class:`torch.nn.LayerNorm`, computed by :func:`course_lib.norms.functional.layer_norm`."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.layer_norm(
            input, self.normalized_shape, self.weight, self.bias, self.eps,
            weight_offset=self.weight_offset,
        )  # fmt: skip


class RMSNorm(_WithOffset, torch.nn.RMSNorm):
    """:class:`torch.nn.RMSNorm`, computed by :func:`course_lib.norms.functional.rms_norm`.

    Gemma's checkpoints store the scale minus 1: load them with ``weight_offset=1.0``.
    """

    def forward(self, x: Tensor) -> Tensor:
        return functional.rms_norm(
            x, self.normalized_shape, self.weight, self.eps, weight_offset=self.weight_offset
        )


class AddRMSNorm(RMSNorm):
    """The residual addition and the RMSNorm after it in one kernel: ``(norm, total) = module(x,
    residual)``."""

    # This module inherits the parameters of RMSNorm, but is called with other arguments.
    def forward(self, x: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return functional.add_rms_norm(
            x, residual, self.normalized_shape, self.weight, self.eps,
            weight_offset=self.weight_offset,
        )  # fmt: skip
