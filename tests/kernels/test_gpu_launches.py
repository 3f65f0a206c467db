"""What only a GPU shows of the public functions: CUDA graphs, no compilation when only M changes,
offsets past 2^31 elements."""

from __future__ import annotations

import importlib
import pkgutil

import pytest
import torch

import course_lib
from course_lib import kernels
from course_lib.norms import functional

pytestmark = pytest.mark.skipif(course_lib.MODE != "gpu", reason="compiles and captures on a GPU")
# one for each algorithm of the launch table, and for each kind of line
LENGTHS = [256, 1000, 4096, 4097, 16384, 40000, 262144]


def make(shape, dtype=torch.float16, seed=0, grad=False):
    generator = torch.Generator(device="cuda").manual_seed(seed)
    return torch.randn(shape, device="cuda", dtype=dtype, generator=generator).requires_grad_(grad)


def everything(x, residual, w, b):
    """The four functions, and the gradients of all of them."""
    y = functional.layer_norm(x, w.shape, w, b)
    z = functional.rms_norm(x, w.shape, w, 1e-5)
    u, total = functional.add_rms_norm(x, residual, w.shape, w, 1e-5)
    v, other = functional.add_layer_norm(x, residual, w.shape, w, b)
    return y, z, u, total, v, other


def compiled() -> dict[str, int]:
    """How many versions of each of the course's kernels have been compiled in this process."""
    count = {}
    for module in pkgutil.iter_modules(kernels.__path__):
        for name, value in vars(
            importlib.import_module(f"course_lib.kernels.{module.name}")
        ).items():
            if hasattr(value, "device_caches"):
                count[f"{module.name}.{name}"] = sum(
                    len(caches[0]) for caches in value.device_caches.values()
                )
    return count


@pytest.mark.parametrize("N", LENGTHS)
def test_nothing_is_compiled_when_only_the_number_of_rows_changes(N):
    most = 2**24 // N
    w, b = make(N, seed=1, grad=True), make(N, seed=2, grad=True)

    def run(M: int) -> None:
        x, residual = make((M, N), grad=True), make((M, N), seed=3, grad=True)
        sum(out.float().sum() for out in everything(x, residual, w, b)).backward()

    for M in (3, 16, most):  # long rows have one algorithm for few rows and one for many
        run(M)
    before = compiled()
    assert sum(before.values()) >= 4
    for M in (1, 2, 15, 17, 32, most - 1):
        run(M)
    after = compiled()
    assert after == before, {
        name: (before[name], after[name]) for name in after if before[name] != after[name]
    }


@pytest.mark.parametrize("N", LENGTHS)
def test_cuda_graphs_replay_the_public_functions(N):
    M = 40 if N > 32768 else 300
    x = make((M, N), grad=True)
    residual = make((M, N), seed=1, grad=True)
    w = make(N, seed=2, grad=True)
    b = make(N, seed=3, grad=True)
    leaves, g = (x, residual, w, b), make((M, N), seed=4)

    def step() -> tuple:
        outputs = everything(x, residual, w, b)
        return (
            *outputs,
            *torch.autograd.grad(sum((out * g).float().sum() for out in outputs), leaves),
        )

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    for seed in (5, 6):
        with torch.no_grad():
            x.copy_(make((M, N), seed=seed))
            residual.copy_(make((M, N), seed=seed + 10))
        graph.replay()
        graph.replay()  # the second one finds what the first has left in the scratch memory
        for got, want in zip(captured, step(), strict=True):
            assert torch.equal(got, want)


def test_rows_beyond_two_to_the_31_elements():
    """Past 2^31 elements a 32-bit offset is negative. The rows there must equal those of a small
    matrix, bit for bit."""
    N = 4096
    M = 2**31 // N + 40
    try:
        x = torch.empty((M, N), device="cuda", dtype=torch.float16)
        dy = torch.empty_like(x)
    except torch.cuda.OutOfMemoryError:
        pytest.skip("this GPU has no room for two tensors of 4 GB")
    small, small_dy, w, b = make((40, N)), make((40, N), seed=1), make(N, seed=2), make(N, seed=3)
    x[:] = 1.0
    x[-40:] = small
    dy.zero_()
    dy[-40:] = small_dy
    for norm in (
        lambda t: functional.layer_norm(t, (N,), w, b),
        lambda t: functional.rms_norm(t, (N,), w, 1e-5),
    ):
        leaf = x.detach().requires_grad_()
        y = norm(leaf)
        (dx,) = torch.autograd.grad(y, leaf, dy)
        part = small.detach().requires_grad_()
        want = norm(part)
        (want_dx,) = torch.autograd.grad(want, part, small_dy)
        assert torch.equal(y[-40:], want) and torch.equal(dx[-40:], want_dx)
        assert not dx[:1000].any()
        del y, dx, leaf
