"""The native form: whatever model it does not refuse, it computes and trains.

parity_tests/ports/test_native_form.py has the words of what it refuses.
"""

import importlib
from unittest import mock

import numpy as np
import pytest

from parity_io.errors import InputError
from transformer_contract.batch import Batch
from transformer_contract.config import CHOICES, PLAIN
from transformer_contract.weights import probe_weights
from parity import ports
from parity.check import cases, drawn
from parity_tests.ports.test_native_form import NEAR, dtype_of
from parity_tests.support.conformance import holds

pytestmark = [pytest.mark.long, pytest.mark.forms("native")]

#: A model each of whose sizes is another, and so is each ε where it has two.
SIZES = PLAIN.replace(
    source_vocab=17, target_vocab=17, d_model=12, n_heads=3, d_ff=7,
    n_encoder_layers=1, n_decoder_layers=2, max_length=9,
    source_max_length=13, norm_eps=3e-2, final_norm_eps=0.3, dropout=0.3)

#: From which models each field is changed.
FROM = {"norms after": {}, "norms before": {
    "residual": "pre", "final_norm": True}}

#: What fields become beside words of a choice and a draw's numbers.
OTHERS = {
    "norm_rounding": ("float32",), "softmax_rounding": ("float32",),
    "final_norm": (True, False), "n_kv_heads": (1,), "d_head": (5,),
    "position_padding": (True,), "source_max_length": (30,),
    "embedding_norm": (True,), "output_bias": (True, False),
    "padding_learns": (False,), "gated": (True,),
    "feed_forward_bias": (False,), "output_transform": (True,),
    "source_vocab": (29,), "pad_id": (4,)}

#: Rows, and tokens of sources and targets: longer, shorter, and as long.
SHAPES = (3, 13, 4), (3, 4, 9), (1, 4, 4)

#: The models that are compared backward too, by how their names begin.
LEARNED = *FROM, "norms after, tied"

#: How far above its spread the mean of a row is, by dtype; and the biases of
#: what is added to a row before a norm.
FAR = {"float64": 1e3, "float32": 30}
ADDED = "attention.output.bias", "feed_forward.outer.bias"

#: How many equal rows a batch of training has, and the key of the reference's.
ROWS, KEY = 20_000, np.array([5, 7], np.uint32)

#: How far two covariances of logits may be apart, of what each logit varies by.
#: A sample's differ by 1/√ROWS, 0.007; without one place they do by 0.2.
APART = 0.07

#: What a framework's own attention does not drop.
KEPT = {"mlx": "weights_dropout"}


def changed():
    """Yield (what, config) of each model that differs in one field."""
    fields = CHOICES | OTHERS | {
        field: values[:1] for field, values in drawn.NUMBERS.items()
        if field not in OTHERS}
    for what, changes in FROM.items():
        config = SIZES.replace(**changes)
        yield what, config
        for field, values in fields.items():
            for value in values:
                try:
                    other = config.replace(**{field: value})
                except InputError:  # it goes with others alone
                    continue
                if other != config:
                    yield f"{what}, {field} {value}", other


def own_masks(config, what, rows, source, target):
    """A Batch by masks of one's own, in which each query reads something."""
    batch = Batch.of_ids(
        cases.ids(f"source {what}", rows, source, config.source_vocab),
        cases.ids(f"target {what}", rows, target, config.target_vocab),
        config.pad_id)
    read = cases.values(f"read {what}", *batch.source_mask.shape) > -0.3
    read[..., -1] = True
    seen = cases.values(f"seen {what}", *batch.target_mask.shape) > -0.3
    return Batch(batch.source, batch.target, read,
                 (batch.target_mask & seen) | np.eye(target, dtype=bool))


def both(subject, config, weights):
    """[(engine, model)] of the native form and of the reference.

    Raises:
        InputError: the native form cannot be this model.
    """
    dtype = dtype_of(subject)
    reference = ports.engine("numpy")
    return [(subject, subject.build("transformer", config, {
        name: array.astype(dtype) for name, array in weights.items()},
        dtype)), (reference, reference.build("transformer", config, weights))]


def near(subject, place, found, expected):
    """Fail where two arrays are not near, as a native form is."""
    error = np.linalg.norm(found - expected) / max(
        np.linalg.norm(expected), 1)
    holds(place, error < NEAR[subject.NAME],
          f"error {error:.1e}, limit {NEAR[subject.NAME]}")


def compared(subject, what, config, weights, shape, learns):
    """Compare a model on one shape; True unless the native form refuses it."""
    try:
        pair = both(subject, config, weights)
    except InputError:
        return False
    batch = own_masks(config, what, *shape)
    near(subject, f"{what}, {shape}", *(
        engine.predict(model, *batch) for engine, model in pair))
    if learns:
        labels = np.roll(batch.target, -1, axis=1)
        (loss, found), (right, expected) = (
            engine.gradients(model, *batch, labels) for engine, model in pair)
        near(subject, f"loss, {what}", loss, right)
        for name in weights:
            near(subject, f"gradient {name}, {what}", found[name],
                 expected[name])
    return True


def test_models_of_one_field_changed(subject):
    """What is not refused is the reference's, forward and backward."""
    made = {what for what, config in changed() if compared(
        subject, what, config, probe_weights(config, 3), SHAPES[0],
        what.startswith(LEARNED[-1]) or what in FROM)}
    least = {"norms after", "norms after, tied all",
             "norms after, norm_eps 1e-06", "norms after, source_vocab 29"}
    holds("models that are made", made > least, f"only {sorted(made)}")


def test_lengths(subject):
    """Sources longer than targets, shorter, as long; and masks of one's own."""
    for shape in SHAPES[1:]:
        assert compared(subject, "lengths", SIZES, probe_weights(SIZES, 3),
                        shape, False)


def test_rows_of_large_means(subject):
    """Their variance is no difference of two large numbers: what is added to
    each feature changes nothing where a norm follows."""
    config = SIZES.replace(norm_eps=1e-6)
    far = FAR[dtype_of(subject)]
    weights = {name: array + far * name.endswith(ADDED)
               for name, array in probe_weights(config, 3).items()}
    assert compared(subject, "large", config, weights, SHAPES[0], False)


def covariance(logits):
    """How the logits of equal rows [B T V] vary together: [T·V T·V]."""
    return np.cov(logits.reshape(len(logits), -1).astype(float).T)


def test_what_is_dropped_in_training(subject):
    """Values in each place, by the rate, others in each row and head: logits
    of equal rows vary together as the reference's do."""
    config = SIZES.replace(n_decoder_layers=1)
    (_, model), (reference, truth) = both(
        subject, config, probe_weights(config, 3))
    batch = Batch.of_ids(*(
        np.repeat(cases.ids(what, 1, 3, 17), ROWS, axis=0)
        for what in ("source", "target")))
    kept = KEPT.get(subject.NAME, "nothing")
    draw = reference.draw

    def drawn_of(*given):
        return {place: mask | place.endswith(kept)
                for place, mask in draw(*given).items()}
    with mock.patch(f"{reference.__package__}.engine.draw", drawn_of):
        expected = covariance(
            reference.forward(truth, *batch, key=KEY)["output"])
    found = covariance(importlib.import_module(
        f"parity_tests.ports.citizens.{subject.NAME}").logits(
            model, batch.source, batch.target, training=True, **{
                name: getattr(batch, name)
                for name in ("source_mask", "target_mask")}))
    size = np.sqrt(np.diag(expected))
    apart = np.abs((found - expected) / np.outer(size, size)).max()
    holds("covariances of logits", apart < APART,
          f"{apart:.3f} apart, limit {APART}")
