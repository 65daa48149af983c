"""Memory that the C library keeps, so that a pass does not fault it in anew."""

import contextlib
import ctypes

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4


def keep_freed():
    """Ask glibc to keep freed memory for the next array; elsewhere, nothing.

    A forward pass allocates the same hundreds of megabytes each time. Handed
    back to the system in between, every page is cleared and mapped again.
    """
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL("libc.so.6")
        library.mallopt(M_MMAP_MAX, 0)
        library.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
