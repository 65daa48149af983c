"""Every known cause, in one list.

The files of ``parity/causes/faults`` hold the causes, one tuple a topic. All
that uses causes takes them from here.
"""

import contextlib
import functools
import importlib

from parity.causes.cause import ANY, ARRAYS, OTHER

#: The files, in the order in which their causes are tried.
FILES = ("norms", "attention", "attention_positions", "masks", "arrays",
         "tables", "network", "convolutions", "experts", "training",
         "training_steps", "gradients", "generation", "stacks")

_more = []


@functools.cache
def causes():
    """Every Cause, in the order in which they are tried."""
    return (*(cause for file in FILES for cause in importlib.import_module(
        f"parity.causes.faults.{file}").CAUSES), *_more)


@contextlib.contextmanager
def added(cause):
    """Know one more Cause, for a while."""
    _more.append(cause)
    try:
        _forget()
        yield cause
    finally:
        _more.remove(cause)
        _forget()


def _forget():
    for function in causes, values, functions:
        function.cache_clear()


def faults():
    """The causes that are put into ports and are to be found there."""
    return tuple(cause for cause in causes()
                 if cause.put and not cause.equivalent)


def equivalents():
    """What is put into ports and looks like a fault, and is none."""
    return tuple(cause for cause in causes()
                 if cause.put and cause.equivalent)


def by_name(name):
    """The Cause of this name."""
    return next(cause for cause in causes() if cause.name == name)


@functools.cache
def values(of, setting):
    """The wrong values of a setting of a formula, the same once."""
    by_value = {}
    for cause in causes():
        if of in cause.of and cause.explained and setting in cause.settings:
            for value in alternatives(cause.settings[setting]):
                by_value.setdefault(value, cause)
    by_value.pop(OTHER, None)
    return by_value


@functools.cache
def functions(of, setting):
    """{value: function} of a setting whose values are functions."""
    return {value: cause.compute for value, cause in values(
        of, setting).items() if cause.compute}


def alternatives(value):
    """The values of a setting that are one cause."""
    return value if isinstance(value, tuple) else (value,)


def named(of, settings, sound):
    """The causes that some differences are, as few as will do.

    Args:
        of: by which formula they were found.
        settings: {setting: value} of the model that is held to be wrong.
        sound: {setting: value} of the other one, of these and more settings.

    Returns:
        [(Cause, the settings that it accounts for)]; nothing is said of
        settings that no cause has.
    """
    fitting = []
    for cause in causes():
        if not cause.explained or not {of, ARRAYS} & {*cause.of}:
            continue
        hits = _hits(cause.settings, settings)
        beside = [(sound[one], value) for name, value in cause.beside.items()
                  for one in sound if _called(one, name)]
        if hits and all(_is(*each) for each in beside):
            fitting.append((len(hits), ANY not in cause.settings,
                            len(beside), cause, hits))
    left, selection = set(settings), []
    for *_, cause, hits in sorted(
            fitting, key=lambda each: each[:3], reverse=True):
        if hits <= left:
            left -= hits
            selection.append((cause, hits))
    return selection


def _hits(settings, actual):
    """The settings that are a cause's; none unless all of its own are."""
    hits = set()
    for name, value in settings.items():
        here = {one for one in actual
                if _called(one, name) and _is(actual[one], value)}
        if not here:
            return set()
        hits |= here
    return hits


def _called(setting, name):
    """Whether a setting is what a cause calls so; an input's is a value's."""
    return name in (ANY, setting.removeprefix("input's "))


def _is(value, expected):
    return any(getattr(value, "word", value) == one
               for one in alternatives(expected))
