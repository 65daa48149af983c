"""What takes long and needs no model, made in a process of its own meanwhile.

These are the lessons, and the differences that are demonstrated.
"""

import concurrent.futures
import contextlib
import multiprocessing
import os

from parity.reading import known, lessons


def call(make, *what):
    """The same here and now."""
    return make(*what)


@contextlib.contextmanager
def running(port_names, paths=None):
    """A function like ``call`` that hands out what was made meanwhile.

    What is asked for before it was begun is made here, so that both processes
    have work to the end. Where there is one core alone, or the process ends,
    as it does where memory is short, a thing is made when it is asked for.
    Behind the ``with`` block the process is ended, whatever it was at.

    Args:
        port_names: the ports that may be used.
        paths: the lessons; by default all.
    """
    if (os.cpu_count() or 1) < 2:
        yield call
        return
    jobs = [(known.text,), *((lessons.shown, path) for path in (
        lessons.paths() if paths is None else paths))]
    others = set(multiprocessing.active_children())
    with concurrent.futures.ProcessPoolExecutor(
            1, multiprocessing.get_context("spawn")) as pool:
        begun = {job: pool.submit(*job, tuple(port_names)) for job in jobs}

        def made(make, *what):
            *job, _ = make, *what
            if tuple(job) in begun and not begun[tuple(job)].cancel():
                with contextlib.suppress(concurrent.futures.BrokenExecutor):
                    return begun[tuple(job)].result()
            return make(*what)

        try:
            yield made
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
