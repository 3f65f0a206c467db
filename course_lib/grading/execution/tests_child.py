"""Runs a learner's tests on kernels, in the child process. Like the rest of it, decides nothing.

A case has one kernel. The test is called with it as often as the case has seeds, each time from a fresh run of the file, so that
nothing it kept is left, and with PyTorch's random numbers begun at that seed. The output "raised" is 1 for each call that raised
AssertionError, "called" 1 for each that called the kernel, "dtypes" 1 for each that raised and had compared tensors of two dtypes.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from course_lib.grading.execution.guard import Guard
from course_lib.norms import specimens


class Tests:
    """Cases of the kind "tests".

    Args:
        functions: the child's machine for functions in PyTorch, which makes tensors of bytes.
        find_guard: the guard of the file that runs.
    """

    def __init__(self, functions: Any, find_guard: Callable[[], Guard | None]):
        self.view, self.lost, self.find_guard = functions.view, functions.lost, find_guard
        self.misuse: Exception | None = None

    def run(self, function: Any, case: dict, data: bytes) -> bytes:
        memory = bytearray(data)
        views = {t["name"]: self.view(memory, t) for t in case["tensors"]}
        (_, name), *seeds = case["arguments"]
        for number, (_, seed) in enumerate(seeds):
            calls: list[None] = []
            kernel = _count(specimens.make_plain(name, backward=bool(case["constexprs"]["backward"])), calls)
            test = getattr(self.renew(sys.modules[function.__module__]), case["entry_point"])
            raised, of_two_dtypes = self.call(test, kernel, seed)
            views["raised"][number], views["called"][number] = float(raised), float(bool(calls))
            views["dtypes"][number] = float(of_two_dtypes)
        return bytes(memory)

    @staticmethod
    def call(test: Any, kernel: Callable[..., Any], seed: int) -> tuple[bool, bool]:
        """Whether the test raises AssertionError, and whether it does so after it compared tensors of two dtypes.

        Whatever else it raises goes on.
        """
        torch.manual_seed(seed)
        torch.set_default_dtype(torch.float32)
        comparisons = _Comparisons()
        try:
            with comparisons:
                test(kernel)
        except AssertionError as refusal:
            return True, comparisons.of_two_dtypes or _DTYPES_DIFFER in str(refusal)
        return False, False

    def renew(self, module: types.ModuleType) -> types.ModuleType:
        guard = self.find_guard()
        if guard is None:
            return module
        fresh = types.ModuleType(module.__name__)
        fresh.__dict__.update({name: vars(module)[name] for name in ("__file__", "__spec__") if name in vars(module)})
        sys.modules[module.__name__] = fresh
        guard.renew(fresh)
        return fresh


_DTYPES_DIFFER = "attribute 'dtype' do not match"  # as torch.testing.assert_close says it


class _Comparisons(TorchFunctionMode):
    """Sees each ``torch.equal``, which says False of tensors of two dtypes, whatever they hold."""

    of_two_dtypes = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.equal, torch.Tensor.equal) and len(args) == 2:
            self.of_two_dtypes |= args[0].dtype != args[1].dtype
        return func(*args, **(kwargs or {}))


def _count(kernel: Callable[..., Any], calls: list[None]) -> Callable[..., Any]:
    """``kernel``, which leaves an entry in ``calls`` each time. All kernels look alike from outside."""

    def kernel_under_test(*arguments: Any, **named: Any) -> Any:
        calls.append(None)
        return kernel(*arguments, **named)

    return kernel_under_test
