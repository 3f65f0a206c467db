"""The public functions and modules against PyTorch's: values, gradients, errors, OpInfo's samples,
compile, autocast."""

from __future__ import annotations

import contextlib
import copy
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import course_lib
from course_lib.norms import functional, modules, reference

DEVICE = course_lib.DEVICE
SHAPES = [
    ((4, 7), (7,)), ((2, 3, 8), (8,)), ((2, 3, 8), (3, 8)), ((2, 3, 4, 5), (5,)),
    ((2, 3, 4, 5), (3, 4, 5)), ((5,), (5,)),
    ((1, 1), (1,)), ((0, 4), (4,)), ((3, 0, 4), (4,)), ((2, 0), (0,)),
]  # fmt: skip


def make(shape, dtype=torch.float32, seed=0, mean=0.0, grad=True):
    tensor = torch.randn(shape, generator=torch.Generator().manual_seed(seed)) + mean
    return tensor.to(dtype).to(DEVICE).requires_grad_(grad)


def pair(shape, normalized_shape, dtype=torch.float32):
    """The same tensors twice: for ours, for PyTorch's."""
    ours = [
        make(shape, dtype, mean=1.0),
        make(normalized_shape, dtype, 1, 0.5),
        make(normalized_shape, dtype, 2),
    ]
    return ours, [tensor.detach().clone().requires_grad_() for tensor in ours]


def gradients(output, tensors, seed=5):
    (output * make(output.shape, output.dtype, seed, grad=False)).sum().backward()
    return [tensor.grad for tensor in tensors]


def same(got, want, dtype):
    if want is None or want.numel() == 0:
        assert got is None or got.numel() == 0 or not got.any()
        return
    tolerance = {
        torch.float64: 1e-6,
        torch.float32: 1e-4,
        torch.float16: 5e-3,
        torch.bfloat16: 4e-2,
    }[dtype]  # a mean's rounding, times a rstd of 316 where a row is constant
    assert got.dtype == want.dtype and got.shape == want.shape
    scale = want.double().abs().max().clamp(min=1.0)
    assert ((got.double() - want.double()).abs().max() / scale) <= tolerance


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("shape", "normalized_shape"), SHAPES)
def test_layer_norm_is_pytorchs(shape, normalized_shape, dtype):
    ours, theirs = pair(shape, normalized_shape, dtype)
    y = functional.layer_norm(ours[0], normalized_shape, ours[1], ours[2], 1e-4)
    want = F.layer_norm(theirs[0], normalized_shape, theirs[1], theirs[2], 1e-4)
    same(y, want, dtype)
    for got, expected in zip(gradients(y, ours), gradients(want, theirs), strict=True):
        same(got, expected, dtype)


@pytest.mark.parametrize("eps", [None, 1e-3])
@pytest.mark.parametrize(("shape", "normalized_shape"), SHAPES)
def test_rms_norm_is_pytorchs(shape, normalized_shape, eps):
    ours, theirs = pair(shape, normalized_shape)
    y = functional.rms_norm(ours[0], normalized_shape, ours[1], eps)
    want = F.rms_norm(theirs[0], normalized_shape, theirs[1], eps)
    same(y, want, torch.float32)
    for got, expected in zip(gradients(y, ours[:2]), gradients(want, theirs[:2]), strict=True):
        same(got, expected, torch.float32)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_the_fused_addition_is_the_two_steps_gradients_included(dtype):
    ours, theirs = pair((6, 20), (20,), dtype)
    first, other = make((6, 20), dtype, 7), make((6, 20), dtype, 7)
    y, total = functional.add_rms_norm(ours[0], first, (20,), ours[1], 1e-5)
    unfused = theirs[0] + other
    want = functional.rms_norm(unfused, (20,), theirs[1], 1e-5)
    assert torch.equal(total, unfused) and torch.equal(y, want)
    g, h = make((6, 20), dtype, 8, grad=False), make((6, 20), dtype, 9, grad=False)
    (y * g + total * h).sum().backward()
    (want * g + unfused * h).sum().backward()
    for got, expected in (
        (ours[0].grad, theirs[0].grad),
        (first.grad, other.grad),
        (ours[1].grad, theirs[1].grad),
    ):
        same(got, expected, dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_the_addition_before_layer_norm_is_the_two_steps_gradients_included(dtype):
    ours, theirs = pair((6, 20), (20,), dtype)
    first, other = make((6, 20), dtype, 7), make((6, 20), dtype, 7)
    y, total = functional.add_layer_norm(ours[0], first, (20,), ours[1], ours[2])
    unfused = theirs[0] + other
    want = functional.layer_norm(unfused, (20,), theirs[1], theirs[2])
    assert torch.equal(total, unfused) and torch.equal(y, want)
    g, h = make((6, 20), dtype, 8, grad=False), make((6, 20), dtype, 9, grad=False)
    (y * g + total * h).sum().backward()
    (want * g + unfused * h).sum().backward()
    for got, expected in zip(
        [*(t.grad for t in ours), first.grad], [*(t.grad for t in theirs), other.grad], strict=True
    ):
        same(got, expected, dtype)
    assert functional.add_layer_norm(make((0, 4)), make((0, 4)), (4,))[0].shape == (0, 4)


ADDED = {
    "rms": lambda x, r, w, b, **options: functional.add_rms_norm(
        x, r, x.shape[-1:], w, 1e-5, **options
    ),
    "layer": lambda x, r, w, b, **options: functional.add_layer_norm(
        x, r, x.shape[-1:], w, b, **options
    ),
}
VJPS = {"rms": reference.rms_norm_vjp, "layer": reference.layer_norm_vjp}


@pytest.mark.parametrize("way", ["eager", "operator"])
@pytest.mark.parametrize("name", ADDED)
def test_the_sum_of_a_residuals_gradients_is_rounded_once(name, way):
    """dx and the next layer's gradient nearly cancel: two roundings are off by more than one."""
    x, r = make((8, 64), torch.bfloat16), make((8, 64), torch.bfloat16, 1)
    w, b = make(64, torch.bfloat16, 2, 0.5), make(64, torch.bfloat16, 3)
    g = make((8, 64), torch.bfloat16, 4, grad=False)
    exact = VJPS[name](g, (x + r).detach(), w.detach(), 1e-5).dx
    h = torch.from_numpy(-exact).to(DEVICE).to(torch.bfloat16)
    with contextlib.nullcontext() if way == "eager" else _Seen():
        y, total = ADDED[name](x, r, w, b)
        dx, dr = torch.autograd.grad((y * g).sum() + (total * h).sum(), (x, r))
    want = exact + reference.float64(h)
    error = np.abs(reference.float64(dx) - want)
    assert torch.equal(dx, dr) and (error <= 2.0**-8 * np.abs(want) + 128 * 2.0**-24 * 8).all()


@pytest.mark.parametrize("name", ADDED)
def test_an_output_that_the_loss_does_not_use_has_no_gradient(name):
    leaves = [make((6, 20)), make((6, 20), seed=1), make(20, seed=2), make(20, seed=3)]
    used = leaves[: 3 if name == "rms" else 4]
    g = make((6, 20), seed=4, grad=False)
    y, total = ADDED[name](*leaves)
    only_total = torch.autograd.grad((total * g).sum(), used, allow_unused=True)
    assert all(torch.equal(gradient, g) for gradient in only_total[:2])
    assert only_total[2:] == (None,) * (len(used) - 2)
    y, total = ADDED[name](*leaves)
    only_y = torch.autograd.grad((y * g).sum(), used)
    y, total = ADDED[name](*leaves)
    both = torch.autograd.grad((y * g).sum() + (total * 0).sum(), used)
    assert all(torch.equal(one, other) for one, other in zip(only_y, both, strict=True))


def test_gradients_of_frozen_weights_are_not_computed(monkeypatch):
    asked = []
    for norm in ("layer_norm", "rms_norm"):
        original = getattr(functional, f"{norm}_backward")

        def watch(*arguments, original=original, **options):
            asked.append([options["needs_dw"], options.get("needs_db")])
            return original(*arguments, **options)

        monkeypatch.setattr(functional, f"{norm}_backward", watch)
    x, frozen = make((3, 5)), make(5, seed=1, grad=False)
    functional.layer_norm(x, (5,), frozen, make(5, seed=2)).sum().backward()
    functional.layer_norm(x, (5,), make(5, seed=1)).sum().backward()
    functional.rms_norm(x, (5,)).sum().backward()
    functional.add_layer_norm(x, x, (5,))[0].sum().backward()
    assert asked == [[False, True], [True, False], [False, None], [False, False]]


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "add_layer_norm", "add_rms_norm"])
def test_the_results_dtype_is_that_of_a_cast_before(name):
    """As under autocast: fp16 in, fp32 out, from one kernel, and the gradients of fp16 leaves."""
    n = (20,)
    ours, cast = pair((6, 20), n, torch.float16)
    first = [make((6, 20), torch.float16, 7)] if name.startswith("add") else []
    other = [tensor.detach().clone().requires_grad_() for tensor in first]
    weights = (lambda w, b: (w, b)) if "layer" in name else (lambda w, b: (w,))
    norm = getattr(functional, name)
    y = norm(ours[0], *first, n, *weights(*ours[1:]), 1e-5, dtype=torch.float32)
    source = cast[0] + other[0] if other else cast[0]  # in fp16
    base = getattr(functional, name.removeprefix("add_"))
    want = base(source.float(), n, *(w.float() for w in weights(*cast[1:])), 1e-5)
    y = y[0] if other else y

    def equal(got, expected):
        """Equal bits; on a GPU another kernel adds the residual, and adds up in another order."""
        within = {torch.float32: 1e-5, torch.float16: 2e-3}[got.dtype]
        return torch.equal(got, expected) or (
            course_lib.MODE == "gpu" and torch.allclose(got, expected, rtol=within, atol=within)
        )

    assert y.dtype == torch.float32 and equal(y, want)
    for got, expected in zip(
        gradients(y, [ours[0], *weights(*ours[1:])]),
        gradients(want, [cast[0], *weights(*cast[1:])]),
        strict=True,
    ):
        assert got.dtype == torch.float16 and equal(got, expected)
    nothing = norm(ours[0][:0], *(t[:0] for t in first), n, dtype=torch.float32)
    assert (nothing[0] if first else nothing).dtype == torch.float32
    with pytest.raises(NotImplementedError, match=r"for a result of torch\.int8"):
        norm(ours[0], *first, n, dtype=torch.int8)


def test_under_autocast_on_a_gpu_layer_norm_returns_fp32(monkeypatch):
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda device: device == "cuda")
    for dtype, is_cuda, want in [
        (torch.bfloat16, True, torch.float32), (torch.float64, True, torch.float64),
        (torch.bfloat16, False, torch.bfloat16),
    ]:  # fmt: skip
        input = SimpleNamespace(dtype=dtype, is_cuda=is_cuda)
        assert functional._choose_autocast_dtype(input) == want


def test_eps_left_out_is_that_of_the_arithmetic_not_of_the_storage():
    x = 1e-3 * make((2, 8), torch.float16, grad=False)
    same(functional.rms_norm(x, (8,)), F.rms_norm(x, (8,)), torch.float16)


def test_parameters_of_other_dtypes_and_an_expanded_gradient():
    x, w, b = make((4, 9), torch.float16), make(9, torch.float32, 1), make(9, torch.bfloat16, 2)
    functional.layer_norm(x, (9,), w, b).sum().backward()  # sum's gradient is one number, expanded
    assert (x.grad.dtype, w.grad.dtype, b.grad.dtype) == (
        torch.float16,
        torch.float32,
        torch.bfloat16,
    )
    assert torch.equal(b.grad, torch.full((9,), 4.0, dtype=torch.bfloat16, device=DEVICE))


@pytest.mark.parametrize("layout", ["transposed", "every other column", "expanded", "permuted"])
def test_any_strides(layout):
    base = make((6, 8, 10), grad=False)
    x = {
        "transposed": base[0].t(), "every other column": base[..., ::2],
        "expanded": base[:1].expand(5, 8, 10), "permuted": base.permute(2, 0, 1),
    }[layout]  # fmt: skip
    n = x.shape[-1:]
    same(functional.layer_norm(x, n), F.layer_norm(x, n), torch.float32)
    same(functional.rms_norm(x, n), F.rms_norm(x, n), torch.float32)


def test_only_the_gradients_asked_for():
    x, w, b = make((3, 5), grad=False), make(5, seed=1), make(5, seed=2, grad=False)
    functional.layer_norm(x, (5,), w, b).sum().backward()
    assert w.grad is not None and x.grad is None and b.grad is None


def refusals():
    x = torch.randn(3, 4)
    yield "another size", (x, (3,)), RuntimeError
    yield "no dimensions", (x, ()), RuntimeError
    yield "a weight too short", (x, (4,), torch.ones(3)), RuntimeError
    yield "an integer input", (x.long(), (4,)), NotImplementedError
    yield "a bare int", (x, 4), TypeError
    yield "no tensor", ([1.0], (1,)), TypeError
    yield "another device", (x, (4,), torch.ones(4, device="meta")), RuntimeError


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize(
    ("arguments", "error"), [pytest.param(a, e, id=i) for i, a, e in refusals()]
)
def test_what_pytorch_refuses_is_refused_with_the_same_error(name, arguments, error):
    with pytest.raises(error):
        getattr(F, name)(*arguments)
    with pytest.raises(error) as refused:
        getattr(functional, name)(*arguments)
    assert len(str(refused.value)) > 20


def test_the_words_are_pytorchs_where_it_has_good_ones():
    for arguments in [
        (torch.randn(3, 4), (3,)),
        (torch.randn(3, 4), ()),
        (torch.randn(3, 4), (4,), torch.ones(3)),
    ]:
        with pytest.raises(RuntimeError) as theirs:
            F.layer_norm(*arguments)
        with pytest.raises(RuntimeError) as ours:
            functional.layer_norm(*arguments)
        assert str(ours.value) == str(theirs.value)


def test_residual_and_input_must_agree():
    with pytest.raises(RuntimeError, match="Expected residual to be as input"):
        functional.add_rms_norm(make((3, 4)), make((3, 4), torch.float16), (4,))
    with pytest.raises(RuntimeError, match="Expected residual to be as input"):
        functional.add_layer_norm(make((3, 4)), make((2, 4)), (4,))


NORMS = {
    "layer_norm": (lambda n, x, w, b: n.layer_norm(x, (6,), w, b), lambda x, w,
        b: F.layer_norm(x, (6,), w, b)),
    "layer_norm_bare": (lambda n, x, w, b: n.layer_norm(x, (6,)), lambda x, w,
        b: F.layer_norm(x, (6,))),
    "rms_norm": (lambda n, x, w, b: n.rms_norm(x, (6,), w, 1e-3), lambda x, w,
        b: F.rms_norm(x, (6,), w, 1e-3)),
    "add_rms_norm": (lambda n, x, w, b: sum(n.add_rms_norm(x, x * x, (6,), w, 1e-3)), lambda x, w,
        b: F.rms_norm(x + x * x, (6,), w, 1e-3) + x + x * x),
    "add_layer_norm": (lambda n, x, w, b: sum(n.add_layer_norm(x, x * x, (6,), w, b)), lambda x, w,
        b: F.layer_norm(x + x * x, (6,), w, b) + x + x * x),
    "rms_norm_offset": (lambda n, x, w, b: n.rms_norm(x, (6,), w, 1e-3, weight_offset=1.0),
        lambda x, w, b: F.rms_norm(x, (6,), 1 + w, 1e-3)),
    "add_layer_norm_offset": (lambda n, x, w, b: sum(n.add_layer_norm(x, x * x, (6,), w, b,
        weight_offset=-0.5)), lambda x, w,
        b: F.layer_norm(x + x * x, (6,), w - 0.5, b) + x + x * x),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "add_layer_norm", "add_rms_norm"])
def test_an_offset_is_added_to_the_weight_in_fp32(name, dtype):
    """Equal bits to a weight in fp32 that has it already, gradients included: 1 + w in fp16 would
    lose the digits of a small w."""
    x, r = make((6, 20), dtype), make((6, 20), dtype, 1)
    w, b = make(20, torch.float32, 2), make(20, dtype, 3)
    with torch.no_grad():
        w *= 1e-3
    whole = (w.detach() + 1).requires_grad_()
    first = (r,) if name.startswith("add") else ()

    def run(weight, **options):
        rest = (weight, b, 1e-5) if "layer" in name else (weight, 1e-5)
        out = getattr(functional, name)(x, *first, (20,), *rest, **options)
        loss = sum((y.float() ** 2).sum() for y in (out if first else (out,)))
        return out[0] if first else out, *torch.autograd.grad(loss, (x, *first, weight))

    for got, want in zip(run(w, weight_offset=1.0), run(whole), strict=True):
        assert torch.equal(got, want)
    half = run(w.detach().to(torch.float16).requires_grad_(), weight_offset=1)
    assert torch.equal(half[0], run(w.detach().half().float().requires_grad_(), weight_offset=1)[0])
    bare = getattr(functional, name)(x, *first, (20,), weight_offset=1.0)
    same(bare[0], getattr(functional, name)(x, *first, (20,))[0], dtype)


def differentiate_twice(norm, dtype, loss_of):
    """A gradient penalty: the gradients, and the gradients of the sum of their squares. x has other
    ways to the loss than the norm."""
    leaves = [make(shape, dtype, seed, 0.5) for seed, shape in enumerate([(2, 3, 6), (6,), (6,)])]
    # PyTorch's own gradients overflow in fp16 otherwise
    g = make((2, 3, 6), dtype, 7, grad=False) / 8
    first = torch.autograd.grad(
        loss_of(leaves[0] + norm(*leaves), leaves[0], g),
        leaves,
        create_graph=True,
        allow_unused=True,
    )
    penalty = sum(gradient.double().square().sum() for gradient in first if gradient is not None)
    return [*first, *torch.autograd.grad(penalty, leaves, allow_unused=True)]


@pytest.mark.parametrize("way", ["eager", "operator"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
@pytest.mark.parametrize("name", NORMS)
def test_a_second_derivative_is_pytorchs(name, dtype, way):
    ours, theirs = NORMS[name]

    def norm(*leaves):
        with contextlib.nullcontext() if way == "eager" else _Seen():
            return ours(functional, *leaves)

    # with the second loss no dy requires a gradient, and the gradients depend on x all the same
    for loss_of in (
        lambda y, x, g: (y * y * g).sum(),
        lambda y, x, g: (y * g).sum() + (x * x).sum(),
    ):
        for got, want in zip(
            differentiate_twice(norm, dtype, loss_of),
            differentiate_twice(theirs, dtype, loss_of),
            strict=True,
        ):
            same(got, want, dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
@pytest.mark.parametrize("name", NORMS)
def test_forward_mode_is_pytorchs(name, dtype):
    ours, theirs = NORMS[name]
    leaves = tuple(
        make(shape, dtype, seed, 0.5, grad=False)
        for seed, shape in enumerate([(2, 3, 6), (6,), (6,)])
    )
    tangents = tuple(
        make(leaf.shape, dtype, seed, grad=False) for seed, leaf in enumerate(leaves, 8)
    )
    got = torch.func.jvp(lambda *a: ours(functional, *a), leaves, tangents)
    for a, e in zip(got, torch.func.jvp(theirs, leaves, tangents), strict=True):
        assert a.dtype == dtype
        # on a GPU PyTorch 2.11 gives the tangent of fp16 in fp32
        same(a, e.to(dtype), dtype)
    with torch.autograd.forward_ad.dual_level():
        duals = [
            torch.autograd.forward_ad.make_dual(leaf, tangent)
            for leaf, tangent in zip(leaves, tangents, strict=True)
        ]
        same(torch.autograd.forward_ad.unpack_dual(ours(functional, *duals)).tangent, got[1], dtype)


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", NORMS)
def test_transforms_of_torch_func_give_what_pytorchs_norm_gives(name, compiled):
    func = torch.func
    w = make(6, torch.float64, 1, 0.5, grad=False)
    b = make(6, torch.float64, 2, grad=False)
    x = make((3, 2, 6), torch.float64, grad=False)

    def transform(norm):
        def loss(x):
            return norm(x, w, b).pow(3).sum()

        ways = [
            func.grad(loss), func.vmap(func.grad(loss)), func.vmap(lambda x: norm(x, w, b)),
            func.jacrev(lambda x: norm(x, w, b)),
            func.hessian(loss), lambda x: func.jvp(func.grad(loss), (x,), (x,))[1],
        ]  # fmt: skip
        return lambda x: [way(x) for way in ways]

    ours, theirs = NORMS[name]
    run = transform(lambda x, w, b: ours(functional, x, w, b))
    for got, want in zip(
        (torch.compile(run, backend="aot_eager") if compiled else run)(x),
        transform(theirs)(x),
        strict=True,
    ):
        same(got, want, torch.float64)


@pytest.mark.slow
def test_gradgradcheck_in_double():
    x, r, w, b = (make(s, torch.float64, i) for i, s in enumerate([(3, 6), (3, 6), (6,), (6,)]))
    fast = {"fast_mode": True}
    assert torch.autograd.gradgradcheck(
        lambda *a: functional.layer_norm(a[0], (6,), a[1], a[2]), (x, w, b), **fast
    )
    assert torch.autograd.gradgradcheck(
        lambda *a: functional.add_rms_norm(a[0], a[1], (6,), a[2], 1e-3), (x, r, w), **fast
    )


@pytest.mark.slow
def test_gradcheck_in_double():
    x, r, w, b = (make(s, torch.float64, i) for i, s in enumerate([(3, 6), (3, 6), (6,), (6,)]))
    fast = {"fast_mode": True}
    assert torch.autograd.gradcheck(
        lambda *a: functional.layer_norm(a[0], (6,), a[1], a[2]), (x, w, b), **fast
    )
    assert torch.autograd.gradcheck(
        lambda *a: functional.rms_norm(a[0], (6,), a[1], 1e-3), (x, w), **fast
    )
    assert torch.autograd.gradcheck(
        lambda *a: functional.add_rms_norm(a[0], a[1], (6,), a[2], 1e-3, weight_offset=1.0),
        (x, r, w),
        **fast,
    )
    assert torch.autograd.gradcheck(
        lambda *a: functional.add_layer_norm(a[0], a[1], (6,), a[2], a[3]), (x, r, w, b), **fast
    )
    assert torch.autograd.gradcheck(
        lambda *a: functional.add_layer_norm(a[0], a[1], (6,), w.detach()), (x, r), **fast
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "add_rms_norm", "add_layer_norm"])
def test_opcheck(name):
    x, w = make((3, 4)), make(4, seed=1)
    operator = getattr(functional, f"_{name}")
    arguments = {
        "layer_norm": (x, w, make(4, seed=2), 1e-5, torch.float32, 1.0),
        "rms_norm": (x, None, 1e-5, torch.float16, 0.0),
        "add_rms_norm": (x, make((3, 4), seed=3), w, 1e-5, torch.float32, 1.0),
        "add_layer_norm": (x, make((3, 4), seed=3), w, None, 1e-5, torch.bfloat16, 0.0),
    }[name]
    assert set(torch.library.opcheck(operator, arguments).values()) == {"SUCCESS"}


@pytest.mark.slow
def test_torch_compile_sees_one_graph():
    def block(x, w, b):
        return functional.layer_norm(torch.relu(x), (8,), w, b, weight_offset=1.0) * 2

    x, w, b = make((2, 3, 8)), make(8, seed=1), make(8, seed=2)
    compiled = torch.compile(block, fullgraph=True, backend="aot_eager", dynamic=True)
    for rows in (2, 5):
        x = make((rows, 3, 8), seed=rows)
        same(compiled(x, w, b), block(x, w, b), torch.float32)
        got = torch.autograd.grad(compiled(x, w, b).pow(2).sum(), (x, w, b))
        want = torch.autograd.grad(block(x, w, b).pow(2).sum(), (x, w, b))
        for a, e in zip(got, want, strict=True):
            same(a, e, torch.float32)


@pytest.mark.slow
@pytest.mark.parametrize("name", ADDED)
def test_a_compiled_block_with_a_residual_gives_the_eager_gradients(name):
    def block(x, r, w, b):
        y, total = ADDED[name](torch.relu(x), r, w, b, dtype=torch.float32)
        return (y * y).sum() + (total * 3).float().sum()

    x, r = make((6, 20), torch.float16), make((6, 20), torch.float16, 1)
    w, b = make(20, torch.float16, 2, grad=False), make(20, torch.float16, 3)
    leaves = (x, r) if name == "rms" else (x, r, b)
    compiled = torch.compile(block, fullgraph=True, backend="aot_eager")
    for got, want in zip(
        torch.autograd.grad(compiled(x, r, w, b), leaves),
        torch.autograd.grad(block(x, r, w, b), leaves),
        strict=True,
    ):
        same(got, want, torch.float16)


class _Seen(torch.utils._python_dispatch.TorchDispatchMode):
    """The names of the operators that are called."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(function.name())
        return function(*args, **(kwargs or {}))


def test_whoever_watches_operators_sees_ours_and_fake_tensors_stay_fake():
    x, w = make((3, 8)), make(8, seed=1)
    with _Seen() as seen:
        watched = functional.layer_norm(x, (8,), w)
    assert "course::layer_norm" in seen.names and torch.equal(
        watched, functional.layer_norm(x, (8,), w)
    )
    with torch._subclasses.fake_tensor.FakeTensorMode() as mode:
        fake = functional.rms_norm(mode.from_tensor(x), (8,), mode.from_tensor(w))
    assert type(fake).__name__ == "FakeTensor" and fake.shape == x.shape


def test_autocast_does_what_it_does_to_pytorchs_norm():
    x, w = make((3, 8), torch.bfloat16, grad=False), make(8, torch.bfloat16, 1, grad=False)
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        assert functional.layer_norm(x, (8,), w).dtype == F.layer_norm(x, (8,), w).dtype
        assert functional.rms_norm(x, (8,), w).dtype == F.rms_norm(x, (8,), w).dtype
        offset = functional.rms_norm(x, (8,), w, weight_offset=1.0)
        assert torch.equal(offset, functional.rms_norm(x, (8,), w.float() + 1))


# ---- modules -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs", "options"),
    [
        (modules.LayerNorm, torch.nn.LayerNorm, {"eps": 1e-3}),
        (modules.LayerNorm, torch.nn.LayerNorm, {"bias": False}),
        (modules.LayerNorm, torch.nn.LayerNorm, {"elementwise_affine": False}),
        (modules.RMSNorm, torch.nn.RMSNorm, {}),
        (modules.RMSNorm, torch.nn.RMSNorm, {"eps": 1e-2, "elementwise_affine": False}),
    ],
)
def test_a_module_takes_pytorchs_weights_and_gives_its_values(ours, theirs, options):
    original = theirs((3, 5), **options, device=DEVICE)
    for parameter in original.parameters():
        torch.nn.init.normal_(parameter)
    module = ours((3, 5), **options, device=DEVICE)
    assert not any(module.load_state_dict(original.state_dict()))
    assert not any(copy.deepcopy(original).load_state_dict(module.state_dict()))
    x = make((4, 3, 5), grad=False)
    same(module(x), original(x), torch.float32)
    assert repr(module) == repr(original)


@pytest.mark.parametrize("name", ["LayerNorm", "RMSNorm"])
def test_a_new_module_with_an_offset_scales_by_one(name):
    plain, module = (
        getattr(modules, name)(6, device=DEVICE, **options)
        for options in ({}, {"weight_offset": 1})
    )
    x = make((2, 6), grad=False)
    assert not module.weight.any() and torch.equal(module(x), plain(x))
    torch.nn.init.normal_(module.weight)
    plain.load_state_dict(module.state_dict() | {"weight": module.weight + 1})
    assert torch.equal(module(x), plain(x))
    assert repr(module) == repr(plain)[:-1] + ", weight_offset=1)"
    assert getattr(modules, name)(6, weight_offset=1, elementwise_affine=False)(x).shape == (2, 6)


def test_the_fused_module():
    module = modules.AddRMSNorm(6, device=DEVICE)
    x, r = make((2, 6), grad=False), make((2, 6), seed=1, grad=False)
    y, total = module(x, r)
    same(y, F.rms_norm(x + r, (6,), module.weight), torch.float32)
    assert torch.equal(total, x + r)
    assert torch.equal(y, modules.AddRMSNorm(6, weight_offset=1.0, device=DEVICE)(x, r)[0])


# ---- PyTorch's own samples -----------------------------------------------------------------------


def samples(name, dtype):
    pytest.importorskip(
        "expecttest", reason="PyTorch's OpInfo samples need expecttest; `make env` installs it"
    )
    from torch.testing._internal.common_methods_invocations import op_db

    (info,) = [op for op in op_db if op.name == f"nn.functional.{name}"]
    return list(info.sample_inputs(DEVICE, dtype, requires_grad=True)), (
        list(info.error_inputs(DEVICE)) if info.error_inputs_func else []
    )


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_pytorchs_own_samples(name, dtype):
    """All of OpInfo's samples, values and gradients. Left out: nothing but its reference checks in
    float64 NumPy."""
    good, bad = samples(name, dtype)
    assert len(good) >= 6
    for sample in good:
        tensors = [
            t
            for t in (sample.input, *sample.args, *sample.kwargs.values())
            if isinstance(t, torch.Tensor) and t.requires_grad
        ]
        got, want = (
            getattr(module, name)(sample.input, *sample.args, **sample.kwargs)
            for module in (functional, F)
        )
        same(got, want, dtype)
        if not want.requires_grad or want.numel() == 0:
            continue
        # a negative eps makes NaN in both: the same elements, no numbers to compare
        if want.isnan().any():
            continue
        direction = make(want.shape, want.dtype, 3, grad=False)
        ours, theirs = (
            torch.autograd.grad((y * direction).sum(), tensors, allow_unused=True)
            for y in (got, want)
        )
        for a, e in zip(ours, theirs, strict=True):
            same(a, e, dtype)
    for wrong in bad:
        with pytest.raises(wrong.error_type):
            getattr(functional, name)(
                wrong.sample_input.input, *wrong.sample_input.args, **wrong.sample_input.kwargs
            )
