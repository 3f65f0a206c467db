"""A launch that skips Triton's binder: it is the launch that Triton would have made, or Triton
makes it."""

from __future__ import annotations

import inspect
from types import SimpleNamespace

import pytest
import torch
from triton import knobs

import course_lib
from course_lib.kernels.launch import launcher

N = 64


class Launch:
    """The launch of a compiled kernel, as Triton 3.6 has it."""

    def __init__(self, runs):
        self.runs = runs

    def __call__(self, gridX, gridY, gridZ, stream, function, *args):
        self.runs.append((gridX, gridY, gridZ, stream, function, *args))


class Launch37(Launch):
    def __call__(
        self, gridX, gridY, gridZ, stream, function, kernel_metadata, launch_metadata,
        launch_enter_hook, launch_exit_hook, *args,
    ):  # fmt: skip
        hooks = launch_enter_hook, launch_exit_hook
        grid = gridX, gridY, gridZ
        self.runs.append((*grid, stream, function, kernel_metadata, launch_metadata, *hooks, *args))


class OtherLaunch(Launch):
    def __call__(self, gridX, gridY, gridZ, device, stream, function, *args):
        raise AssertionError("its arguments have another order")


class Compiled:
    function, packed_metadata = "function", "metadata"
    launch: type[Launch] = Launch

    def __init__(self, runs):
        self.run = self.launch(runs)


class Kernel:
    """Stands for a ``triton.jit`` function of a GPU: remembers what went through Triton's own
    launch."""

    __name__ = "kernel"

    def __init__(self, *names: str):
        self.params = [
            SimpleNamespace(
                name=name,
                is_constexpr=name.isupper() and len(name) > 1,
                do_not_specialize=name == "M",
                default=7 if name == "STAGES" else inspect.Parameter.empty,
            )
            for name in names
        ]
        self.pre_run_hooks: list = []
        self.bound: list = []
        self.direct: list = []

    def __getitem__(self, grid):
        def run(*arguments, **options):
            self.bound.append((grid, arguments, options))
            return Compiled(self.direct)

        return run


@pytest.fixture
def kernel(monkeypatch):
    monkeypatch.setattr(launcher, "JITFunction", Kernel)
    monkeypatch.setattr(torch._C, "_cuda_getDevice", lambda: 0, raising=False)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: 11, raising=False)
    return Kernel("x_ptr", "y_ptr", "stride", "M", "N", "eps", "BLOCK", "STAGES")


def make(dtype=torch.float16, offset=0):
    return torch.zeros(N + offset, dtype=dtype)[offset:]


def run(kernel, x, y, M=3, n=N, eps=1e-5, grid=(4,), **options):
    before = len(kernel.bound), len(kernel.direct)
    launcher.launch(kernel, grid, x, y, 1, M, n, eps, **({"BLOCK": 64, "num_warps": 4} | options))
    after = len(kernel.bound), len(kernel.direct)
    return {(1, 0): "triton", (0, 1): "direct"}[after[0] - before[0], after[1] - before[1]]


def test_the_second_call_is_launched_directly_with_the_same_arguments(kernel):
    x, y = make(), make()
    assert run(kernel, x, y) == "triton" and kernel.bound == [
        ((4,), (x, y, 1, 3, N, 1e-5), {"BLOCK": 64, "num_warps": 4})
    ]
    assert run(kernel, x, y, grid=(5, 6)) == "direct"
    (arguments,) = kernel.direct
    assert arguments[:9] == (5, 6, 1, 11, "function", "metadata", None, None, None)
    assert arguments[9:] == (x.data_ptr(), y.data_ptr(), 1, 3, N, 1e-5, 64, 7), (
        "constexprs too, in the kernel's order"
    )


@pytest.mark.parametrize("launch", [Launch37, OtherLaunch])
def test_a_launch_with_other_parameters_is_left_to_triton(kernel, monkeypatch, launch):
    monkeypatch.setattr(Compiled, "launch", launch)
    x, y = make(), make()
    assert run(kernel, x, y) == "triton"
    assert run(kernel, x, y) == ("direct" if launch is Launch37 else "triton")


def test_the_installed_tritons_launch_is_one_of_those_that_are_known():
    """If it is not, calls cost as much host time as Triton's own: name its parameters in
    launcher.py, after a look at what they are."""
    driver = pytest.importorskip("triton.backends.nvidia.driver")
    assert launcher._is_known_launch(driver.CudaLauncher)


def test_what_triton_would_compile_anew_goes_to_triton(kernel):
    x, y = make(), make()
    run(kernel, x, y)
    assert run(kernel, x, y, M=4) == "direct", "M is not specialised"
    assert run(kernel, make(), make(), M=2**31 - 1) == "direct"
    assert run(kernel, x, y, M=2**31) == "triton", "64 bits and not 32"
    assert run(kernel, x, y, n=N + 1) == "triton"
    assert run(kernel, make(torch.float32), y) == "triton"
    assert run(kernel, x, y, BLOCK=128) == "triton" and run(kernel, x, y, num_warps=8) == "triton"
    assert run(kernel, x, y) == "direct", "the first one is still known"


def test_a_pointer_that_is_not_aligned_goes_to_triton_each_time(kernel):
    x, y = make(), make()
    run(kernel, x, y)
    assert run(kernel, make(offset=1), y) == "triton" == run(kernel, make(offset=1), y)
    assert run(kernel, make(offset=8), y) == "direct"


def test_hooks_and_wrappers_see_every_launch(kernel, monkeypatch):
    x, y = make(), make()
    run(kernel, x, y)
    kernel.pre_run_hooks.append(print)
    assert run(kernel, x, y) == "triton"
    kernel.pre_run_hooks.clear()
    monkeypatch.setattr(knobs.runtime, "launch_enter_hook", lambda metadata: None)
    assert run(kernel, x, y) == "triton"
    monkeypatch.setattr(knobs.runtime, "launch_enter_hook", None)
    assert run(kernel, x, y) == "direct"


def test_what_is_remembered_has_an_end(kernel, monkeypatch):
    monkeypatch.setattr(launcher, "_MOST", 3)
    x, y = make(), make()
    for n in range(1, 9):
        assert run(kernel, x, y, n=n) == "triton"
    assert len(launcher._find_launcher(kernel, BLOCK=64, num_warps=4)._known) <= 3


def test_a_kernel_in_another_order_is_refused(kernel):
    with pytest.raises(AssertionError, match="has a constexpr before its last argument"):
        launcher.launch(Kernel("x_ptr", "BLOCK", "N"), (1,), make(), 4, BLOCK=4)
    with pytest.raises(AssertionError, match="mixes pointers and numbers"):
        launcher.launch(Kernel("N", "x_ptr", "BLOCK"), (1,), 4, make(), BLOCK=4)


@pytest.mark.skipif(course_lib.MODE != "cpu", reason="in CPU mode the interpreter launches")
def test_the_interpreters_kernels_are_launched_as_they_are():
    seen = []

    class Interpreted:
        def __getitem__(self, grid):
            return lambda *arguments, **options: seen.append((grid, arguments, options))

    launcher.launch(Interpreted(), (2,), "x", BLOCK=8)
    assert seen == [((2,), ("x",), {"BLOCK": 8})]
