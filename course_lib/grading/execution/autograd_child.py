"""Runs a learner's forward and backward as an autograd Function, in the child process. Like the rest of it, decides nothing.

A case of the entry point ``forward`` calls the Function and takes y. One of ``backward`` also asks autograd for gradients,
as its ``constexprs`` say: ``needs`` (a bit each for x, w and b: which require gradients), ``residual`` (z = y + x is
differentiated, so that dy has a second reader), ``twice`` (the graph is kept and differentiated again, and the second answer
counts), ``change`` (x is changed in place in between; the output "raised" is 1 if autograd refused).
A gradient that comes back None leaves its output as it is, never written.
"""

from __future__ import annotations

import sys

import torch

BITS = {"x": 1, "w": 2, "b": 4}


class Autograd:
    """Cases of the kind "autograd": on the CPU, the kernels in the interpreter.

    Args:
        functions: the child's machine for functions in PyTorch, which makes tensors of bytes and takes tensors back.
        wrong_return: what is raised, with the reason in words, where ``forward`` returns no tensor.
    """

    def __init__(self, functions, wrong_return: type[Exception]):
        self.view, self.take, self.lost = functions.view, functions.take, functions.lost
        self.wrong_return = wrong_return

    def run(self, function, case: dict, data: bytes) -> bytes:
        written = sys.modules[function.__module__]
        Norm = type(
            "Norm",
            (torch.autograd.Function,),
            {name: staticmethod(getattr(written, name)) for name in ("forward", "backward")},
        )
        memory, flags = bytearray(data), case["constexprs"]
        views = {t["name"]: self.view(memory, t) for t in case["tensors"]}
        leaves = {name: views[name] for name in BITS if name in views}
        for name, leaf in leaves.items():
            leaf.requires_grad_(bool(flags["needs"] & BITS[name]))
        eps = next(value for kind, value in case["arguments"] if kind == "float")
        # a leaf that requires gradients refuses the change itself
        x = leaves["x"] if not flags["change"] else leaves["x"] * 1
        y = Norm.apply(x, leaves.get("w"), leaves.get("b"), eps)
        wanted = {t["name"]: t for t in case["tensors"] if t["output"]}
        if not isinstance(y, torch.Tensor):
            got = f"a tuple of {len(y)}" if isinstance(y, tuple) else f"`{type(y).__name__}`"
            raise self.wrong_return(f"`forward` returned {got}; asked for: y")
        if "y" in wanted:
            self.take(views["y"], y.detach(), wanted["y"])
            return bytes(memory)
        asked = [name for name in BITS if flags["needs"] & BITS[name]]
        z = y + x if flags["residual"] else y
        if flags["change"]:
            x.mul_(2)
            views["raised"].fill_(self._refuses(z, [leaves[name] for name in asked], views["dy"]))
            return bytes(memory)
        gradients: tuple[torch.Tensor | None, ...] = ()
        for last in (False, True)[not flags["twice"] :]:
            gradients = torch.autograd.grad(
                z, [leaves[name] for name in asked], views["dy"], retain_graph=not last, allow_unused=True
            )
        for name, gradient in zip(asked, gradients, strict=True):
            if gradient is not None:
                self.take(views[f"d{name}"], gradient, wanted[f"d{name}"])
        return bytes(memory)

    @staticmethod
    def _refuses(z: torch.Tensor, leaves: list[torch.Tensor], dy: torch.Tensor) -> float:
        try:
            torch.autograd.grad(z, leaves, dy, allow_unused=True)
        except RuntimeError as refusal:
            if "inplace" not in str(refusal):  # in the words for a saved tensor, or for a view of one
                raise
            return 1.0
        return 0.0
