"""Launch a kernel repeatedly without Triton's binder. Compiled kernels are cached by the properties
they were compiled for.

``kernel[grid](...)`` inspects every argument and every option, writes both into a text, and looks
that text up. That is most of the host time of a small call. Here the constexprs and options are
fixed per launcher, so a call compares only its arguments.

``CompiledKernel.run`` is private to Triton. Its parameters are looked up once per kernel; if they
have other names than those of Triton 3.6 and 3.7, every call is Triton's own.

Source: triton/runtime/jit.py (``JITFunction.run``) and triton/compiler/compiler.py
(``CompiledKernel``) of Triton 3.6 and 3.7, which define the arguments of ``CompiledKernel.run``.
"""

from __future__ import annotations

import functools
import inspect
from operator import attrgetter, itemgetter, or_
from typing import Any

import torch
from torch import Tensor
from triton import knobs
from triton.runtime.jit import JITFunction

_ALIGNED = 16  # bytes: Triton compiles another kernel for a pointer that is not a multiple of this
# Triton passes an int of more than this many bits as 64 bits, and a smaller one as 32 bits
_WIDE = 31
_MOST = 1024  # size of the cache of compiled kernels; when it is full it is cleared
_read_dtype = attrgetter("dtype")
_GRID = ("gridX", "gridY", "gridZ", "stream", "function")
# the parameters of a compiled kernel's launch, in Triton 3.7 and in 3.6, whose args begin with the
# same four
_KNOWN_LAUNCHES = (
    (*_GRID, "kernel_metadata", "launch_metadata", "launch_enter_hook", "launch_exit_hook", "args"),
    (*_GRID, "args"),
)


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **options: Any) -> None:
    """Run ``kernel[grid](*arguments, **options)``, with less host time from the second call on.

    The call uses Triton's own launch, which compiles if necessary, when the arguments' properties
    are new, a pointer is not aligned, or a hook on launches is set, in the interpreter, and with a
    version of Triton whose launch is not known here.

    Args:
        kernel: a ``triton.jit`` function whose parameters are pointers, then numbers, then
            constexprs.
        grid: numbers of programs along one, two or three axes.
        options: a value for every constexpr that has no default, and num_warps, maxnreg or
            launch_pdl.
    """
    _find_launcher(kernel, **options)(grid, *arguments)


class Launcher:
    """A kernel with its constexprs and launch options, and the cache of its compiled kernels. A
    call is a :func:`launch`.

    A caller that keeps one saves the search for it, which costs more than the rest of the call.
    """

    def __init__(self, kernel: Any, **options: Any):
        self._kernel = kernel
        self._options = options
        self._known: dict[tuple, Any] = {}
        self._direct = isinstance(kernel, JITFunction)
        if not self._direct:
            return
        parameters = kernel.params
        runtime = [p for p in parameters if not p.is_constexpr]
        assert parameters[: len(runtime)] == runtime, (
            f"{kernel.__name__} has a constexpr before its last argument"
        )
        self._pointers = sum(p.name.endswith("_ptr") for p in runtime)
        assert all(p.name.endswith("_ptr") for p in runtime[: self._pointers]), (
            f"{kernel.__name__} mixes pointers and numbers"
        )
        numbers = runtime[self._pointers :]
        # Triton compiles another kernel if a number is 1 or a multiple of 16, except for numbers
        # with do_not_specialize.
        self._others = tuple(number for number, p in enumerate(numbers) if p.do_not_specialize)
        given = tuple(number for number, p in enumerate(numbers) if not p.do_not_specialize)
        self._specialised = itemgetter(*given) if given else lambda numbers: ()
        # The launch does not use the values of the constexprs, but expects the arguments.
        defaults = {
            p.name: None if p.default is inspect.Parameter.empty else p.default
            for p in parameters[len(runtime) :]
        }
        self._constexprs = tuple(options.get(name, default) for name, default in defaults.items())

    def __call__(self, grid: tuple[int, ...], *arguments: Any) -> None:
        # An interpreted kernel is not _direct, and has no pre_run_hooks.
        if not self._direct or self._kernel.pre_run_hooks or _is_watched():
            self._kernel[grid](*arguments, **self._options)
            return
        tensors, numbers = arguments[: self._pointers], arguments[self._pointers :]
        addresses = [*map(Tensor.data_ptr, tensors)]
        device = torch._C._cuda_getDevice()
        key = (
            device,
            *map(_read_dtype, tensors),
            # -1 for a tensor in host memory, which Triton refuses
            *map(Tensor.get_device, tensors),
            *[numbers[number] >> _WIDE for number in self._others],
            self._specialised(numbers),
        )
        compiled = self._known.get(key)
        if functools.reduce(or_, addresses) % _ALIGNED:
            self._kernel[grid](*arguments, **self._options)
        elif compiled is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            compiled = self._kernel[grid](*arguments, **self._options)
            if _is_known_launch(type(compiled.run)):
                self._known[key] = compiled
        else:
            x, y, z = (*grid, 1, 1)[:3]
            compiled.run(
                x, y, z, torch._C._cuda_getCurrentRawStream(device), compiled.function,
                compiled.packed_metadata,
                None, None, None, *addresses, *numbers, *self._constexprs,
            )  # fmt: skip


_find_launcher = functools.cache(Launcher)


@functools.cache
def _is_known_launch(launch: type) -> bool:
    """Return whether a compiled kernel's launch has the parameters that are passed here."""
    return tuple(inspect.signature(launch.__call__).parameters)[1:] in _KNOWN_LAUNCHES


def _is_watched() -> bool:
    """Return whether a profiler or a test has set a hook on launches, which only Triton's own
    launch calls."""
    runtime = knobs.runtime
    enter, leave = runtime.launch_enter_hook, runtime.launch_exit_hook
    return bool(getattr(enter, "calls", enter)) or bool(getattr(leave, "calls", leave))
