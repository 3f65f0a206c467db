"""Confinement for the process that runs a learner's code: namespaces, Landlock, a system-call
filter and resource limits.

There are three tiers. The tier in use depends on what this machine permits, and every verdict names
it:

- "namespaces and Landlock": user, PID, network and IPC namespaces (the process can signal no
  process outside and has no network, and all processes end with the first one); Landlock (the
  process may read libraries, write its own folder, and open nothing else); and the filter;
- "Landlock": the same without namespaces;
- "limits only": limits of CPU time, memory, file size, output and wall clock. They end a runaway;
  they stop no attack.

Every function here that confines acts on the calling process and cannot be undone. The callers are
``server.py`` and tests.
"""

from __future__ import annotations

import ctypes
import errno
import glob
import mmap
import os
import site
import struct
import sys
import sysconfig
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

from course_lib.base import paths
from course_lib.sandbox import syscalls

NAMESPACES, LANDLOCK, LIMITS = "namespaces and Landlock", "Landlock", "limits only"
TIERS = (NAMESPACES, LANDLOCK, LIMITS)


class Needs(StrEnum):
    """The access that a job needs beyond memory, its own folder and the libraries."""

    NOTHING = "nothing"
    PROGRAMS = "programs"  # the start of other programs, as Triton starts ptxas
    GPU = "gpu"  # the start of other programs, and access to the device files of the driver


_CLONE_NEWNS, _MS_REC, _MS_PRIVATE = 0x00020000, 0x4000, 1 << 18
# address space for the libraries that a job may load later, and for its threads
_LIBRARY_BYTES = 2 << 30
_MAP_NORESERVE = 0x4000  # its value on Linux; the mmap module has this name from Python 3.13 on
_CLONE_NEWIPC = 0x08000000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWPID = 0x20000000
_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_CAPABILITY_VERSION_3 = 0x20080522
_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def die_with_parent() -> None:
    """Let the kernel send SIGKILL to this process when its parent process ends."""
    _call("prctl", _PR_SET_PDEATHSIG, 9, 0, 0, 0)


def adopt_orphans() -> None:
    """Make this process the parent of every orphaned descendant, so that it can end the orphans."""
    _call("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def enter_namespaces(needs: Needs) -> None:
    """Put this process into new user, network and IPC namespaces, and the next process that it
    starts into a new PID namespace.

    With a GPU it also enters a new mount namespace, in which :func:`mount_own_proc` works.

    User and group stay the same: the owner of each file is unchanged, and the process gains no
    privilege outside the namespaces.

    Raises: OSError if unprivileged namespaces are not permitted.
    """
    user, group = os.geteuid(), os.getegid()
    mounts = _CLONE_NEWNS if needs is Needs.GPU else 0
    _call("unshare", _CLONE_NEWUSER | _CLONE_NEWPID | _CLONE_NEWNET | _CLONE_NEWIPC | mounts)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        Path("/proc/self", name).write_text(text)


def mount_own_proc() -> None:
    """Mount a /proc that shows the processes of this PID namespace. CUDA looks there for its own
    process, by its number in the namespace.

    Raises: OSError if a container hides parts of /proc: the kernel then permits no complete mount.
    """
    _call("mount", b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None)
    _call("mount", b"proc", b"/proc", b"proc", ctypes.c_ulong(0), None)


def reserve(size: int) -> mmap.mmap:
    """Reserve ``size`` bytes of address space. Pages take memory only when they are touched, and no
    data limit counts them.

    Raises: OSError if this machine has no room for them.
    """
    return mmap.mmap(-1, size, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)


def confine_files(folder: Path, needs: Needs) -> None:
    """Restrict this process by Landlock: it may read libraries and write ``folder``, but make no
    TCP connection and send no signal outside.

    A kernel with an older Landlock applies the rights that it knows (files since Linux 5.13,
    truncation 6.2, TCP 6.7, ioctl on devices 6.10, signals and abstract sockets 6.12). On a CPU the
    system-call filter refuses what an older Landlock lacks.

    Raises: OSError if landlockpy is not installed, or the kernel has no Landlock or does not permit
    it.
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
                    "Landlock before Linux 5.19 lets no file change its folder, as Triton's cache"
                    " does when it compiles"
                )
            # The kernel refuses a rule for a file if it names a right that only folders have.
            of_files = (
                rights.READ_FILE
                | rights.EXECUTE
                | rights.WRITE_FILE
                | rights.TRUNCATE
                | rights.IOCTL_DEV
            )
            writable = [str(folder), "/dev/null", *(_gpu_files() if needs is Needs.GPU else ())]
            # To import a package, Python also lists the names in the folder that contains an
            # installed course.
            around = (
                [path for path in _list_libraries(needs) if _holds_course(path)]
                if paths.is_installed()
                else ()
            )
            for places, access in (
                (_readable(needs), read),
                (writable, ruleset.handled_fs),
                (around, rights.READ_DIR),
            ):
                for path in places:
                    ruleset.allow_path(path, access if os.path.isdir(path) else access & of_files)
            ruleset.restrict()
    except landlockpy.LandlockError as refused:
        explanations = {
            errno.ENOSYS: "this kernel has no Landlock, or a container hides it",
            errno.EOPNOTSUPP: "Landlock is switched off",
        }
        raise OSError(
            explanations.get(refused.errno or 0, f"Landlock: {refused.strerror}")
        ) from None


def _ruleset(landlockpy):
    """Make a ruleset with everything that this kernel's Landlock can refuse.

    Rocky Linux 9.7 reports an ABI version that it does not fully support. The loop therefore tries
    lower versions as well.
    """
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
    """Return the readable paths: Python, its packages and the system's libraries, but not the
    course with its solutions and its oracle."""
    return sorted(
        {
            os.path.realpath(part)
            for path in _list_libraries(needs)
            for part in _leave_out_course(path)
        }
    )


def _list_libraries(needs: Needs) -> list[str]:
    """Return the folders of Python, its packages and the system's libraries. The course may lie in
    one of them."""
    prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    wanted = {str(Path(prefix, lib)) for prefix in prefixes for lib in ("lib", "lib64")}
    wanted |= {*sysconfig.get_paths().values(), *site.getsitepackages()}
    # An environment may use the PyTorch of another environment. Triton, with the compiler's
    # programs, then lies in that environment.
    wanted |= {
        entry for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")
    }
    wanted |= {
        "/usr/lib",
        "/usr/lib64",
        "/usr/local/lib",
        "/lib",
        "/lib64",
        "/dev/urandom",
        "/dev/random",
        "/dev/zero",
    }
    wanted |= {
        "/proc/cpuinfo",
        "/proc/meminfo",
        "/sys/devices/system/cpu",
    }  # NumPy and PyTorch read these to choose the code for this processor
    # These are for the driver and for the C compiler, with which Triton builds the launcher of each
    # kernel.
    if needs is Needs.GPU:
        wanted |= {
            "/usr", "/bin", "/opt", "/etc/ld.so.cache", "/etc/alternatives", "/sys", "/dev/full",
            "/proc/self", "/proc/driver",
            "/proc/devices", "/proc/modules", "/proc/version", "/proc/filesystems", "/proc/stat",
            "/proc/sys",
            *(str(Path(prefix, "bin")) for prefix in prefixes),
        }  # fmt: skip
    return [path for path in wanted if os.path.exists(path)]


def _holds_course(path: str) -> bool:
    """Return True if the course lies in ``path``. In a checkout solutions and tests lie beside the
    package, so there its root folder counts.
    """
    course = paths.PACKAGE if paths.is_installed() else paths.ROOT
    return course.is_relative_to(Path(path).resolve())


def _leave_out_course(path: str) -> Iterator[str]:
    """Yield ``path`` if the course does not lie in it. An installed course lies among other
    packages: then yield the rest of ``path``."""
    if not _holds_course(path):
        yield path
    elif paths.is_installed() and Path(path).resolve() != paths.PACKAGE:
        for part in os.scandir(path):
            # a link to the course may lead back to here
            if not (part.is_symlink() and _holds_course(part.path)):
                yield from _leave_out_course(part.path)


def _gpu_files() -> list[str]:
    """Return the files that CUDA writes to: the driver's devices, and those with the names of its
    own threads."""
    files = [*glob.glob("/dev/nvidia*"), "/dev/dxg", "/proc/self/task"]
    return [path for path in files if os.path.exists(path)]


def drop_privileges() -> None:
    """Drop every capability of this process. It has some if the grader runs as root, or is root in
    its own namespace."""
    header = ctypes.create_string_buffer(struct.pack("Ii", _CAPABILITY_VERSION_3, 0))
    _call("capset", header, ctypes.create_string_buffer(24))


def limit(limits: dict[str, Any]) -> None:
    """Set the resource limits of this process; a limit of 0 is not set."""
    import resource

    seconds = int(limits["total"]) + 5
    # The data limit does not count shared memory, and a process can hide that memory from its
    # resident bytes: limit the address space too.
    private = limits["memory_bytes"] and _read_status("VmSize") + limits[
        "memory_bytes"
    ] + limits.get("reserved_bytes", 0)
    address = (
        min(limits["address_bytes"], private + _LIBRARY_BYTES)
        if private
        else limits["address_bytes"]
    )
    for which, value in (
        (resource.RLIMIT_CORE, -1),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, limits["file_bytes"]),
        (resource.RLIMIT_NOFILE, limits["open_files"]),
        # not set on a GPU: CUDA reserves more address space than any machine has memory
        (resource.RLIMIT_AS, address),
        (
            resource.RLIMIT_DATA,
            limits["memory_bytes"] and limits["memory_bytes"] + _read_status("VmData"),
        ),
    ):
        if value:
            hard = resource.getrlimit(which)[1]
            value = max(value, 0)
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(which, (value, value))


def limit_processes(extra: int) -> None:
    """Allow at most ``extra`` processes and threads more than the user has now. The kernel sets no
    such limit for root."""
    import resource

    most = _count_tasks_of_user() + extra
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def _count_tasks_of_user() -> int:
    tasks = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.stat().st_uid == os.geteuid():
                tasks += len(os.listdir(process / "task"))
        except OSError:
            continue  # the process has ended meanwhile
    return tasks


def _read_status(name: str) -> int:
    """Return a size of this process in bytes: "VmData" is its private memory, "VmSize" its address
    space."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) << 10
    return 0


def enter(tier: str, folder: Path, limits: dict[str, Any], needs: Needs) -> None:
    """Confine this process according to ``tier``. The caller has called :func:`enter_namespaces`
    before the fork.

    Raises: OSError if this machine does not permit it.
    """
    limit(limits)
    drop_privileges()
    programs = needs is not Needs.NOTHING
    if tier == LIMITS:
        try:
            # This tier promises no filter, but the filter is installed if the machine permits it.
            syscalls.refuse(programs, driver=needs is Needs.GPU, lenient=needs is Needs.GPU)
        except OSError:
            limit_processes(1024 if programs else 64)
        return
    if programs:
        limit_processes(4096)
    confine_files(folder, needs)
    syscalls.refuse(programs, driver=needs is Needs.GPU)
