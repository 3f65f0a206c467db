"""The system-call filter for the process that runs a learner's code. It refuses with EPERM the
calls that Landlock does not cover.

Landlock controls access to the contents of files. It does not control UDP, new processes, the start
of another program, the mode, owner and times of a file, and shared memory that stays after its
process. In older kernels it does not control TCP, signals, abstract sockets, truncation and ioctl
on devices either. A check on the CPU needs none of these. The filter needs no root, and every
kernel since 3.17 has it. It lists the refused calls and not the allowed ones, because the next
release of NumPy or PyTorch may use other calls.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

# call numbers on (x86_64, aarch64); None if the architecture has no such call
_EVERYWHERE = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "kcmp": (312, 272),
    "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "tkill": (200, 130),
    # They would bypass this filter.
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "fanotify_init": (300, 262),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "unshare": (272, 97), "setns": (308, 268),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265), "setpriority": (141, 140), "ioprio_set": (251, 30),
    "truncate": (76, 45),
    "shmget": (29, 194), "shmat": (30, 196), "semget": (64, 190), "msgget": (68, 186),
    "mq_open": (240, 180),
    # These open memory or queues of another program by number or name. Landlock does not control
    # them.
    "shmctl": (31, 195), "semctl": (66, 191), "semop": (65, 193), "semtimedop": (220, 192),
    "msgctl": (71, 187), "msgsnd": (69, 189),
    "msgrcv": (70, 188), "mq_unlink": (241, 181),
    "syslog": (103, 116), "modify_ldt": (154, None), "io_setup": (206, 0),
}  # fmt: skip
# Neither arithmetic, nor Triton's compilers, nor CUDA 13 on Linux needs these calls
# (tests/sandbox/test_gpu.py).
_NEVER_NEEDED = {
    "socketpair": (53, 199),
    "connect": (42, 203), "accept": (43, 202), "accept4": (288, 242), "sendto": (44, 206),
    "sendmsg": (46, 211), "sendmmsg": (307, 269),
    # the kernel counts this memory for no process
    "memfd_create": (319, 279), "memfd_secret": (447, 447),
    # They report the names of files that other processes make, in any folder.
    "inotify_init": (253, None), "inotify_init1": (294, 26),
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "mknod": (133, None), "mknodat": (259, 33), "symlink": (88, None), "symlinkat": (266, 36),
    "link": (86, None), "linkat": (265, 37),
    "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119), "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
}  # fmt: skip
_OF_A_DRIVER = {"socket": (41, 198), "bind": (49, 200), "listen": (50, 201)}
# refused if no programs may be started; Triton starts ptxas, and its cache makes folders
_WITHOUT_PROGRAMS = {
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281),
    "mkdir": (83, None), "mkdirat": (258, 34),
}  # fmt: skip
_CLONE = (56, 220)
_CLONE3 = (435, 435)
_KILL = (62, 129)
_TGKILL = (234, 131)
_PRCTL = (157, 167)
_PRLIMIT64 = (302, 261)
_SOCKET, _OPEN, _OPENAT, _OPENAT2, _FCNTL = (41, 198), (2, None), (257, 56), (437, 437), (72, 25)
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

# classic BPF
_LOAD, _AND, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
# offsets in struct seccomp_data; the filter reads the low halves of the arguments
_NUMBER, _ARCH, _ARGUMENT = 0, 4, 16
_ALLOW, _KILL_PROCESS, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
_NO_SUCH_CALL = 0x00050000 | errno.ENOSYS
# the bits of all new namespaces that clone can make
_CLONE_THREAD, _CLONE_NEW = 0x00010000, 0x7E020000
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP = 1, 4, 38, 22
_LOCAL, _INTERNET = 1, (2, 10, 17, 40)  # AF_UNIX; AF_INET, AF_INET6, AF_PACKET, AF_VSOCK
# Two ways to open a file are refused: for reading with O_TRUNC, and with both mode bits set, which
# permits only ioctl. Landlock before ABI 3 lets both empty a file. In the second case it checks no
# right, and before ABI 5 a device opened like this accepts any ioctl.
_OPENING_BITS = os.O_ACCMODE | os.O_TRUNC
_OPENING_REFUSED = (os.O_RDONLY | os.O_TRUNC, os.O_ACCMODE, os.O_ACCMODE | os.O_TRUNC)
# they choose the process to which the kernel sends signals about a file
_F_SETOWN, _F_SETOWN_EX = 8, 15
# while one process holds a lease on a library, every other process that opens it has to wait
_F_SETLEASE = 1024


def refuse(programs: bool, driver: bool = False, lenient: bool = False) -> None:
    """Install the filter permanently, for this thread and all threads and processes that it starts.

    The filter permits new threads but no new processes; a process may send signals only to itself.

    Args:
        programs: permit the calls of a compiler, which starts other programs.
        driver: permit the calls of CUDA, which at its start makes a local socket, names it and
            listens on it. The socket can neither accept nor make a connection.
        lenient: permit the calls that another kind of driver may need as well; for a tier that
            promises nothing.

    Raises: OSError if the kernel or this machine has no such filter.
    """
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        raise OSError(f"no list of system calls for {platform.machine()}")
    which, arch = machine
    program = _program(which, arch, programs, driver, lenient)
    libc = ctypes.CDLL(None, use_errno=True)
    block = ctypes.create_string_buffer(program)
    described = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(block))
    )
    for option, *rest in (
        (_PR_SET_NO_NEW_PRIVS, 1, None),
        (_PR_SET_SECCOMP, 2, ctypes.addressof(described)),
    ):
        if libc.prctl(option, *(ctypes.c_void_p(value) for value in rest), None, None) != 0:
            raise OSError(ctypes.get_errno(), f"prctl({option}): {os.strerror(ctypes.get_errno())}")


def _program(which: int, arch: int, programs: bool, driver: bool, lenient: bool) -> bytes:
    def step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("HBBI", code, yes, no, value)

    def when(number: int, argument: int, test: int, value: int, yes: int, no: int) -> bytes:
        """Return ``yes`` for one call if the test of its argument holds, else ``no``."""
        return (
            step(_EQUAL, number, 0, 4) + step(_LOAD, _ARGUMENT + 8 * argument) + step(test, value,
                0, 1) + step(_RETURN, yes) + step(_RETURN, no)
        )  # fmt: skip

    def unless(
        number: int, argument: int, values: tuple[int, ...], mask: int = 0xFFFFFFFF
    ) -> bytes:
        """Refuse one call if its masked argument is one of ``values``; allow it otherwise."""
        last = len(values) - 1
        tests = b"".join(
            step(_EQUAL, value, last - place, place == last) for place, value in enumerate(values)
        )
        return (
            step(_EQUAL, number, 0, len(values) + 4) + step(_LOAD,
                _ARGUMENT + 8 * argument) + step(_AND, mask)
            + tests + step(_RETURN, _REFUSE) + step(_RETURN, _ALLOW)
        )  # fmt: skip

    own_process, open_call = os.getpid(), _OPEN[which]
    parts = [
        step(_LOAD, _ARCH),
        step(_EQUAL, arch, 1, 0),
        step(_RETURN, _KILL_PROCESS),
        step(_LOAD, _NUMBER),
    ]
    if which == 0:
        # On x86-64 a second set of numbers for the same calls begins here.
        parts += [step(_AT_LEAST, 0x40000000, 0, 1), step(_RETURN, _REFUSE)]
    parts += [
        when(_KILL[which], 0, _EQUAL, own_process, _ALLOW, _REFUSE),
        when(_TGKILL[which], 0, _EQUAL, own_process, _ALLOW, _REFUSE),
        # The process must end with its keeper, and the server must see its open files.
        unless(_PRCTL[which], 0, (_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE)),
        unless(_FCNTL[which], 1, (_F_SETOWN, _F_SETOWN_EX, _F_SETLEASE)),
        when(_PRLIMIT64[which], 0, _EQUAL, 0, _ALLOW, _REFUSE),
        unless(open_call, 1, _OPENING_REFUSED, _OPENING_BITS) if open_call is not None else b"",
        unless(_OPENAT[which], 2, _OPENING_REFUSED, _OPENING_BITS),
        # The flags of these calls lie in memory, which a filter cannot read. Without clone3 the C
        # library uses clone.
        step(_EQUAL, _OPENAT2[which], 0, 1) + step(_RETURN, _NO_SUCH_CALL),
        step(_EQUAL, _CLONE3[which], 0, 1) + step(_RETURN, _NO_SUCH_CALL),
        (
            when(_CLONE[which], 0, _ANY_BIT, _CLONE_NEW, _REFUSE, _ALLOW)
            if programs
            else when(_CLONE[which], 0, _ANY_BIT, _CLONE_THREAD, _ALLOW, _REFUSE)
        ),
        unless(_SOCKET[which], 0, _INTERNET) if lenient else b"",
        when(_SOCKET[which], 0, _EQUAL, _LOCAL, _ALLOW, _REFUSE) if driver and not lenient else b"",
    ]
    refused = (
        _EVERYWHERE | ({} if lenient else _NEVER_NEEDED) | ({} if programs else _WITHOUT_PROGRAMS)
    )
    refused |= {} if lenient or driver else _OF_A_DRIVER
    for numbers in refused.values():
        if numbers[which] is not None:
            parts += [step(_EQUAL, numbers[which], 0, 1), step(_RETURN, _REFUSE)]
    return b"".join([*parts, step(_RETURN, _ALLOW)])
