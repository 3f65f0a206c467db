"""Lesson 18: the loss of a language model, made of the learner's 18a and 18c. PyTorch's operations
replace each that does not pass.

Forward needs no logits (18c). Backward makes the logits of a few rows again, and 18a's kernel turns
them into their gradient. So no tensor has the logits of all rows.

Source: Hsu et al. 2024, "Liger Kernel", whose fused linear cross entropy goes by chunks of rows,
too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

import course_lib
from course_lib.base.translation import mark as N_
from course_lib.bench.transformer import Transformer
from course_lib.kernels.launch import tables
from course_lib.lessons import own_kernels

ROLES = {"18c": N_("loss"), "18a": N_("gradient")}
CHUNK = 64  # rows whose logits exist at one time
_MOST_COLUMNS = 4096  # of a block of 18a


class OwnLoss:
    """The mean cross entropy of a linear layer's logits, made of two parts. An instance is a
    :data:`course_lib.bench.transformer.Loss`."""

    def __init__(self, sources: Mapping[str, str], why: Mapping[str, str]) -> None:
        """Build the loss.

        Args:
            sources: the code of the learner's parts. If it raises when it is run here, PyTorch's
                operations take its place.
            why: for each other part the reason why it is PyTorch's.
        """
        self._modules, self.parts = own_kernels.load_parts(ROLES, sources, why, is_pytorchs=True)
        self.launches = dict.fromkeys(ROLES, 0)  # number of runs of each part
        halves = {
            "forward": staticmethod(self._forward),
            "backward": staticmethod(once_differentiable(self._backward)),
        }
        self._apply = type("OwnLoss", (torch.autograd.Function,), halves).apply

    def __repr__(self) -> str:
        return "\n".join(map(str, self.parts))

    def __call__(self, model: Transformer, codes: Tensor, targets: Tensor) -> Tensor:
        """Return the mean loss of the model on ``codes``, in nats per character.

        Args:
            codes: int64, shape (batch, context).
            targets: int64, shape (batch, context): the character that follows each.
        """
        states = model.compute_states(codes).flatten(0, 1)
        return self._apply(states, model.head.weight, model.head.bias, targets.flatten())

    def _forward(self, ctx: Any, h: Tensor, w: Tensor, b: Tensor, target: Tensor) -> Tensor:
        # 18c has no bias: a column of ones in h and b as a column of w do the same
        h = torch.cat([h.detach().float(), torch.ones_like(h[:, :1])], dim=1)
        w = torch.cat([w.detach().float(), b.detach().float()[:, None]], dim=1)
        target = target.contiguous()
        loss, lse = self.compute_loss(h, w, target)
        ctx.save_for_backward(h, w, target, lse)
        return loss.mean()

    def _backward(self, ctx: Any, dloss: Tensor) -> tuple[Tensor | None, ...]:
        h, w, target, lse = ctx.saved_tensors
        dh, dw = torch.empty_like(h), torch.zeros_like(w)
        for first in range(0, len(h), CHUNK):
            rows = slice(first, first + CHUNK)
            logits = h[rows] @ w.T
            each = (dloss.float() / len(h)).expand(len(logits)).contiguous()
            dlogits = self.compute_gradient(each, logits, target[rows], lse[rows])
            dh[rows] = dlogits @ w
            dw += dlogits.T @ h[rows]
        return dh[:, :-1], dw[:, :-1], dw[:, -1], None

    def compute_loss(self, h: Tensor, w: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return loss and lse of each row, both fp32 of shape (M,), by 18c.

        Args:
            h: fp32 of shape (M, K), packed.
            w: fp32 of shape (N, K), packed. The logits would be ``h @ w.T``.
            target: int64 of shape (M,).
        """
        self.launches["18c"] += 1
        if "18c" not in self._modules:
            logits = h @ w.T
            lse = logits.logsumexp(dim=1)
            return lse - logits.gather(1, target[:, None])[:, 0], lse
        (M, K), N = h.shape, len(w)
        loss, lse = (torch.empty(M, dtype=torch.float32, device=h.device) for _ in range(2))
        # the interpreter's time depends on the number of programs, not on the size of a tile
        rows = tables.next_power_of_2(M) if course_lib.MODE == "cpu" else 16
        kernel = self._modules["18c"].linear_cross_entropy_kernel
        kernel[(-(-M // rows),)](
            h,
            w,
            target,
            loss,
            lse,
            h.stride(0),
            w.stride(0),
            1.0,
            M,
            N,
            K,
            ROWS=rows,
            BLOCK=min(64, tables.next_power_of_2(N)),
            BLOCK_K=16,
        )
        return loss, lse

    def compute_gradient(self, dloss: Tensor, x: Tensor, target: Tensor, lse: Tensor) -> Tensor:
        """Return the gradient of the logits x, of x's shape and dtype, by 18a.

        Args:
            dloss: fp32 of shape (M,).
            x: the logits, of shape (M, N), packed.
            target: int64 of shape (M,).
            lse: fp32 of shape (M,), as forward saved it.
        """
        self.launches["18a"] += 1
        if "18a" not in self._modules:
            dx = (x - lse[:, None]).exp()
            dx[torch.arange(len(x), device=x.device), target] -= 1
            return dx * dloss[:, None]
        dx = torch.empty_like(x)
        block = min(_MOST_COLUMNS, tables.next_power_of_2(x.shape[1]))
        self._modules["18a"].cross_entropy_dx_kernel[(len(x),)](
            dloss, x, target, lse, dx, x.stride(0), dx.stride(0), x.shape[1], BLOCK=block
        )
        return dx


def gather_loss() -> OwnLoss:
    """Check the learner's files of 18a and 18c, and make a loss of those that pass. Each attempted
    one takes seconds.

    PyTorch's operations replace a file that is missing, not attempted or wrong, or that cannot be
    run here; ``parts`` gives the reasons.
    """
    return OwnLoss(*own_kernels.read_passing_sources(ROLES))
