"""Freed memory that the C library keeps, so that passes are faster."""

import contextlib
import ctypes

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
