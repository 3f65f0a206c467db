"""Run a learner's forward and backward as an autograd Function, in the child process. Only the
parent process judges the outputs.

A case of the entry point ``forward`` calls the Function and takes y. A case of ``backward`` also
asks autograd for gradients. Its ``constexprs`` are: ``needs`` (one bit per input x, w and b:
whether it requires a gradient), ``residual`` (z = y + x is differentiated, so that dy has a second
reader), ``twice`` (the graph is kept and differentiated again, and the second answer counts),
``change`` (x is changed in place in between; the output "raised" is 1 if autograd refused),
``second`` (the gradients are differentiated again: a wrong result without an error is a fault). If
a gradient is None, its output is never written.
"""

from __future__ import annotations

import collections
import functools
import sys
import types
from collections.abc import Callable, Iterable

import torch

from course_lib.base.closures import read_closure
from course_lib.base.translation import gettext as _
from course_lib.grading.cases.plan import CaseLaunch
from course_lib.grading.execution.case_runner import require_mode
from course_lib.grading.execution.functions import TorchFunctions, describe_wrong_return
from course_lib.launching.faults import FaultKind, Misuse

BITS = {"x": 1, "w": 2, "b": 4}
# names under which the methods of ctx keep tensors
_OF_PYTORCH = frozenset({"to_save", "non_differentiable", "dirty_tensors"})


def _holds_tensor(value: object, home: str) -> bool:
    """Return True for a tensor, or an object that leads to one: a container, a function, an object
    of a class of the module ``home``."""
    # by id; the objects are kept, because a new object could get the id of a deleted one
    seen: dict[int, object] = {}
    waiting = [value]
    while waiting:
        held = waiting.pop()
        if id(held) in seen:
            continue
        seen[id(held)] = held
        if isinstance(held, torch.Tensor):
            return True
        waiting += _list_held(held, home)
    return False


def _list_held(value: object, home: str) -> Iterable[object]:
    """Return the objects that ``value`` holds, if a learner can have put them there."""
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, (tuple, list, set, frozenset, collections.deque)):
        return value
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, types.MethodType):
        return [value.__self__, value.__func__]
    if isinstance(value, types.FunctionType) and value.__module__ == home:
        return [vars(value), value.__defaults__, read_closure(value)]
    if home in (type(value).__module__, getattr(value, "__module__", "")):
        # for a class, vars returns a proxy
        attributes = dict(vars(value)) if hasattr(value, "__dict__") else {}
        slots = getattr(value, "__slots__", ())
        return [attributes, *(getattr(value, name, None) for name in slots)]
    return ()


class Autograd(TorchFunctions):
    """Cases of the kind "autograd": on the CPU, the kernels in the interpreter."""

    # The learner's file imports the first one later, when the sandbox no longer lets it read the
    # course. A first launch and torch.autograd.grad import the others.
    modules = (
        "course_lib.norms.launchers",
        "triton.compiler.code_generator",
        "torch.fx.experimental.symbolic_shapes",
    )

    def __init__(self):
        require_mode("cpu")
        super().__init__()

    def run(self, function, case: CaseLaunch, data: bytes) -> bytes:
        memory, places_of_tensors = bytearray(data), []
        views = {t.name: self.view(memory, t) for t in case.tensors}
        with self.watching(
            {t.name: views[t.name] for t in case.tensors if not t.is_output}
        ) as changes:
            Norm = self.make_function(sys.modules[function.__module__], places_of_tensors)
            self.call(Norm, case, views)
            twice_wrong = case.constexprs["second"] and not self._differentiates_twice(
                Norm, case, views
            )
        words = _(
            "{name} holds a tensor, which did not go through ctx.save_for_backward: PyTorch does"
            " not notice when it is changed"
        )
        faults = [
            *changes,
            *(Misuse(FaultKind.CTX, words.format(name=name)) for name in places_of_tensors),
        ]
        if twice_wrong:
            words = _(
                "A second derivative is wrong, and no error was raised: autograd takes what a"
                " launch returns for a constant"
            )
            faults.append(Misuse(FaultKind.SECOND, words))
        self.misuse = next(iter(faults), None)
        return bytes(memory)

    @staticmethod
    def make_function(written, places_of_tensors: list[str]) -> type[torch.autograd.Function]:
        """Make the autograd Function of a learner's module.

        Each name under which forward leaves a tensor, on ctx or in the file, is added to ``kept``.
        """
        home = written.__name__

        def forward(ctx, *arguments):
            before = {
                name
                for name, value in vars(written).items()
                if name[:2] != "__" and _holds_tensor(value, home)
            }
            y = written.forward(ctx, *arguments)
            places_of_tensors.extend(
                f"`ctx.{name}`"
                for name, value in vars(ctx).items()
                if name not in _OF_PYTORCH and _holds_tensor(value, home)
            )
            if _holds_tensor(dict(ctx.metadata), home):
                places_of_tensors.append("`ctx.metadata`")
            places_of_tensors.extend(
                f"`{name}`"
                for name, value in vars(written).items()
                if name[:2] != "__" and name not in before and _holds_tensor(value, home)
            )
            return y

        halves = {"forward": staticmethod(forward), "backward": staticmethod(written.backward)}
        return type("Norm", (torch.autograd.Function,), halves)

    def call(
        self, Norm: type[torch.autograd.Function], case: CaseLaunch, views: dict[str, torch.Tensor]
    ) -> None:
        """Run the Function as the case asks for, and copy what it computes into the views of the
        outputs."""
        flags = case.constexprs
        leaves = {name: views[name] for name in BITS if name in views}
        for name, leaf in leaves.items():
            leaf.requires_grad_(bool(flags["needs"] & BITS[name]))
        eps = next(value for value in case.arguments if isinstance(value, float))
        # PyTorch refuses to change a leaf that requires gradients in place, so the change needs a
        # copy.
        x = leaves["x"] if not flags["change"] else leaves["x"] * 1
        y = Norm.apply(x, leaves.get("w"), leaves.get("b"), eps)
        outputs_by_name = {t.name: t for t in case.tensors if t.is_output}
        if not isinstance(y, torch.Tensor):
            got = (
                _("a tuple of {count}").format(count=len(y))
                if isinstance(y, tuple)
                else f"`{type(y).__name__}`"
            )
            raise describe_wrong_return("forward", got, "y")
        if "y" in outputs_by_name:
            self.take(views["y"], y.detach(), outputs_by_name["y"])
            return
        asked = {name: leaves[name] for name in BITS if flags["needs"] & BITS[name]}
        z = y + x if flags["residual"] else y
        if flags["change"]:
            x.mul_(2)
            views["raised"].fill_(self._refuses(z, [*asked.values()], views["dy"]))
            return
        for name, gradient in zip(
            asked,
            self._differentiate(z, [*asked.values()], views["dy"], flags["twice"]),
            strict=True,
        ):
            if gradient is not None:
                self.take(views[f"d{name}"], gradient, outputs_by_name[f"d{name}"])

    @staticmethod
    def _differentiate(
        z: torch.Tensor, leaves: list[torch.Tensor], dy: torch.Tensor, twice: bool
    ) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients. If ``twice``, keep the graph, differentiate again, and return the
        second result."""
        if twice:
            torch.autograd.grad(z, leaves, dy, retain_graph=True, allow_unused=True)
        return torch.autograd.grad(z, leaves, dy, allow_unused=True)

    @staticmethod
    def _refuses(z: torch.Tensor, leaves: list[torch.Tensor], dy: torch.Tensor) -> float:
        try:
            torch.autograd.grad(z, leaves, dy, allow_unused=True)
        except RuntimeError as refusal:
            # this word is in PyTorch's errors about a saved tensor, and about a view of one
            if "inplace" not in str(refusal):
                raise
            return 1.0
        return 0.0

    @staticmethod
    def _differentiates_twice(
        Norm: type[torch.autograd.Function], case: CaseLaunch, views: dict[str, torch.Tensor]
    ) -> bool:
        """Return whether the second derivatives through the Function are right, or are refused with
        an error."""

        def penalise(
            norm: Callable[..., torch.Tensor], dtype: torch.dtype
        ) -> list[torch.Tensor | None]:
            leaves = [views[name].detach().to(dtype, copy=True).requires_grad_() for name in BITS]
            # x has another way to the loss, so that the gradients have a history in any case
            z = leaves[0] + norm(*leaves)
            gradients = torch.autograd.grad(
                (z * z * views["dy"].to(dtype)).sum(), leaves, create_graph=True, allow_unused=True
            )
            torch.stack(
                [gradient.square().sum() for gradient in gradients if gradient is not None]
            ).sum().backward()
            return [leaf.grad for leaf in leaves]

        eps = next(value for value in case.arguments if isinstance(value, float))

        def normalise(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            variance, mean = torch.var_mean(x, 1, keepdim=True, correction=0)
            return (x - mean) * torch.rsqrt(variance + eps) * w + b

        expected = penalise(normalise, torch.float64)
        try:
            computed = penalise(lambda x, w, b: Norm.apply(x, w, b, eps), torch.float32)
        except RuntimeError:
            return True
        pairs = [
            (got, want)
            for got, want in zip(computed, expected, strict=True)
            if got is not None and want is not None
        ]
        return len(pairs) == len(BITS) and all(
            (got - want).abs().max() <= 1e-2 * want.abs().max() for got, want in pairs
        )
