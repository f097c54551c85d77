"""Linux namespaces by the system's own calls: a process sees no other, no network, few files.

Nothing here needs a privilege where users may make namespaces of users, nor a program beside
Python. What cannot be done raises OSError; :func:`can_be_kept_apart` tells beforehand.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Of <sched.h>, <sys/mount.h> and <sys/prctl.h>.
NEW_USER, NEW_FILES, NEW_PROCESSES = 0x10000000, 0x00020000, 0x20000000
NEW_NETWORK, NEW_IPC = 0x40000000, 0x08000000
READ_ONLY, NO_SUID, REMOUNT, BIND, RECURSIVE, PRIVATE = 1, 2, 32, 4096, 16384, 1 << 18
DETACH, RELATIME = 2, 1 << 21
PARENT_DIES, NO_NEW_PRIVILEGES, SUBREAPER, DROP_CAPABILITY = 1, 38, 36, 24


def libc() -> ctypes.CDLL:
    """The system's C library, whose calls leave their error in ctypes.get_errno()."""
    return ctypes.CDLL(None, use_errno=True)


def _must(result: int, what: str) -> None:
    if result:
        raise OSError(ctypes.get_errno(), what)


def can_be_kept_apart() -> bool:
    """Try, in processes that can be spared, whether this system lets us make namespaces."""
    if sys.platform != "linux":
        return False
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException), tempfile.TemporaryDirectory() as place:
            own_namespaces()
            grandchild = os.fork()
            if not grandchild:
                with contextlib.suppress(BaseException):
                    own_files(place, [])
                    give_up_rights()
                    os._exit(0)
                os._exit(1)
            os._exit(os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]))
        os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def own_namespaces() -> None:
    """Leave the system's users, files, network; a child will leave its processes as well."""
    user, group = os.getuid(), os.getgid()
    kinds = NEW_USER | NEW_FILES | NEW_PROCESSES | NEW_NETWORK | NEW_IPC
    _must(libc().unshare(kinds), "unshare")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    _must(libc().mount(None, b"/", None, RECURSIVE | PRIVATE, None), "private mounts")


def own_files(root: str, hide: list[str]) -> None:
    """Take an empty folder for the root, with Python and its packages, which cannot be changed."""
    _mount("tmpfs", root, "tmpfs", NO_SUID, "size=256m,mode=755")
    for path in needed():
        _show(path, root)
    for path in hide:
        if os.path.isdir(root + path):
            _mount("tmpfs", root + path, "tmpfs", NO_SUID | READ_ONLY)
    for path in ("/tmp", "/dev/shm", "/home/student"):
        os.makedirs(root + path, exist_ok=True)
    os.chdir(root)
    _must(libc().pivot_root(b".", b"."), "pivot_root")
    _must(libc().umount2(b".", DETACH), "umount")
    os.chdir("/")


def needed() -> list[str]:
    """What Python and its packages need of the system's files, but nothing of this project."""
    import cgmm

    paths = ["/usr", "/bin", "/lib", "/lib64", "/lib32", "/etc/ld.so.cache", "/etc/fonts"]
    paths += [f"/dev/{name}" for name in ("null", "zero", "random", "urandom")]
    python = [sys.prefix, sys.base_prefix, *sys.path, str(Path(cgmm.__file__).parent)]
    paths += [path for path in python if path and not HERE.is_relative_to(path)]
    found = [path for path in dict.fromkeys(paths) if os.path.exists(path)]
    return [
        path for path in found
        if not any(path != above and Path(path).is_relative_to(above) for above in found)
    ]  # fmt: skip


def _show(path: str, root: str) -> None:
    """Make a file or folder appear below another root, to be read only."""
    target = root + path
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(path):
        os.symlink(os.readlink(path), target)
        return
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
    else:
        open(target, "w").close()
    _mount(path, target, None, BIND | RECURSIVE)
    flags = os.statvfs(target).f_flag
    kept = flags & 0xC0E | (RELATIME if flags & 4096 else 0)  # nosuid, nodev, noexec, times
    device = path.startswith("/dev/")
    _mount(None, target, None, REMOUNT | BIND | kept | (0 if device else READ_ONLY | NO_SUID))


def _mount(source, target, kind, flags, options=None) -> None:
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    options = None if options is None else options.encode()
    _must(libc().mount(*texts, ctypes.c_ulong(flags), options), f"mount {target}")


def give_up_rights() -> None:
    """Keep no right to change the mounts, nor a way to get it back."""
    system = libc()
    _must(system.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no new privileges")
    for capability in range(64):
        system.prctl(DROP_CAPABILITY, capability, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    _must(system.capset(header, (ctypes.c_uint32 * 6)()), "capabilities")
