"""Runs kernels compiled, on the first GPU."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor

from course_lib.grading.execution.far import pack, reach
from course_lib.grading.execution.misuse import CaseRunner, require_mode

_ALIGNMENT = 16  # bytes; the launcher specialises a kernel on it
_GPU_FRACTION = 0.9  # of its memory: other programs of the person keep the rest


class Unplaceable(Exception):
    """This GPU has no room for rows so far apart. Not the kernel's fault: the interpreter has to do for the case."""


class Gpu(CaseRunner):
    """Cases compiled, on the first GPU."""

    def __init__(self):
        import torch
        import triton.language  # imported before the forks
        from triton.backends.nvidia.driver import CudaDriver

        from course_lib.compiler.machine import put_off_nothing

        with put_off_nothing():
            # a C compiler builds it, which takes half a second; it does not open the GPU
            triton.runtime.driver.set_active(CudaDriver())
        self.torch, self.side_by_side = torch, triton.AsyncCompileMode
        self.dtypes = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16, "int32": torch.int32}

    def open_device(self) -> None:
        """Make a context on the GPU: one that does not answer is found before the learner's code is looked at."""
        require_mode("gpu")  # asks the GPU, too
        self.torch.cuda.set_per_process_memory_fraction(_GPU_FRACTION)
        self.torch.zeros(1, device="cuda")

    def begin(self, module, code, job) -> None:
        """Compile what the cases launch, side by side. What the compiler refuses, it refuses again at the launch, in its case."""
        memory = self.torch.empty(2 * _ALIGNMENT, dtype=self.torch.uint8, device="cuda")
        with ThreadPoolExecutor() as pool, self.side_by_side(pool, ignore_errors=True):
            for case in job["cases"]:
                like = {}  # a tensor's dtype and alignment are all that a kernel is specialised on
                for t in case["tensors"]:
                    apart = (t["start"] - t["offset"]) % _ALIGNMENT
                    like[t["name"]] = memory[apart : apart + _ALIGNMENT].view(self.dtypes[t["dtype"]])
                make = {"tensor": like.__getitem__, "int": int, "float": float}
                arguments = [make[kind](value) for kind, value in case["arguments"]]
                with contextlib.suppress(Exception):
                    kernel = getattr(module, case["entry_point"])
                    kernel.warmup(
                        *arguments, grid=tuple(case["grid"]), num_warps=case["num_warps"], **case["constexprs"]
                    )

    def run(self, function, case: dict, data: bytes) -> bytes:
        torch = self.torch
        memory = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        # one allocation a tensor: neighbours on the device are then not the case's own tensors
        buffers = {t["name"]: memory[t["offset"] : t["offset"] + t["nbytes"]].cuda() for t in case["tensors"]}
        views, far = {}, []
        for t in case["tensors"]:
            dtype, skip = self.dtypes[t["dtype"]], (t["start"] - t["offset"]) // t["itemsize"]
            flat = buffers[t["name"]].view(dtype)
            views[t["name"]] = flat.as_strided(t["shape"], pack(t) if t["far"] else t["strides"], skip)
            if t["far"]:
                try:
                    storage = torch.empty(reach(t) // t["itemsize"], dtype=dtype, device="cuda")
                except torch.cuda.OutOfMemoryError as refused:
                    raise Unplaceable(str(refused)) from None
                wide = storage.as_strided(t["shape"], t["strides"])
                wide.copy_(views[t["name"]])
                far.append((views[t["name"]], wide))
                views[t["name"]] = wide
        make = {"tensor": views.__getitem__, "int": int, "float": float}
        function[tuple(case["grid"])](
            *[make[kind](value) for kind, value in case["arguments"]], **case["constexprs"], num_warps=case["num_warps"]
        )
        for packed, wide in far:
            packed.copy_(wide)
        out = torch.cat([buffers[t["name"]] for t in case["tensors"]])
        torch.cuda.synchronize()
        return out.cpu().numpy().tobytes()

    def lost(self, error: BaseException) -> bool:
        """A CUDA error that is not a compiler's or an allocator's message leaves no context to go on with."""
        return (
            not isinstance(error, Exception) or "CUDA error" in str(error) or type(error).__name__ == "AcceleratorError"
        )
