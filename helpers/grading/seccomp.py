"""System calls that a sandbox refuses, as a seccomp filter for Linux on x86-64.

bubblewrap takes a compiled filter: a classic BPF program over ``struct seccomp_data`` (number,
architecture, instruction pointer, arguments). Refused with ``EPERM`` is what makes or enters
namespaces, mounts, traces other processes, or leaves objects behind that outlive a process; and
sockets of families that a network namespace does not keep in, as those to a virtual machine's host.
"""

from __future__ import annotations

import struct

_ARCH_X86_64 = 0xC000003E
_X32 = 0x40000000  # numbers from here on are calls of the x32 ABI
_NUMBER, _ARCH, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_EPERM, _ENOSYS = 0x00050000 + 1, 0x00050000 + 38

_SOCKET, _CLONE, _CLONE3 = 41, 56, 435
_FAMILIES = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK
_NEW_NAMESPACE = 0x7E020000  # the CLONE_NEW... flags: ns, cgroup, uts, ipc, user, pid, net

REFUSED = {
    # shared memory, semaphores and queues that stay when their process has gone, and files in
    # memory, which count as no process's memory
    "memfd_create": 319, "memfd_secret": 447,
    "shmget": 29, "semget": 64, "msgget": 68, "mq_open": 240,
    # other processes
    "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
    "pidfd_getfd": 438, "process_madvise": 440,
    # namespaces and mounts
    "unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161,
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432,
    "fspick": 433, "mount_setattr": 442,
    # the machine
    "reboot": 169, "swapon": 167, "swapoff": 168, "sethostname": 170, "setdomainname": 171,
    "init_module": 175, "finit_module": 313, "delete_module": 176, "kexec_load": 246,
    "kexec_file_load": 320, "settimeofday": 164, "clock_settime": 227, "adjtimex": 159,
    "clock_adjtime": 305, "acct": 163, "syslog": 103, "iopl": 172, "ioperm": 173, "quotactl": 179,
    # parts of the kernel that no lab needs
    "keyctl": 250, "add_key": 248, "request_key": 249, "bpf": 321, "perf_event_open": 298,
    "userfaultfd": 323, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
    "name_to_handle_at": 303, "open_by_handle_at": 304, "fanotify_init": 300, "lookup_dcookie": 212,
}  # fmt: skip
"""Names and numbers of the calls that fail with EPERM (the kernel's table for x86-64)."""


def _step(code: int, value: int, on_true: int = 0, on_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, on_true, on_false, value)


def program() -> bytes:
    """The filter. Anything but x86-64 is killed; ``clone3`` does not exist, so glibc uses
    ``clone``, whose flags can be read."""
    steps = [
        _step(_LOAD, _ARCH),
        _step(_EQUAL, _ARCH_X86_64, on_true=1),
        _step(_RETURN, _KILL),
        _step(_LOAD, _NUMBER),
        _step(_AT_LEAST, _X32, on_false=1),
        _step(_RETURN, _KILL),
        _step(_EQUAL, _CLONE3, on_false=1),
        _step(_RETURN, _ENOSYS),
    ]
    for number in sorted(REFUSED.values()):
        steps += [_step(_EQUAL, number, on_false=1), _step(_RETURN, _EPERM)]
    allowed = [
        step
        for family in _FAMILIES
        for step in (_step(_EQUAL, family, on_false=1), _step(_RETURN, _ALLOW))
    ]
    steps += [
        _step(_EQUAL, _SOCKET, on_false=len(allowed) + 2),
        _step(_LOAD, _FIRST_ARGUMENT),
        *allowed,
        _step(_RETURN, _EPERM),
        _step(_EQUAL, _CLONE, on_false=3),
        _step(_LOAD, _FIRST_ARGUMENT),
        _step(_ANY_BIT, _NEW_NAMESPACE, on_false=1),
        _step(_RETURN, _EPERM),
        _step(_RETURN, _ALLOW),
    ]
    return b"".join(steps)
