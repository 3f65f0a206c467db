"""Run a learner's tests on kernels. The kernels run in a companion, which is a process of the
course's own.

The companion knows which kernel a case has. This process never does: it sends the arguments of a
call and gets tensors back. A case is a test with one kernel. The test is called with the kernel
once per seed of the case, each time from a fresh run of the file, so that nothing is left of the
previous call, and with PyTorch's generator set to the seed. For each call, the output "raised" is 1
if it raised AssertionError, "called" is 1 if it called the kernel, and "dtypes" is 1 if it raised
and had compared tensors of two dtypes.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import socket
import struct
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from course_lib.base.files import read_plain_file
from course_lib.grading.cases.plan import CaseLaunch
from course_lib.grading.execution.case_runner import KERNEL_NAMES
from course_lib.grading.execution.functions import TorchFunctions
from course_lib.norms.specimen_call import make_checked
from course_lib.sandbox import isolation

# the file descriptor of the connection to the companion; no other descriptor stays open
_CHANNEL = 0
_MOST_BYTES = 1 << 30  # the most bytes of one message
_MOST_NAMES = 1 << 20
_ERRORS: dict[str, type[Exception]] = {
    kind.__name__: kind
    for kind in (ValueError, TypeError, RuntimeError, IndexError, ZeroDivisionError)
}


class Tests(TorchFunctions):
    """Cases of the kind "tests"."""

    modules = ("torch.fx.experimental.symbolic_shapes",)  # torch.autograd.grad imports it

    def __init__(self):
        super().__init__()
        # The first comparison imports a part of PyTorch; this one is made before the forks.
        torch.testing.assert_close(torch.ones(1), torch.ones(1))

    def attend(self, confine: Callable[[], None]) -> None:
        """Start the companion. It confines itself, as this process will, and answers until this
        process ends."""
        own_end, companions_end = socket.socketpair()
        if os.fork() == 0:
            try:
                isolation.die_with_parent()
                own_end.close()
                os.dup2(companions_end.detach(), _CHANNEL)
                os.closerange(3, 1 << 20)
                _Companion().serve(confine)
            finally:
                os._exit(0)
        companions_end.close()
        os.dup2(own_end.detach(), _CHANNEL)

    def open_device(self) -> None:
        """Wait until the companion has the names of the kernels, and has removed the file with
        them."""
        _send({"ready": True}, [])
        if _receive() is None:
            raise RuntimeError("the process that runs the kernels under test did not start")

    def begin(
        self,
        module: types.ModuleType,
        code: types.CodeType,
        cases: list[CaseLaunch],
        rules: dict[str, Any] | None,
    ) -> None:
        super().begin(module, code, cases, rules)
        self.code, self.number = code, {id(case): number for number, case in enumerate(cases)}

    def run(self, function: Any, case: CaseLaunch, data: bytes) -> bytes:
        memory = bytearray(data)
        views = {t.name: self.view(memory, t) for t in case.tensors}
        # the first argument is the kernel under test
        for call, seed in enumerate(case.arguments[1:]):
            calls: list[None] = []
            kernel = self.make_kernel(
                self.number[id(case)], bool(case.constexprs["backward"]), calls
            )
            test = getattr(self.renew(sys.modules[function.__module__]), case.entry_point)
            raised, of_two_dtypes = self.call(test, kernel, seed)
            views["raised"][call], views["called"][call] = float(raised), float(bool(calls))
            views["dtypes"][call] = float(of_two_dtypes)
        return bytes(memory)

    @staticmethod
    def make_kernel(number: int, backward: bool, calls: list[None]) -> Callable[..., Any]:
        """Make the kernel of case ``number``. It adds an entry to ``calls`` in each call. From
        outside, all kernels look the same."""

        def ask(*arguments: Tensor | float) -> Any:
            tensors = [value for value in arguments if isinstance(value, Tensor)]
            eps = next(float(value) for value in arguments if not isinstance(value, Tensor))
            return _ask({"case": number, "eps": eps}, tensors)

        checked = make_checked(ask, backward=backward)

        def kernel_under_test(*arguments: Any, **named: Any) -> Any:
            calls.append(None)
            return checked(*arguments, **named)

        return kernel_under_test

    @staticmethod
    def call(test: Any, kernel: Callable[..., Any], seed: int) -> tuple[bool, bool]:
        """Return whether the test raises AssertionError, and whether it had compared tensors of two
        dtypes before.

        Any other exception is raised further.
        """
        torch.manual_seed(seed)
        random.seed(seed)
        torch.set_default_dtype(torch.float32)
        comparisons = _Comparisons()
        try:
            with comparisons:
                test(kernel)
        except AssertionError as refusal:
            return True, comparisons.of_two_dtypes or _DTYPES_DIFFER in str(refusal)
        return False, False

    def renew(self, module: types.ModuleType) -> types.ModuleType:
        """Run the file anew and return its module, so that nothing is left of the call before."""
        fresh = types.ModuleType(module.__name__)
        fresh.__dict__.update(
            {name: vars(module)[name] for name in ("__file__", "__spec__") if name in vars(module)}
        )
        sys.modules[module.__name__] = fresh
        exec(self.code, vars(fresh))
        return fresh


_DTYPES_DIFFER = "attribute 'dtype' do not match"  # from the message of torch.testing.assert_close


class _Comparisons(TorchFunctionMode):
    """Records each call of ``torch.equal``, which returns False for two dtypes whatever the values
    are."""

    of_two_dtypes = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.equal, torch.Tensor.equal) and len(args) == 2:
            self.of_two_dtypes |= args[0].dtype != args[1].dtype
        return func(*args, **(kwargs or {}))


class _Companion:
    """Runs the kernels under test. A message may be forged, so it accepts nothing but plain data
    and bytes, and checks both."""

    def serve(self, confine: Callable[[], None]) -> None:
        # imported before the sandbox hides the course
        specimens = importlib.import_module("course_lib.norms.specimens")
        # If this tier of isolation does not work here, the other process has ended, and new
        # processes are started.
        if _receive() is None:
            return
        confine()
        file = Path(KERNEL_NAMES)
        names = json.loads(read_plain_file(file, _MOST_NAMES)) if file.exists() else []
        file.unlink(missing_ok=True)
        # make_plain checks the arguments again: the result for arguments of another form could tell
        # which kernel it is
        kernels = [specimens.make_plain(name, backward=backward) for name, backward in names]
        _send({"ready": True}, [])
        while (asked := _receive()) is not None:
            question, storages = asked
            tensors = _unpack(question["tensors"], storages)
            try:
                returned = kernels[question["case"]](*tensors, question["eps"])
            except Exception as error:
                _send({"error": type(error).__name__, "text": str(error)}, [])
                continue
            outputs = returned if isinstance(returned, tuple) else (returned,)
            described, all_storages = _pack([*tensors, *outputs])
            _send(
                {"tensors": described[len(tensors) :], "several": isinstance(returned, tuple)},
                all_storages,
            )


def _ask(question: dict[str, Any], tensors: list[Tensor]) -> Any:
    """Ask the companion for the kernel's results, and copy the kernel's changes of the tensors'
    memory into this process.

    Raises: the exception that the kernel raised; RuntimeError if the companion ended.
    """
    described, storages = _pack(tensors)
    _send(question | {"tensors": described}, storages)
    answer = _receive()
    if answer is None:
        raise RuntimeError("the kernel under test was ended: its call took too much time or memory")
    head, returned = answer
    if "error" in head:
        raise _ERRORS.get(head["error"], RuntimeError)(head["text"])
    for tensor in tensors:
        memory = _view_storage(tensor)
        for before, after in zip(storages, returned, strict=False):
            if before.data_ptr() == memory.data_ptr() and not torch.equal(before, after):
                memory.copy_(after)
                torch.autograd.graph.increment_version(tensor)
    outputs = _unpack(head["tensors"], [*storages, *returned[len(storages) :]])
    return tuple(outputs) if head["several"] else outputs[0]


def _view_storage(tensor: Tensor) -> Tensor:
    """Return all bytes of the memory that ``tensor`` lies in."""
    return torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())


def _pack(tensors: list[Tensor]) -> tuple[list[dict[str, Any]], list[Tensor]]:
    """Return the tensors as plain data, and the memory that they lie in, each once."""
    storages: dict[int, Tensor] = {}
    described = []
    for tensor in tensors:
        memory = _view_storage(tensor)
        storages.setdefault(memory.data_ptr(), memory)
        described.append({
            "storage": list(storages).index(memory.data_ptr()),
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "shape": list(tensor.shape), "strides": list(tensor.stride()),
            "offset": tensor.storage_offset(),
        })  # fmt: skip
    return described, list(storages.values())


def _unpack(described: list[dict[str, Any]], storages: list[Tensor]) -> list[Tensor]:
    tensors = []
    for d in described:
        dtype = getattr(torch, d["dtype"])
        flat = torch.empty(0, dtype=dtype).set_(storages[d["storage"]].untyped_storage())
        tensors.append(flat.as_strided(d["shape"], d["strides"], d["offset"]))
    return tensors


def _send(message: dict[str, Any], storages: list[Tensor]) -> None:
    payload = [memory.numpy().tobytes() for memory in storages]
    head = json.dumps(message | {"sizes": [len(part) for part in payload]}).encode()
    data = memoryview(b"".join((struct.pack("<q", len(head)), head, *payload)))
    while data:
        data = data[os.write(_CHANNEL, data) :]


def _receive() -> tuple[dict[str, Any], list[Tensor]] | None:
    """Return one message; None if the other process has ended."""
    if (head := _read(8)) is None or (plain := _read(struct.unpack("<q", head)[0])) is None:
        return None
    parsed_head, storages = json.loads(plain), []
    for size in parsed_head["sizes"]:
        if (data := _read(size)) is None:
            return None
        storages.append(
            torch.frombuffer(data, dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
        )
    return parsed_head, storages


def _read(size: int) -> bytearray | None:
    if not 0 <= size <= _MOST_BYTES:
        return None
    data = bytearray()
    while len(data) < size:
        piece = os.read(_CHANNEL, min(size - len(data), 1 << 20))
        if not piece:
            return None
        data += piece
    return data
