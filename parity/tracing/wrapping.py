"""Methods of classes, wrapped for one thread while it traces.

A method belongs to the whole process, a trace to its caller. So a method is
replaced when the first thread wraps it, and put back when the last has done
with it. The replacement asks for the wrappers of its own thread; a thread that
has none calls the method as it was.
"""

import contextlib
import functools
import os
import threading


class _Mine(threading.local):
    """The wrappers of this thread: {(class, name): [wrapper, ...]}; and how
    often it holds the lock for a fork."""

    def __init__(self):
        self.wrappers, self.forking = {}, 0


class _Replaced:
    """A method of a class that is replaced, and by how many it is wrapped."""

    def __init__(self, key):
        kind, name = self.key = key
        self.before = getattr(kind, name)
        self.own, self.count = name in vars(kind), 0

        # The signature stays that of the method.
        @functools.wraps(self.before, updated=())
        def method(module, /, *args, **keywords):
            call = functools.partial(self.before, module)
            for wrapper in _mine.wrappers.get(key, ()):
                call = functools.partial(wrapper, call, module)
            return call(*args, **keywords)
        setattr(kind, name, method)

    def put_back(self):
        """Leave the class as it was found."""
        kind, name = self.key
        if self.own:
            setattr(kind, name, self.before)
        else:
            delattr(kind, name)


_mine, _lock = _Mine(), threading.RLock()
_replaced: dict = {}


@contextlib.contextmanager
def wrapped(wrappers):
    """Wrap methods of classes for this thread, during a ``with`` block.

    Args:
        wrappers: {(class, name of its method): wrapper}. A wrapper is called
            with the method, bound; its object; and the call's own arguments.
            Of several, the one that came last is called first.
    """
    with contextlib.ExitStack() as stack:
        for key, wrapper in wrappers.items():
            _wrap(key, wrapper)
            stack.callback(_unwrap, key)
        yield


def _wrap(key, wrapper):
    with _lock:
        if key not in _replaced:
            _replaced[key] = _Replaced(key)
        _replaced[key].count += 1
        _mine.wrappers.setdefault(key, []).append(wrapper)


def _unwrap(key):
    with _lock:
        mine = _mine.wrappers[key]
        mine.pop()
        if not mine:
            del _mine.wrappers[key]
        _less(key, 1)


def _less(key, count):
    """Count fewer wrappers of a method, which is put back with the last."""
    _replaced[key].count -= count
    if not _replaced[key].count:
        _replaced.pop(key).put_back()


def _before_fork():
    """Let no other thread wrap anything while this one forks."""
    _lock.acquire()
    _mine.forking += 1


def _after_fork():
    """Let others wrap again. A library that forks by itself may say so
    without having said it before."""
    if _mine.forking:
        _mine.forking -= 1
        _lock.release()


def _alone():
    """Forget other threads: a forked process has only the one that forked."""
    global _lock
    _lock = threading.RLock()  # whoever held the old one may be no more
    _mine.forking = 0
    for key, replaced in [*_replaced.items()]:
        _less(key, replaced.count - len(_mine.wrappers.get(key, ())))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork,
                        after_in_child=_alone)
