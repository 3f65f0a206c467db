"""Compile the kernel of one job and describe the result. This runs only in a confined process.

It uses two private interfaces of Triton's launcher: ``create_function_from_signature`` and
``JITFunction._pack_args``, the same in 3.6 and 3.7.1.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import triton
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend
from triton.runtime.jit import JITFunction, create_function_from_signature

from course_lib.base.errors import EnvironmentFault
from course_lib.base.installation import install_again
from course_lib.base.translation import gettext as _
from course_lib.compiler.assembly import at_call_sites, ptx_lines, sass_lines, widths
from course_lib.compiler.compile_job import Compiled, CompileJob, Lines
from course_lib.compiler.units import Units

_WARP_SIZE = 32
TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"


class NoTool(EnvironmentFault):
    """A program that comes with Triton is missing or does not run. The kernel is not the cause."""


class BadArguments(Exception):
    """The kernel's parameters do not fit the arguments."""


class _FarEnough(BaseException):
    """Raised to stop a compilation that has reached the stage that the job asks for."""


def compile_kernel(job: CompileJob, units: Units) -> Compiled | None:
    """Compile the job's kernel. Return what came out, with 0 seconds; None if no report is asked
    for.

    Raises: any exception of the kernel's text or of Triton; NoKernel, NoTool, BadArguments.
    """
    _find_tool("ptxas")
    kernel = units.load()
    target = GPUTarget("cuda", job.arch, _WARP_SIZE)
    options = {
        name: value
        for name in ("num_warps", "num_stages", "maxnreg")
        if (value := getattr(job, name)) is not None
    }
    source = _specialise(kernel, job, units, make_backend(target), options)
    units.compiling = "compiler"
    if job.through == "ttir":
        with _change_stage("ttgir", _stop), contextlib.suppress(_FarEnough):
            triton.compile(source, target=target, options=options)
        return None

    def assemble(stage: Callable, ptx: str, metadata: Any) -> Any:
        return stage(at_call_sites(ptx, units.files[0].name), metadata)

    with _change_stage("cubin", assemble):
        compiled = triton.compile(source, target=target, options=options)
    if job.through == "cubin":
        return None
    ptx = compiled.asm["ptx"]
    cubin = units.files[0].with_suffix(".cubin")
    cubin.write_bytes(compiled.asm["cubin"])
    usage = dict(
        re.findall(r"\b(REG|STACK):(\d+)", _run_tool("cuobjdump", "-res-usage", str(cubin)))
    )
    places, sass = {"ptx": ptx_lines(ptx, units.files[0].name), "sass": {}}, None
    if job.disassemble:
        sass, places["sass"] = sass_lines(
            _run_tool("nvdisasm", "-c", "-g", "-ndf", str(cubin)), units.files[0].name
        )
    return Compiled(
        registers=int(usage["REG"]), spill_bytes=int(usage["STACK"]),
        shared_bytes=compiled.metadata.shared,
        loads=None if sass is None else widths(sass, "LDG|LDGSTS"),
        stores=None if sass is None else widths(sass, "STG"),
        ptx=ptx, sass=sass, ttir=compiled.asm["ttir"], ttgir=compiled.asm["ttgir"],
        lines={
            number: Lines(tuple(places["ptx"].get(number, ())),
                tuple(places["sass"].get(number, ())))
            for number in sorted(places["ptx"].keys() | places["sass"].keys())
        },
        seconds=0.0,
    )  # fmt: skip


def _specialise(
    kernel: JITFunction, job: CompileJob, units: Units, backend: Any, options: dict[str, Any]
) -> ASTSource:
    """Return the kernel with the signature, constants and attributes that the launcher would give
    it."""
    positional = [units.decode(value) for value in job.positional]
    named = {name: units.decode(value) for name, value in job.named.items()}
    unknown = [name for name in named if name not in kernel.arg_names]
    if unknown:
        raise BadArguments(_("it has no parameter `{name}`").format(name=unknown[0]))
    binder = create_function_from_signature(kernel.signature, kernel.params, backend)
    named |= options
    try:
        bound, specialization, launch_options = binder(*positional, **named)
    except TypeError as refused:
        if not str(refused).startswith("dynamic_func()"):
            raise
        raise BadArguments(str(refused).removeprefix("dynamic_func() ").replace("'", "`")) from None
    _options, signature, constexprs, attributes = kernel._pack_args(
        backend, named, bound, specialization, launch_options
    )
    return ASTSource(kernel, signature, constexprs, attributes)


def _find_tool(tool: str) -> str:
    try:
        return getattr(knobs.nvidia, tool).path
    except OSError as error:
        raise explain_tool(error) from None
    except RuntimeError:
        path = TOOLS / tool
        problem = "does not say its version" if path.exists() else "is not there"
        raise NoTool(
            f"Triton's program {tool} {problem} ({path}), so nothing can be compiled."
            f" {install_again()}"
        ) from None


def explain_tool(error: OSError) -> NoTool:
    """Explain why a program of Triton's does not start, and the remedy."""
    tool = (
        f"Triton's program {Path(str(error.filename)).name} cannot be started ({error.strerror}:"
        f" {error.filename}), so nothing can be compiled."
    )
    if error.errno != errno.EACCES:
        return NoTool(f"{tool} {install_again()}")
    return NoTool(
        f"{tool} `chmod +x {shlex.quote(str(error.filename))}` gives it the right to run back. If"
        " that does not help, its disk forbids programs (mounted noexec): put the environment on"
        " another disk."
    )


def _run_tool(name: str, *arguments: str) -> str:
    try:
        return subprocess.run(
            [_find_tool(name), *arguments], capture_output=True, text=True, check=True
        ).stdout
    except subprocess.CalledProcessError as failed:
        words = (failed.stderr or failed.stdout or "").strip().splitlines()[-1:] or [
            f"exit code {failed.returncode}"
        ]
        raise NoTool(
            f"Triton's program {name} cannot read what its compiler made ({words[0]})."
            f" {install_again()}"
        ) from None


def _stop(*_rest: Any) -> Any:
    raise _FarEnough


@contextlib.contextmanager
def _change_stage(name: str, change: Callable[[Callable, Any, Any], Any]) -> Iterator[None]:
    """Replace the compiler's stage ``name`` inside the block: ``change(stage, source, metadata)``
    does its work."""

    def inspect_stages(
        backend: Any = None, stages: Any = None, *arguments: Any, **named: Any
    ) -> Any:
        if stages is None:  # Triton asks for this hook's part of its cache key
            return "course", "course"
        stages[name] = functools.partial(change, stages[name])

    before = knobs.runtime.add_stages_inspection_hook
    # The hook's declared type lacks the backend, although every caller in Triton passes it first.
    knobs.runtime.add_stages_inspection_hook = inspect_stages  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield
    finally:
        knobs.runtime.add_stages_inspection_hook = before
