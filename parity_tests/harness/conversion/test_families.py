"""A conversion for each family: other libraries' models into our ports."""

import numpy as np
import pytest

from contract.dialects.table import SYSTEMS
from contract.weights import initial_weights
from parity import ports
from parity.originals import sizes
from parity.originals.proof import random_state
from parity.originals.run import original
from parity_tests.harness.conversion.test_find import agrees


def made(name):
    """Hugging Face's model of a dialect and our torch port's."""
    import torch
    kind = original(name)
    if isinstance(kind, str):
        pytest.skip(f"not checked: {kind}")
    dialect = kind.provable(SYSTEMS[name])
    described = sizes.described(dialect, 0, **kind.DRAWN)
    theirs = kind(dialect, described)
    theirs.load(random_state(dialect, theirs, 0))
    config = dialect.config(described, theirs.arrays())
    draw = np.random.default_rng(5)

    def ids(vocab, length):
        tokens = draw.integers(0, vocab - 1, (2, length))
        return torch.from_numpy(tokens + (tokens >= config.pad_id))
    source, target = ids(config.source_vocab, 6), ids(config.target_vocab, 5)
    mask = torch.ones(2, 1, 1, 6, dtype=torch.bool)
    later = torch.ones(5, 5, dtype=torch.bool).tril().expand(2, 1, 5, 5)
    given, inputs = {
        "encoder": ({"input_ids": source}, (source, None, mask, None)),
        "decoder": ({"input_ids": target, "use_cache": False},
                    (None, target, None, later)),
        "both": ({"input_ids": source, "decoder_input_ids": target,
                  "use_cache": False}, (source, target, mask, later))}[
                      config.stacks]
    if config.token_types:
        given["token_type_ids"] = torch.zeros_like(source)
    ours = ports.engine("torch").build(
        "transformer", config, initial_weights(config))
    return (theirs.model, (), given), (ours, inputs, {})


@pytest.mark.long
@pytest.mark.parametrize("name", [
    "bert", "gpt2", "llama", "t5", "bart"])
def test_into_ours_and_back(name):
    theirs, ours = made(name)
    agrees(theirs, ours)
