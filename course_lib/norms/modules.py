"""LayerNorm and RMSNorm modules on the course's kernels: PyTorch's own modules with another
forward.

Constructor, parameters, initialisation, ``repr`` and ``state_dict`` are inherited, so weights load
from :class:`torch.nn.LayerNorm` and :class:`torch.nn.RMSNorm`, and back, without a change.
"""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.norms import functional


class LayerNorm(torch.nn.LayerNorm):
    """:class:`torch.nn.LayerNorm`, computed by :func:`course_lib.norms.functional.layer_norm`."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(torch.nn.RMSNorm):
    """:class:`torch.nn.RMSNorm`, computed by :func:`course_lib.norms.functional.rms_norm`."""

    def forward(self, x: Tensor) -> Tensor:
        return functional.rms_norm(x, self.normalized_shape, self.weight, self.eps)


class AddRMSNorm(RMSNorm):
    """The residual addition and the RMSNorm after it in one kernel: ``(norm, total) = module(x,
    residual)``."""

    # This module inherits the parameters of RMSNorm, but is called with other arguments.
    def forward(self, x: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return functional.add_rms_norm(x, residual, self.normalized_shape, self.weight, self.eps)
