"""The lessons, run in a process of their own while other pages are made."""

import concurrent.futures
import contextlib
import multiprocessing
import os

from parity.reading import lessons


@contextlib.contextmanager
def running(port_names, paths=None):
    """A function (path, port names) that hands out a lesson once it has run.

    Where there is one core alone, or the process ends, as it does where memory
    is short, a lesson runs when it is asked for. Behind the ``with`` block the
    process is ended, whatever it was at.

    Args:
        port_names: the ports that lessons may use.
        paths: the lessons; by default all.
    """
    if (os.cpu_count() or 1) < 2:
        yield lessons.shown
        return
    others = set(multiprocessing.active_children())
    with concurrent.futures.ProcessPoolExecutor(
            1, multiprocessing.get_context("spawn")) as pool:
        begun = {path: pool.submit(lessons.shown, path, tuple(port_names))
                 for path in (
                     lessons.paths() if paths is None else paths)}

        def shown(path, names):
            if path in begun:
                with contextlib.suppress(concurrent.futures.BrokenExecutor):
                    return begun[path].result()
            return lessons.shown(path, names)

        try:
            yield shown
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
