"""Fast searches so long that they lay a tied table out anew."""

import numpy as np
import pytest

from transformer_contract.generation import GenerationConfig
from transformer_contract.weights import probe_weights
from parity import ports
from parity.check import cases
from parity_tests.support.engines import usable

#: As many tokens as make each fast form do so.
TOKENS = 64


@pytest.fixture(scope="module", params=("numpy", *ports.known_ports()))
def forms(request):
    """A port's readable and fast engines."""
    return [usable(request.param, form) for form in ports.FORMS]


@pytest.mark.long(16)
@pytest.mark.parametrize("changes", (
    {"tied": "all"}, {"tied": "output", "output_bias": True},
    {"tied": "all", "output_scale": "root"}, {"tied": "none"}),
    ids=lambda changes: ", ".join(map(str, changes.values())))
@pytest.mark.parametrize("method, rows", (
    ("greedy", 1), ("greedy", 3), ("sample", 2), ("beam", 1)))
def test_equal_searches(forms, changes, method, rows):
    """They write what the readable form's do, and leave the model as it is."""
    config = cases.test_size("practical")
    config = config.replace(source_vocab=config.target_vocab,
                            max_length=TOKENS + 1, **changes)
    settings = GenerationConfig(method=method, max_tokens=TOKENS, beam=3)
    source = np.random.default_rng(0).integers(
        3, config.source_vocab, (rows, 7))
    readable, fast = (
        form.build("transformer", config, probe_weights(config))
        for form in forms)
    projection = fast.projection
    truth = forms[0].generate(readable, source, settings)
    found = forms[1].generate(fast, source, settings)
    assert fast.projection is projection
    np.testing.assert_array_equal(found["tokens"], truth["tokens"])
    np.testing.assert_allclose(found["scores"], truth["scores"], rtol=1e-12)
