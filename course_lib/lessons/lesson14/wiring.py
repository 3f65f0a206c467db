"""Lesson 14: wiring bugs that shipped, tests for them, and a table, computed here, that shows which
test sees which bug.

The Functions take packed matrices, and launch the course's kernels. ``Packed`` is the right one;
every bug changes one thing in it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

import course_lib
from course_lib.base.translation import mark as N_
from course_lib.norms.launchers import launch_backward, launch_forward

EPS = 1e-5
M, N = 12, 10
Loss = Callable[[Tensor], Tensor]
Function = Any  # a subclass of torch.autograd.Function


def draw(*shape: int, seed: int, mean: float = 0.0) -> Tensor:
    """Return normal numbers around ``mean``, the same on every device."""
    return (torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) + mean).to(
        course_lib.DEVICE
    )


class Packed(torch.autograd.Function):
    """LayerNorm of a packed matrix, for any strides of dy."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, b: Tensor, eps: float) -> Tensor:
        y, mean, rstd = launch_forward(x, w, b, eps)
        ctx.save_for_backward(x, w, mean, rstd)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return *launch_backward(dy.contiguous(), *ctx.saved_tensors), None


class NoDw(Packed):
    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        dx, _, db, none = Packed.backward(ctx, dy)
        return dx, None, db, none


class Swapped(Packed):
    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        dx, dw, db, none = Packed.backward(ctx, dy)
        return dx, db, dw, none


class DyIgnored(Packed):
    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        return Packed.backward(ctx, torch.ones_like(dy, memory_format=torch.contiguous_format))


class OverDy(Packed):
    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        dy = dy.contiguous()
        dx, dw, db, none = Packed.backward(ctx, dy)
        assert dx is not None
        return dy.copy_(dx), dw, db, none


class StridesIgnored(Packed):
    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        return *launch_backward(dy, *ctx.saved_tensors), None


class Tidied(Packed):
    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        dx, dw, db, none = Packed.backward(ctx, dy)
        assert dw is not None and db is not None
        return dx, dw.to(dy.dtype), db.to(dy.dtype), none


class NotOnce(Packed):
    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        return *launch_backward(dy.contiguous(), *ctx.saved_tensors), None


BUGS: dict[str, Function] = {
    N_("dw not returned"): NoDw,
    N_("dw, db swapped"): Swapped,
    N_("dy ignored"): DyIgnored,
    N_("dx written over dy"): OverDy,
    N_("dy's strides ignored"): StridesIgnored,
    N_("dw in x's dtype"): Tidied,
    N_("twice, not refused"): NotOnce,
}


def find_gradients(
    function: Function, loss_of: Callable[[Tensor, Tensor], Tensor], x: Tensor
) -> list[list[Tensor | None]]:
    """Return the gradients of x, w and b for a loss of y and x: first those of ``function``, then
    those of PyTorch."""
    w, b = draw(N, seed=1, mean=1.0), draw(N, seed=2)
    inputs, true_inputs = (
        [t.detach().clone().requires_grad_() for t in (start, w, b)] for start in (x, x.float())
    )
    ours = torch.autograd.grad(
        loss_of(function.apply(*inputs, EPS), inputs[0]), inputs, allow_unused=True
    )
    true_gradients = torch.autograd.grad(
        loss_of(
            F.layer_norm(true_inputs[0], (N,), true_inputs[1], true_inputs[2], EPS), true_inputs[0]
        ),
        true_inputs,
    )
    return [list(ours), list(true_gradients)]


def agrees(function: Function, loss_of: Callable[[Tensor, Tensor], Tensor], x: Tensor) -> bool:
    """Return whether all three gradients equal PyTorch's, up to rounding."""
    limits = (2e-3 if x.dtype == torch.float16 else 2e-5, 2e-5, 2e-5)
    return all(
        actual is not None
        and want is not None
        and bool((actual - want).abs().max() <= limit * want.abs().max())
        for actual, want, limit in zip(*find_gradients(function, loss_of, x), limits, strict=True)
    )


def is_right(function: Function, loss_of: Loss) -> bool:
    """Return whether all three gradients of a loss of y equal PyTorch's, up to rounding."""
    return agrees(function, lambda y, x: loss_of(y), draw(M, N, seed=4, mean=1.0))


def passes_gradcheck(function: Function) -> bool:
    """Run PyTorch's gradcheck, which compares the Function's gradients with finite differences in
    fp64."""
    shapes = (2, 3), (3,), (3,)
    leaves = [draw(*shape, seed=3, mean=1.0).double().requires_grad_() for shape in shapes]
    return torch.autograd.gradcheck(
        lambda *a: function.apply(*a, EPS), leaves, raise_exception=False
    )


def differentiate_twice(norm: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Tensor:
    """Return the gradient of the squared size of a gradient with respect to x, which comes to the
    loss through norm(x, w, b) and past it.

    Raises: RuntimeError if the norm refuses to be differentiated twice.
    """
    x, w, b = (
        draw(*shape, seed=seed, mean=1.0).requires_grad_()
        for seed, shape in ((4, (M, N)), (1, (N,)), (2, (N,)))
    )
    y = x + norm(x, w, b)
    (first_gradient,) = torch.autograd.grad(
        (y * y * draw(M, N, seed=5)).sum(), x, create_graph=True
    )
    first_gradient.square().sum().backward()
    assert x.grad is not None
    return x.grad


def survives_twice(function: Function) -> bool:
    """Return whether ``backward()`` through a gradient gives PyTorch's second derivative, or is
    refused with an error."""
    want = differentiate_twice(lambda x, w, b: F.layer_norm(x, (N,), w, b, EPS))
    try:
        actual = differentiate_twice(lambda x, w, b: function.apply(x, w, b, EPS))
    except RuntimeError:
        return True
    return bool((actual - want).abs().max() <= 1e-3 * want.abs().max())


def list_tests() -> dict[str, Callable[[Function], bool]]:
    """Return the tests by name. Each takes a Function and returns whether it passes."""
    x, g = draw(M, N, seed=4, mean=1.0), draw(M, N, seed=5)
    return {
        "y.sum()": lambda f: agrees(f, lambda y, x: y.sum(), x),
        "y * g": lambda f: agrees(f, lambda y, x: (y * g).sum(), x),
        "gradcheck": passes_gradcheck,
        "y + x": lambda f: agrees(f, lambda y, x: ((y + x) * g).sum(), x),
        "y.t()": lambda f: agrees(f, lambda y, x: (y.t() * g.t().contiguous()).sum(), x),
        "fp16 x": lambda f: agrees(f, lambda y, x: (y.float() * g.half().float()).sum(), x.half()),
        N_("twice"): survives_twice,
    }


def find_who_sees_what() -> dict[str, dict[str, bool]]:
    """Return for each bug and each test whether the test fails on the bug."""
    tests = list_tests()
    return {
        bug: {name: not test(function) for name, test in tests.items()}
        for bug, function in BUGS.items()
    }


LOSSES: dict[str, Loss] = {
    "(y * g).sum()": lambda y: (y * draw(*y.shape, seed=5)).sum(),
    "y.sum()": lambda y: y.sum(),
    "(y.sum(0) * v).sum()": lambda y: (y.sum(0) * draw(y.shape[1], seed=6)).sum(),
    "(y.sum(1) * v).sum()": lambda y: (y.sum(1) * draw(y.shape[0], seed=7)).sum(),
    "(y.t() * g).sum()": lambda y: (y.t() * draw(*y.t().shape, seed=8)).sum(),
}


def find_dy_strides(loss_of: Loss) -> tuple[int, ...]:
    """Return the strides of dy, the gradient that the loss sends back to y of shape (M, N)."""
    strides_seen = []
    y = draw(M, N, seed=4).requires_grad_() * 1
    y.register_hook(lambda dy: strides_seen.append(tuple(dy.stride())))
    loss_of(y).backward()
    return strides_seen[0]


def count_kept_bytes(norm: Callable[[Tensor, Tensor, Tensor], Tensor], M: int, N: int) -> int:
    """Count the bytes that the graph of norm(x, w, b) keeps besides x, w and b; all are fp32."""
    parameters = [draw(*shape, seed=9).requires_grad_() for shape in ((M, N), (N,), (N,))]
    parameter_pointers = {tensor.untyped_storage().data_ptr() for tensor in parameters}
    held = {}

    def pack(tensor: Tensor) -> Tensor:
        held[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = norm(*parameters)
    assert y.requires_grad
    return sum(size for pointer, size in held.items() if pointer not in parameter_pointers)


def find_lie(operator: Any, *arguments: Any) -> str:
    """Check an operator's schema and fake function with ``torch.library.opcheck``. Return "passes",
    or the error that it reports."""
    # opcheck raises it
    from torch.testing._internal.optests.generate_tests import OpCheckError

    try:
        torch.library.opcheck(operator, arguments, test_utils=("test_schema", "test_faketensor"))
    except OpCheckError as lie:
        return str(lie).split("found ")[-1].split(" (scroll")[0]
    return "passes"


def list_operations_around(operator: Callable[[Tensor], Tensor], x: Tensor) -> list[str]:
    """Return the operations of the graph that torch.compile hands to a compiler for
    relu(operator(relu(x))).

    Nothing is compiled, and no kernel runs. A kernel of Triton has the names of its arguments in
    parentheses.
    """
    # importing the compiler takes seconds
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    operation_names: list[str] = []

    def keep(graph: Any, inputs: Any) -> Any:
        for node in graph.graph.nodes:
            if node.op == "call_function":
                names = f"({', '.join(node.kwargs['kwargs'])})" if "kwargs" in node.kwargs else ""
                operation_names.append(str(getattr(node.target, "__name__", node.target)) + names)
        values = [output.meta["val"] for output in graph.graph.output_node().args[0]]
        return make_boxed_func(
            lambda *_: [
                torch.empty(value.shape, dtype=value.dtype, device=x.device) for value in values
            ]
        )

    logger = logging.getLogger("torch._dynamo")
    # without a GPU it warns that it cannot read in the kernel what the kernel writes
    logger.disabled, before = True, logger.disabled
    try:
        torch.compile(
            lambda x: torch.relu(operator(torch.relu(x))),
            backend=aot_autograd(fw_compiler=keep),
            fullgraph=True,
        )(x)
    finally:
        logger.disabled = before
    return operation_names
