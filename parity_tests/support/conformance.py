"""Conformance: a port answers as the reference does, in either form.

A test of `parity_tests/ports/conformance` is a plain test of ``subject``, an
engine; `pytest --port NAME` names it. One that is ``like_the_reference`` yields
(place, array): the reference is asked the same, and every array is compared.
"""

import contextlib
import functools
import importlib
import importlib.util
from unittest import mock

import numpy as np
import pytest

from transformer_contract.batch import Batch
from transformer_contract.config import PLAIN
from parity_io.errors import InputError
from transformer_contract.weights import probe_weights
from parity import assert_parity, ports
from parity.check import cases
from parity.numerics.tolerances import (
    FLOAT64_GRADIENT, FLOAT64_LIMIT, score_limit)

READABLE, FAST = "readable", "fast"
BOTH = READABLE, FAST

#: How the places of what was computed in it begin.
FLOAT32 = "float32"

#: More words than 8 bits count.
WORDS = 300

SMALL = PLAIN.replace(
    source_vocab=WORDS, target_vocab=WORDS, d_model=6, n_heads=2, d_ff=5,
    n_encoder_layers=1, n_decoder_layers=1, max_length=130, pad_id=3,
    dropout=0.2, attention_bias="none")  # a key's has no gradient but rounding

#: A table of no whole number of blocks, whatever a block has.
ODD = PLAIN.replace(
    source_vocab=203, target_vocab=203, d_model=12, n_heads=2, d_ff=10,
    n_encoder_layers=1, n_decoder_layers=1, max_length=121, norm_eps=1e-5,
    tied="all", dropout=0.0)

#: Tokens of a search for which fast forms lay weights out anew.
MANY = 70

#: So many tokens that blocks of attention are doubled, and one is not full.
FAR = 4100


def like_the_reference(*forms, trained=False):
    """A test of what a generator of (place, array) yields of an engine.

    Args:
        forms: of the engine, each a parameter of the test.
        trained: whether arrays follow from gradients, which have a limit of
            their own.
    """
    def decorate(question):
        truth = functools.cache(lambda: {
            place: np.copy(array)
            for place, array in question(ports.engine("numpy"))})

        def test(subject):
            missing, differences = dict(truth()), []
            for place, array in question(subject):
                assert place in missing, f"{place}: not of the reference"
                try:
                    assert_parity(np.asarray(array), missing.pop(place),
                                  name=place, limit=limit(place, trained))
                except AssertionError as error:
                    differences.append(str(error))
            assert not differences, "\n".join(differences)
            assert not missing, f"not of the port: {[*missing]}"

        functools.update_wrapper(test, question)
        del test.__wrapped__  # its argument is another
        return pytest.mark.forms(*forms)(test)
    return decorate


def quick(*others):
    """A mark of a test that `make test` always runs, of PyTorch and MLX.

    They are those that notice the most planted edits in a second, as many as
    take a few seconds a port.

    Args:
        others: ports for which it is a part of a second too.
    """
    return pytest.mark.quick("torch", "mlx", *others)


def limit(place, trained):
    """How much the array of a place may differ."""
    if place.startswith(FLOAT32):
        return score_limit(FLOAT32, 0.0)
    if trained or place.startswith("gradient "):
        return FLOAT64_GRADIENT
    return FLOAT64_LIMIT


def equal(place, found, expected):
    """Fail unless two values are the same; arrays to the bit."""
    __tracebackhide__ = True
    same = (np.array_equal(found, expected)
            if isinstance(expected, np.ndarray) else found == expected)
    assert same, f"{place}: expected {expected!r}, found {found!r}"


def holds(place, condition, words):
    """Fail with a place and words unless a condition holds."""
    __tracebackhide__ = True
    assert condition, f"{place}: {words}"


def refuses(place, function, *arguments, kind=InputError, **keywords):
    """Fail unless a call raises an error of a kind."""
    __tracebackhide__ = True
    found = "no error"
    try:
        function(*arguments, **keywords)
    except kind:
        return
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
    raise AssertionError(f"{place}: expected {kind.__name__}, found {found}")


def raises(kind, function, *arguments, **keywords):
    """Whether a call raises an error of a kind."""
    try:
        function(*arguments, **keywords)
    except kind:
        return True
    return False


def lowered(engine, module, **numbers):
    """Lower numbers of a form's module while it computes, if it has them.

    A branch that no machine's memory reaches is taken by a lower number.
    """
    name = f"{engine.__package__}.{module}"
    if importlib.util.find_spec(name):
        found = importlib.import_module(name)
        here = {key: value for key, value in numbers.items()
                if hasattr(found, key)}
        if here:
            return mock.patch.multiple(found, **here)
    return contextlib.nullcontext()


def model_of(engine):
    """A small model of many words, whose answers depend on their sources."""
    weights = probe_weights(SMALL, 3)
    return engine.build("transformer", SMALL, {
        name: array if name.endswith(("bias", "scale")) else 2 * array
        for name, array in weights.items()})


def batch_of(what, *shape):
    """A Batch with sources and targets of one shape, and some padding."""
    source, target = (cases.ids(f"{name} {what}", *shape, WORDS)
                      for name in ("source", "target"))
    source[0, -2:] = target[0, -1:] = SMALL.pad_id
    return Batch.of_ids(source, target, SMALL.pad_id)
