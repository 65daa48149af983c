"""What takes long and needs none of the pages' values, made elsewhere.

In other processes: searches, variants, lessons, differences that are
demonstrated, faults, and each dialect's model and fields. What was made so
before, of the same files, is taken as it was kept.
"""

import concurrent.futures
import contextlib
import multiprocessing
import os
import threading

from transformer_contract.dialects.table import SYSTEMS
from parity.reading import (
    breaking, dialects, lessons, reference_pages, result_cache, sentence,
    shipped_model)

#: How many processes at most; each imports every framework. The one that asks
#: imports none, and mostly waits.
PROCESSES = 3


def call(make, *what):
    """The same here and now."""
    return make(*what)


def jobs(port_names, paths=None):
    """(function, arguments) of each thing, those that take longest first."""
    names = tuple(port_names)
    yield shipped_model.run_searches, names
    for number in range(len(shipped_model.OTHERS)):
        yield shipped_model.run_other, number, names
    yield reference_pages.differences_text, names
    yield breaking.shipped,
    yield sentence.shipped,
    for path in lessons.paths() if paths is None else paths:
        yield lessons.shown, path, names
    for name in ("", *SYSTEMS):
        yield dialects.ran, name, names
    for one in SYSTEMS.values():
        yield dialects.parted, dialects.configured(one)


@contextlib.contextmanager
def running(port_names, paths=None, first=(), folder=None):
    """A function like ``call`` that hands out what was made meanwhile.

    What is asked for before it was begun is made here, so that all processes
    have work to the end. Where there is one core alone, or a process ends, as
    it does where memory is short, a thing is made when it is asked for. Behind
    the ``with`` block the processes are ended, whatever they were at.

    Args:
        port_names: the ports that are used, in the order of the pages.
        paths: the lessons; by default all.
        first: jobs before all others.
        folder: the ``result_cache`` of results; None for none.
    """
    def here(*job):
        return result_cache.compute(folder, *job) if folder else call(*job)

    every = [*first, *jobs(port_names, paths)]
    before = {job: one for job in every for one in (
        result_cache.load(folder, job) if folder else ())}
    waiting, begun = [job for job in every if job not in before], {}
    count = min(PROCESSES, os.cpu_count() or 1)
    if count == 1 or not waiting:
        yield lambda *job: before[job] if job in before else here(*job)
        return
    others = set(multiprocessing.active_children())
    lock = threading.RLock()
    with concurrent.futures.ProcessPoolExecutor(
            count, multiprocessing.get_context("spawn"),
            result_cache.watch) as pool:
        def begin(_=None):
            with lock, contextlib.suppress(RuntimeError):  # none is left
                if waiting:
                    job = waiting.pop(0)
                    begun[job] = pool.submit(
                        *([result_cache.compute, folder] if folder else []),
                        *job)
                    begun[job].add_done_callback(begin)

        def made(*job):
            if job in before:
                return before[job]
            with lock:
                if job in waiting:
                    waiting.remove(job)
            if job in begun:
                with contextlib.suppress(concurrent.futures.BrokenExecutor):
                    return begun[job].result()
            return here(*job)

        for _ in range(count):
            begin()
        try:
            yield made
        finally:
            waiting.clear()
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
