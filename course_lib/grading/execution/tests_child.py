"""Runs a learner's tests on kernels, in the child process. Like the rest of it, decides nothing.

A case has one kernel. The test is called with it as often as the case has seeds, each time from a fresh run of the file, so that
nothing it kept is left, and with PyTorch's random numbers begun at that seed. The output "raised" is 1 for each call that raised
AssertionError, "called" 1 for each that called the kernel.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import torch

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
            raised = self.call(test, kernel, seed)
            views["raised"][number], views["called"][number] = float(raised), float(bool(calls))
        return bytes(memory)

    @staticmethod
    def call(test: Any, kernel: Callable[..., Any], seed: int) -> bool:
        """Whether the test raises AssertionError. Whatever else it raises goes on."""
        torch.manual_seed(seed)
        torch.set_default_dtype(torch.float32)
        try:
            test(kernel)
        except AssertionError:
            return True
        return False

    def renew(self, module: types.ModuleType) -> types.ModuleType:
        guard = self.find_guard()
        if guard is None:
            return module
        fresh = types.ModuleType(module.__name__)
        fresh.__dict__.update({name: vars(module)[name] for name in ("__file__", "__spec__") if name in vars(module)})
        sys.modules[module.__name__] = fresh
        guard.renew(fresh)
        return fresh


def _count(kernel: Callable[..., Any], calls: list[None]) -> Callable[..., Any]:
    """``kernel``, which leaves an entry in ``calls`` each time. All kernels look alike from outside."""

    def kernel_under_test(*arguments: Any, **named: Any) -> Any:
        calls.append(None)
        return kernel(*arguments, **named)

    return kernel_under_test
