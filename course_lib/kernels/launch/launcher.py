"""Launches a kernel again without Triton's binder: the compiled kernel is kept, with what it was compiled for.

``kernel[grid](...)`` looks at every argument and every option, writes both into a text, and looks that text up: most of
what a small call costs the host. Here the constexprs and options are given once, so a call compares its arguments alone.

Source: triton/runtime/jit.py (``JITFunction.run``) and triton/compiler/compiler.py (``CompiledKernel``) of Triton 3.6 and 3.7:
the arguments of ``CompiledKernel.run`` are theirs.
"""

from __future__ import annotations

import functools
import inspect
from operator import itemgetter
from typing import Any

import torch
from triton import knobs
from triton.runtime.jit import JITFunction

_ALIGNED = 16  # bytes: Triton compiles another kernel for a pointer that is no multiple of it
_WIDE = 31  # bits: Triton passes an int of up to so many as 32 bits, and a longer one as 64
_MOST = 1024  # sets of arguments that are remembered, before all are forgotten


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **options: Any) -> None:
    """``kernel[grid](*arguments, **options)``, in less of the host's time from the second call on.

    A call goes to Triton's own launch, which compiles where it has to, if its arguments are new, if a pointer is not aligned, if
    somebody watches launches by a hook, and in the interpreter.

    Args:
        kernel: a ``triton.jit`` function whose parameters are pointers, then numbers, then constexprs.
        grid: programs along one, two or three axes.
        options: a value for every constexpr that has no default, and num_warps, maxnreg or launch_pdl.
    """
    _find_launcher(kernel, **options)(grid, *arguments)


class _Launcher:
    """A kernel with its constexprs and launch options, and what was compiled of it."""

    def __init__(self, kernel: Any, **options: Any):
        self._kernel = kernel
        self._options = options
        self._known: dict[tuple, Any] = {}
        self._direct = isinstance(kernel, JITFunction)
        if not self._direct:
            return
        parameters = kernel.params
        runtime = [p for p in parameters if not p.is_constexpr]
        assert parameters[: len(runtime)] == runtime, f"{kernel.__name__} has a constexpr before its last argument"
        self._pointers = sum(p.name.endswith("_ptr") for p in runtime)
        assert all(p.name.endswith("_ptr") for p in runtime[: self._pointers]), (
            f"{kernel.__name__} mixes pointers and numbers"
        )
        numbers = runtime[self._pointers :]
        # Triton compiles another kernel for a 1 and for a multiple of 16, and not for any value of the others
        self._others = tuple(number for number, p in enumerate(numbers) if p.do_not_specialize)
        given = tuple(number for number, p in enumerate(numbers) if not p.do_not_specialize)
        self._specialised = itemgetter(*given) if given else lambda numbers: ()
        self._constexprs = tuple(
            options.get(p.name, None if p.default is inspect.Parameter.empty else p.default)
            for p in parameters[len(runtime) :]
        )  # the launch skips them, but it counts them

    def __call__(self, grid: tuple[int, ...], *arguments: Any) -> None:
        if (
            not self._direct or self._kernel.pre_run_hooks or _is_watched()
        ):  # the interpreter's kernels have no such list
            self._kernel[grid](*arguments, **self._options)
            return
        tensors, numbers = arguments[: self._pointers], arguments[self._pointers :]
        addresses = [tensor.data_ptr() for tensor in tensors]
        together = 0
        for address in addresses:
            together |= address
        device = torch.cuda.current_device()
        key = (
            device,
            *[tensor.dtype for tensor in tensors],
            *[tensor.get_device() for tensor in tensors],  # -1 for a tensor in the host's memory, which Triton refuses
            *[numbers[number] >> _WIDE for number in self._others],
            self._specialised(numbers),
        )
        compiled = self._known.get(key)
        if together % _ALIGNED:
            self._kernel[grid](*arguments, **self._options)
        elif compiled is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[key] = self._kernel[grid](*arguments, **self._options)
        else:
            x, y, z = (*grid, 1, 1)[:3]
            compiled.run(
                x, y, z, torch._C._cuda_getCurrentRawStream(device), compiled.function, compiled.packed_metadata,
                None, None, None, *addresses, *numbers, *self._constexprs,
            )  # fmt: skip


_find_launcher = functools.cache(_Launcher)


def _is_watched() -> bool:
    """Whether a profiler or a test has put a hook on launches: Triton's own launch calls it."""
    runtime = knobs.runtime
    enter, leave = runtime.launch_enter_hook, runtime.launch_exit_hook
    return bool(getattr(enter, "calls", enter)) or bool(getattr(leave, "calls", leave))
