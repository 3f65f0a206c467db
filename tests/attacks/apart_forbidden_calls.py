# 00a | compile+picture | makes every system call that no arithmetic needs
import ctypes
import platform

libc = ctypes.CDLL(None, use_errno=True)
numbers = {
    'ptrace': 101, 'syslog': 103, 'keyctl': 250, 'io_setup': 206, 'inotify_init1': 294, 'perf_event_open': 298, 'fanotify_init': 300,
    'open_by_handle_at': 304, 'setns': 308, 'kcmp': 312, 'bpf': 321, 'userfaultfd': 323, 'io_uring_setup': 425, 'open_tree': 428,
    'fsopen': 430, 'pidfd_open': 434, 'openat2': 437, 'pidfd_getfd': 438, 'process_madvise': 440, 'mount_setattr': 442,
    'memfd_create': 319, 'memfd_secret': 447, 'mount': 165, 'chroot': 161, 'modify_ldt': 154,
}
for name, number in numbers.items() if platform.machine() == 'x86_64' else ():
    if libc.syscall(number, -1, -1, -1, -1, -1, -1) != -1 or ctypes.get_errno() not in (1, 38):
        raise SystemExit(@MARK@ + name)
