"""Run kernels compiled, on the first GPU."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor

from course_lib.grading.cases.plan import CaseLaunch
from course_lib.grading.execution.case_runner import CaseRunner, require_mode
from course_lib.launching.far import measure_reach

_ALIGNMENT = 16  # bytes; the launcher specialises a kernel on it
# part of the GPU's memory that the child may use; the rest is for other programs
_GPU_FRACTION = 0.9


class Unplaceable(Exception):
    """The GPU cannot allocate rows so far apart. The kernel is not at fault: the interpreter judges
    the case."""


class Gpu(CaseRunner):
    """Cases compiled, on the first GPU."""

    def __init__(self):
        import torch
        import triton.language  # imported before the forks
        from triton.backends.nvidia.driver import CudaDriver

        from course_lib.compiler.machine import put_off_nothing

        with put_off_nothing():
            # This builds the driver's C module, once, and does not open the GPU.
            triton.runtime.driver.set_active(CudaDriver())
        self.torch, self.side_by_side = torch, triton.AsyncCompileMode
        floats = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
        self.dtypes = floats | {"int32": torch.int32, "int64": torch.int64}

    def open_device(self) -> None:
        """Make a context on the GPU, so that a GPU that does not answer is found before the
        learner's code is read."""
        require_mode("gpu")  # this already uses the GPU
        self.torch.cuda.set_per_process_memory_fraction(_GPU_FRACTION)
        self.torch.zeros(1, device="cuda")

    def begin(self, module, code, cases, rules) -> None:
        """Compile what the cases launch, in parallel. An error is not reported here: the launch in
        its case raises it again."""
        memory = self.torch.empty(2 * _ALIGNMENT, dtype=self.torch.uint8, device="cuda")
        with ThreadPoolExecutor() as pool, self.side_by_side(pool, ignore_errors=True):
            for case in cases:
                like = {}  # a compiled kernel depends only on a tensor's dtype and alignment
                for t in case.tensors:
                    apart = (t.start - t.offset) % _ALIGNMENT
                    like[t.name] = memory[apart : apart + _ALIGNMENT].view(self.dtypes[t.dtype])
                with contextlib.suppress(Exception):
                    kernel = getattr(module, case.entry_point)
                    kernel.warmup(
                        *case.fill_in(like),
                        grid=case.grid,
                        num_warps=case.num_warps,
                        **case.constexprs,
                    )

    def run(self, function, case: CaseLaunch, data: bytes) -> bytes:
        torch = self.torch
        memory = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        # Each tensor is allocated separately, so that the tensors of a case are not neighbours on
        # the device.
        buffers = {t.name: memory[t.offset : t.offset + t.nbytes].cuda() for t in case.tensors}
        views, far = {}, []
        for t in case.tensors:
            dtype, skip = self.dtypes[t.dtype], (t.start - t.offset) // t.itemsize
            views[t.name] = buffers[t.name].view(dtype).as_strided(t.shape, t.packed_strides, skip)
            if t.far:
                try:
                    storage = torch.empty(
                        measure_reach(t) // t.itemsize, dtype=dtype, device="cuda"
                    )
                except torch.cuda.OutOfMemoryError as refused:
                    raise Unplaceable(str(refused)) from None
                wide = storage.as_strided(t.shape, t.strides)
                wide.copy_(views[t.name])
                far.append((views[t.name], wide))
                views[t.name] = wide
        function[case.grid](*case.fill_in(views), **case.constexprs, num_warps=case.num_warps)
        for packed, wide in far:
            packed.copy_(wide)
        out = torch.cat([buffers[t.name] for t in case.tensors])
        torch.cuda.synchronize()
        return out.cpu().numpy().tobytes()

    def lost(self, error: BaseException) -> bool:
        """Return True for a CUDA error, unless the compiler or the allocator raised it: the context
        cannot be used any more."""
        return (
            not isinstance(error, Exception)
            or "CUDA error" in str(error)
            or type(error).__name__ == "AcceleratorError"
        )
