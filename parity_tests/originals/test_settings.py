"""No setting of transformers' configurations is passed over.

Each field of a configuration, and each that the library's code reads, is
changed alone: outputs are the library's again, or the dialect refuses it.
"""

import inspect
import re
import sys

import numpy as np
import pytest

from transformer_contract.dialects.table import SYSTEMS
from parity_io.errors import InputError
from parity.numerics.comparator import MATCH, ZERO, compare
from parity.numerics.tolerances import FLOAT64_LIMIT
from parity_tests.originals import run, random_models
from parity_tests.originals.proof import forward, random_state
from parity_tests.originals.test_originals import original
from parity_tests.support.engines import usable

#: Activations, of which a dialect has some.
WORDS = ("relu", "gelu", "gelu_new", "silu", "quick_gelu")

#: What says how a model is asked, not what it computes.
ASKED = {"pad_token_id", "is_encoder_decoder", "return_dict",
         "attn_implementation"}

#: How the outputs of a setting fell out.
SAME, CHANGED, REFUSED = "same", "changed", "refused"


def names_of(config):
    """The names under which the library reads settings."""
    code = sys.modules[
        type(config).__module__.replace("configuration", "modeling")]
    return sorted({*config.to_dict(), *config.attribute_map, *re.findall(
        r"config\.([a-z]\w+)", inspect.getsource(code))} - ASKED)


def others(value):
    """Values that a setting may have instead."""
    match value:
        case bool():
            return [not value]
        case int():
            return [1, 2 * value]
        case float():
            return [value + 0.25]
        case str():
            return [word for word in WORDS if value in WORDS]
        case None:
            return [True, 1, 2]
        case _:
            return []


def outcome(kind, dialect, described, state, before):
    """How the outputs of a described model fell out; None if it is none."""
    try:
        theirs = kind(dialect, described)
        theirs.load(state)
        arrays = theirs.arrays()
        config, question = theirs.asked(dialect.config(described, arrays), 1)
        weights = theirs.completed(
            dialect.read(arrays, config), question.source)
        answer = theirs.run(question)
    except InputError:
        return REFUSED
    except Exception:  # whatever the library says of such a model
        return None
    steps = forward(usable("numpy"), config, weights, question)
    for name, expected in answer.items():
        if step := dialect.step_of(name, config):
            found = compare(steps[step], expected, FLOAT64_LIMIT)
            assert found.verdict in (MATCH, ZERO), (name, found.error)
    after = answer["logits"]
    return SAME if np.array_equal(before, after) else CHANGED


@pytest.mark.long(8)
@pytest.mark.parametrize("name", [
    name for name, (needs, *_) in run.ORIGINALS.items()
    if needs == "transformers"])
def test_no_setting_is_passed_over(name):
    kind = original(name)
    dialect = kind.provable(SYSTEMS[name])
    described = random_models.described(dialect, 5, **kind.DRAWN)
    first = kind(dialect, described)
    state = random_state(dialect, first, 5)
    first.load(state)
    _, question = first.asked(dialect.config(described, first.arrays()), 1)
    before, found = first.run(question)["logits"], {}
    for key in names_of(first.model.config):
        value = described.get(key, getattr(first.model.config, key, None))
        for other in others(value):
            try:
                found[key, other] = outcome(
                    kind, dialect, described | {key: other}, state, before)
            except AssertionError as error:
                pytest.fail(f"{key}={other!r} is passed over: {error}")
    for each in (SAME, CHANGED, REFUSED):
        assert each in found.values(), found
