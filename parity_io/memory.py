"""How much memory there is; and what is kept of it, for faster passes."""

import contextlib
import ctypes
import os

from parity_io.errors import InputError

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4


def keep_freed():
    """Ask glibc to keep freed memory for the next array; else do nothing.

    A forward pass allocates the same hundreds of megabytes each time. If it
    goes back to the system in between, every page is cleared and mapped again.
    """
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL("libc.so.6")
        library.mallopt(M_MMAP_MAX, 0)
        library.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def check_memory(size, what):
    """Raise InputError where so many bytes are more than the memory."""
    most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if size > most:
        raise InputError(
            f"{str(what)!r} needs {size / 2**30:.1f} GiB, and this machine "
            f"has {most / 2**30:.1f}; choose a smaller model or dtype.")
