"""The choice between the GPU and Triton's interpreter, made before Triton is imported.

Triton reads ``TRITON_INTERPRET`` while it is imported and while a kernel is decorated. If the
variable is set later, half of Triton runs interpreted and half compiled, and the first launch fails
far from the cause. So ``import course_lib`` makes the choice here, once; a Triton that was imported
earlier in the other mode is an error, and its message says what to do.

A GPU is first looked for by its device file. PyTorch is imported and asked only if such a file
exists, so that the command line starts quickly on a laptop.
"""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

from course_lib.base import tab
from course_lib.base.errors import CourseError, EnvironmentFault
from course_lib.base.installation import environment_fault
from course_lib.base.translation import gettext as _

# NVIDIA on Linux, NVIDIA and others through WSL, AMD
_DEVICE_FILES = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg", "/dev/kfd")
# reasons for a choice
_NO_GPU, _FOUND, _SET = "no GPU found", "found a GPU", "TRITON_INTERPRET is set"


@dataclass(frozen=True)
class Runtime:
    """The chosen mode and device, and the reason for the choice in words."""

    mode: str  # "gpu" or "cpu"
    device: str  # PyTorch's name for it: "cuda" or "cpu"
    name: str  # the GPU's name, or the machine's processor
    why: str

    @property
    def interpreted(self) -> bool:
        return self.mode == "cpu"

    def line(self) -> str:
        """Return one line for the first cell of a notebook."""
        reasons = {
            _NO_GPU: _("no GPU found"),
            _FOUND: _("found a GPU"),
            _SET: _("TRITON_INTERPRET is set"),
        }
        why = reasons.get(self.why, self.why)
        if self.interpreted:
            return _(
                "course: CPU mode ({why}). Kernels run in Triton's interpreter: right, and slow."
            ).format(why=why)
        return _("course: GPU mode, {name} ({why}). Kernels are compiled.").format(
            name=self.name, why=why
        )


_chosen: Runtime | None = None
_set_here: set[str] = set()  # environment variables that the course set in this process


def current() -> Runtime:
    """Return the choice for this process; the first call makes it.

    Raises: CourseError if Triton was imported in the other mode before; EnvironmentFault if this
    system has no Triton, if ``COURSE_DEVICE`` has an unknown value or asks for a GPU that is not
    there, or if PyTorch is needed for the choice and cannot be imported.
    """
    global _chosen
    if _chosen is None:
        _chosen = _choose()
    return _chosen


def _choose() -> Runtime:
    if tab.IN_TAB:
        tab.prepare()
        runtime = Runtime("cpu", "cpu", platform.machine(), tab.describe())
        _apply(runtime)
        return runtime
    _require_linux()
    requested = os.environ.get("COURSE_DEVICE", "").strip().lower()
    if requested not in ("", "cpu", "gpu"):
        raise EnvironmentFault(
            _(
                "COURSE_DEVICE is {requested!r}; it can be 'cpu', 'gpu' or unset. `unset"
                " COURSE_DEVICE` lets the course choose; then start again."
            ).format(requested=requested)
        )
    if requested == "gpu":
        name = gpu_name()
        if name is None:
            raise EnvironmentFault(
                _(
                    "COURSE_DEVICE asks for a GPU and PyTorch sees none. `unset COURSE_DEVICE` to"
                    " work on the CPU; `course doctor` says why there is no GPU."
                )
            )
        runtime = Runtime("gpu", "cuda", name, "COURSE_DEVICE=gpu")
    elif requested == "cpu":
        runtime = Runtime("cpu", "cpu", platform.machine(), "COURSE_DEVICE=cpu")
    elif os.environ.get("TRITON_INTERPRET", "").lower() in ("1", "true", "yes", "on", "y"):
        runtime = Runtime("cpu", "cpu", platform.machine(), _SET)
    elif (name := gpu_name()) is not None:
        runtime = Runtime("gpu", "cuda", name, _FOUND)
    else:
        runtime = Runtime("cpu", "cpu", platform.machine(), _NO_GPU)
    _apply(runtime)
    return runtime


def _apply(runtime: Runtime) -> None:
    early = triton_imported_as()
    if early is not None and early != runtime.mode:
        needed_mode = _("the interpreter") if runtime.interpreted else _("the GPU")
        raise CourseError(
            _(
                "Triton was imported before course_lib, set up for {early_mode}; this machine needs"
                " {needed_mode}. Restart the kernel (Kernel > Restart) and run `import course_lib`"
                " before anything that imports triton."
            ).format(
                early_mode=_("compiling") if early == "gpu" else _("the interpreter"),
                needed_mode=needed_mode,
            )
        )
    if runtime.interpreted:
        set_default("TRITON_INTERPRET", "1")
        os.environ["TRITON_INTERPRET"] = "1"  # it may have been set to another word for yes
    else:
        os.environ.pop("TRITON_INTERPRET", None)


def triton_imported_as() -> str | None:
    """Return the mode in which this process imported Triton: "cpu" (interpreter), "gpu" (compiler),
    or None if it did not.

    The environment says only which mode was requested; the standard library's jitted functions show
    which one Triton took.
    """
    standard = sys.modules.get("triton.language.standard")
    if standard is None:
        return None
    return "cpu" if type(standard.sum).__name__ == "InterpretedFunction" else "gpu"


def interpreter_was_asked_for() -> bool:
    """Return True if TRITON_INTERPRET is set, and not by this module."""
    return "TRITON_INTERPRET" in os.environ.keys() - _set_here


def set_default(name: str, value: str) -> None:
    """Set an environment variable of this process, unless the person who started it did."""
    if name not in os.environ:
        _set_here.add(name)
        os.environ[name] = value


def read_inherited() -> dict[str, str]:
    """Return the environment as this process got it, for a program that makes its own choice:
    without what :func:`set_default` set."""
    return {name: value for name, value in os.environ.items() if name not in _set_here}


def gpu_name() -> str | None:
    """Return the name of the first GPU that PyTorch can use, or None. PyTorch is imported only if a
    device file exists.

    Raises: EnvironmentFault if that import fails.
    """
    if not any(Path(file).exists() for file in _DEVICE_FILES):
        return None
    try:
        import torch
    except Exception as broken:
        raise environment_fault(broken) or broken from None

    if not torch.cuda.is_available():
        return None
    return torch.cuda.get_device_name(0)


def _require_linux() -> None:
    system = platform.system()
    if system != "Linux":
        raise EnvironmentFault(
            _(
                "this machine has no Triton ({system}). The lessons need Linux: open the folder in"
                " WSL, in the dev container, or on a hosted notebook; docs/setup.md,"
                ' "Other systems", says how.'
            ).format(system={"Darwin": "macOS"}.get(system, system))
        )


def in_notebook() -> bool:
    """Return True in a Jupyter kernel, False in a terminal, a script or a test."""
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    return shell is not None and hasattr(shell, "kernel")
