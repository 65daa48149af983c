"""The sentence of the front page, as data."""

import base64
import json

import numpy as np
import pytest

from parity.reading import sentence
from parity.reading.shipped_model import Shipped


@pytest.fixture(scope="module")
def values():
    return Shipped()


@pytest.fixture(scope="module")
def shipped(values):
    text = sentence.shipped()
    assert "//" not in text
    return json.loads(text.partition("=")[2].rstrip(";\n"))


def unpacked(one, change, kind):
    """Weights [layers heads queries keys] from 0 to 1."""
    packed = one["changes"][change]["weights"][kind]
    seen = np.frombuffer(base64.b64decode(packed["bytes"]), np.uint8)
    return seen.reshape(packed["shape"]) / 255


def test_the_answers_are_right_until_something_is_taken_away(shipped):
    """But for the divisor: this model then looks at less, and still reads."""
    changed = {word: 0 for word in sentence.CHANGES}
    assert [one["text"] for one in shipped] == list(sentence.SENTENCES)
    for one in shipped:
        assert one["read"] == ["begin", *one["right"][:-1]]
        assert one["right"][-1] == "end"
        for word, change in one["changes"].items():
            answer = [best[0][0] for best in change["best"]]
            changed[word] += answer != one["right"]
    assert changed[""] == 0 and changed["mask"] and changed["positions"]
    sharp = {word: np.mean([unpacked(one, word, kind).max(-1).mean() for one
                            in shipped for kind in sentence.KINDS])
             for word in ("", "divisor")}
    assert sharp["divisor"] > sharp[""] + 0.1


def test_weights_are_those_of_the_model(values, shipped):
    one = shipped[0]
    batch, _ = values.pairs_batch([one["text"]])
    engine = values.engines["numpy"]
    steps = engine.forward(values.built(engine), *batch)
    for kind, (stack, name, _) in sentence.KINDS.items():
        seen = unpacked(one, "", kind)
        for layer in range(len(seen)):
            expected = steps[f"{stack}.layers.{layer}.{name}.weights"][0]
            keys = expected.shape[-1]
            assert np.abs(seen[layer, ..., :keys] - expected).max() < .003
            assert not seen[layer, ..., keys:].any()  # padding is not seen


def test_padding_is_seen_without_the_mask(shipped):
    assert unpacked(shipped[0], "mask", "encoder")[..., -1].max() > .4
