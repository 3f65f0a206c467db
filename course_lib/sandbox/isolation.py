"""What keeps a learner's code inside its folder: namespaces, Landlock, a system-call filter and resource limits.

Three tiers, named in every verdict, by what this machine permits:

- "namespaces and Landlock": user, PID, network and IPC namespaces (nobody to signal, no network, everything ends with its
  first process); Landlock: libraries may be read, its own folder written, nothing else opened; and the filter;
- "Landlock": the same without namespaces;
- "limits only": CPU time, memory, file size, output, wall clock. That ends a runaway; it stops nobody who means harm.

Everything here acts on the calling process and cannot be undone. The callers are ``server.py`` and tests.
"""

from __future__ import annotations

import ctypes
import errno
import glob
import mmap
import os
import resource
import site
import struct
import sys
import sysconfig
from enum import StrEnum
from pathlib import Path
from typing import Any

from course_lib.base import paths
from course_lib.sandbox import syscalls

NAMESPACES, LANDLOCK, LIMITS = "namespaces and Landlock", "Landlock", "limits only"
TIERS = (NAMESPACES, LANDLOCK, LIMITS)


class Needs(StrEnum):
    """What the work in the sandbox needs beyond memory, its own folder and the libraries."""

    NOTHING = "nothing"
    PROGRAMS = "programs"  # it starts other programs, as Triton starts ptxas
    GPU = "gpu"  # that, and the driver's device files


_CLONE_NEWNS, _MS_REC, _MS_PRIVATE = 0x00020000, 0x4000, 1 << 18
_LIBRARY_BYTES = 2 << 30  # address space for what a job may still load, and for its threads
_MAP_NORESERVE = 0x4000  # Linux; the mmap module names it from Python 3.13 on
_CLONE_NEWIPC, _CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x08000000, 0x10000000, 0x20000000, 0x40000000
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_CAPABILITY_VERSION_3 = 0x20080522
_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def die_with_parent() -> None:
    """SIGKILL for this process as soon as the one that started it is gone."""
    _call("prctl", _PR_SET_PDEATHSIG, 9, 0, 0, 0)


def adopt_orphans() -> None:
    """Whatever a descendant leaves behind becomes a child of this process, which can then end it."""
    _call("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def enter_namespaces(needs: Needs) -> None:
    """New user, network and IPC namespaces for this process, and a new PID namespace for the next process it starts.

    For a GPU a new mount namespace, too, where :func:`mount_own_proc` works.

    It keeps its user and group: files belong to whom they belonged to, and no privilege reaches outside.

    Raises: OSError where unprivileged namespaces are not permitted.
    """
    user, group = os.geteuid(), os.getegid()
    mounts = _CLONE_NEWNS if needs is Needs.GPU else 0
    _call("unshare", _CLONE_NEWUSER | _CLONE_NEWPID | _CLONE_NEWNET | _CLONE_NEWIPC | mounts)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path("/proc/self", name).write_text(text)


def mount_own_proc() -> None:
    """A /proc that shows the processes of this PID namespace: CUDA looks for itself there, by its number in the namespace.

    Raises: OSError where a container hides parts of /proc, for then nobody may mount a whole one.
    """
    _call("mount", b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None)
    _call("mount", b"proc", b"/proc", b"proc", ctypes.c_ulong(0), None)


def reserve(size: int) -> mmap.mmap:
    """Address space of ``size`` bytes, which takes memory only where it is touched, and counts as nobody's data.

    Raises: OSError if this machine has no room for it.
    """
    return mmap.mmap(-1, size, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)


def confine_files(folder: Path, needs: Needs) -> None:
    """Landlock, through landlockpy: read libraries, write ``folder``, connect to nothing by TCP, send no signal outside.

    A kernel whose Landlock is older applies the rights that it knows (files since Linux 5.13, truncation 6.2, TCP 6.7,
    ioctl on devices 6.10, signals and abstract sockets 6.12). What it lacks, the system-call filter refuses on a CPU.

    Raises: OSError if landlockpy is not installed, or the kernel has no Landlock or does not permit it.
    """
    try:
        import landlockpy
    except ImportError as missing:
        raise OSError(f"the package landlockpy cannot be loaded ({missing})") from None
    rights = landlockpy.AccessFS
    read = rights.READ_FILE | rights.READ_DIR | rights.EXECUTE
    try:
        with _ruleset(landlockpy) as ruleset:
            if needs is not Needs.NOTHING and rights.REFER not in ruleset.handled_fs:
                raise OSError(
                    "Landlock before Linux 5.19 lets no file change its folder, as Triton's cache does when it compiles"
                )
            # the kernel takes no rule for a file that names a right which only folders have
            of_files = rights.READ_FILE | rights.EXECUTE | rights.WRITE_FILE | rights.TRUNCATE | rights.IOCTL_DEV
            writable = [str(folder), "/dev/null", *(_gpu_files() if needs is Needs.GPU else ())]
            for paths, access in ((_readable(needs), read), (writable, ruleset.handled_fs)):
                for path in paths:
                    ruleset.allow_path(path, access if os.path.isdir(path) else access & of_files)
            ruleset.restrict()
    except landlockpy.LandlockError as refused:
        said = {
            errno.ENOSYS: "this kernel has no Landlock, or a container hides it",
            errno.EOPNOTSUPP: "Landlock is switched off",
        }
        raise OSError(said.get(refused.errno or 0, f"Landlock: {refused.strerror}")) from None


def _ruleset(landlockpy):
    """All that this kernel's Landlock can refuse. Rocky Linux 9.7 reports an ABI of which it lacks a part: hence the loop."""
    abi = landlockpy.abi_version()
    while True:
        try:
            return landlockpy.Ruleset(
                handled_fs=landlockpy.fs_for_abi(abi),
                handled_net=landlockpy.net_for_abi(abi),
                scoped=landlockpy.scope_for_abi(abi),
            )
        except landlockpy.LandlockError as refused:
            if abi <= 1 or refused.errno not in (errno.EINVAL, errno.E2BIG):
                raise
            abi -= 1


def _readable(needs: Needs) -> list[str]:
    """Python, its packages and the system's libraries; never the course, whose solutions and oracle lie there."""
    prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    wanted = {str(Path(prefix, lib)) for prefix in prefixes for lib in ("lib", "lib64")}
    wanted |= {*sysconfig.get_paths().values(), *site.getsitepackages()}
    # an environment may take PyTorch from another one's packages, whose Triton then has the compiler's programs
    wanted |= {entry for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")}
    wanted |= {"/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/dev/urandom", "/dev/random", "/dev/zero"}
    wanted |= {
        "/proc/cpuinfo",
        "/proc/meminfo",
        "/sys/devices/system/cpu",
    }  # NumPy and PyTorch choose their code by these
    if needs is Needs.GPU:  # the driver, and the C compiler that Triton starts for each kernel's launcher
        wanted |= {
            "/usr", "/bin", "/opt", "/etc/ld.so.cache", "/etc/alternatives", "/sys", "/dev/full", "/proc/self", "/proc/driver",
            "/proc/devices", "/proc/modules", "/proc/version", "/proc/filesystems", "/proc/stat", "/proc/sys",
            *(str(Path(prefix, "bin")) for prefix in prefixes),
        }  # fmt: skip
    return sorted(
        path for path in wanted if os.path.exists(path) and not paths.ROOT.is_relative_to(Path(path).resolve())
    )


def _gpu_files() -> list[str]:
    """What CUDA writes to: the driver's devices, and the names of its own threads."""
    files = [*glob.glob("/dev/nvidia*"), "/dev/dxg", "/proc/self/task"]
    return [path for path in files if os.path.exists(path)]


def drop_privileges() -> None:
    """No capability is left, also where the grader runs as root or is root of its own namespace."""
    header = ctypes.create_string_buffer(struct.pack("Ii", _CAPABILITY_VERSION_3, 0))
    _call("capset", header, ctypes.create_string_buffer(24))


def limit(limits: dict[str, Any]) -> None:
    """Resource limits; a value of 0 leaves that one out."""
    seconds = int(limits["total"]) + 5
    # shared memory counts as nobody's data, and can be hidden from the resident bytes: there is no address space for it
    private = limits["memory_bytes"] and _read_status("VmSize") + limits["memory_bytes"] + limits.get(
        "reserved_bytes", 0
    )
    address = min(limits["address_bytes"], private + _LIBRARY_BYTES) if private else limits["address_bytes"]
    for which, value in (
        (resource.RLIMIT_CORE, -1),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, limits["file_bytes"]),
        (resource.RLIMIT_NOFILE, limits["open_files"]),
        (resource.RLIMIT_AS, address),  # never on a GPU: CUDA reserves more than any machine has memory
        (resource.RLIMIT_DATA, limits["memory_bytes"] and limits["memory_bytes"] + _read_status("VmData")),
    ):
        if value:
            hard = resource.getrlimit(which)[1]
            value = max(value, 0)
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(which, (value, value))


def limit_processes(extra: int) -> None:
    """At most ``extra`` processes and threads more than the user has now. Root's are not counted by the kernel."""
    most = _count_tasks_of_user() + extra
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def _count_tasks_of_user() -> int:
    tasks = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.stat().st_uid == os.geteuid():
                tasks += len(os.listdir(process / "task"))
        except OSError:
            continue  # it ended meanwhile
    return tasks


def _read_status(name: str) -> int:
    """Bytes of this process: "VmData", its private memory, or "VmSize", its address space."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) << 10
    return 0


def enter(tier: str, folder: Path, limits: dict[str, Any], needs: Needs) -> None:
    """Everything of ``tier`` that is done in the process itself; :func:`enter_namespaces` comes before the fork.

    Raises: OSError if this machine does not permit it.
    """
    limit(limits)
    drop_privileges()
    programs = needs is not Needs.NOTHING
    if tier == LIMITS:
        try:
            # no promise here, and no reason to go without it
            syscalls.refuse(programs, driver=needs is Needs.GPU, lenient=needs is Needs.GPU)
        except OSError:
            limit_processes(1024 if programs else 64)
        return
    if programs:
        limit_processes(4096)
    confine_files(folder, needs)
    syscalls.refuse(programs, driver=needs is Needs.GPU)
