"""What torch's port is to its users, and what no other framework has."""

import copy

import numpy as np
import pytest

from parity_io.errors import InputError
from transformer_contract.config import CHOICES
from transformer_contract.weights import probe_weights
from parity import ports
from parity.check import cases
from parity.numerics.comparator import MATCH, compare
from parity.numerics.tolerances import FLOAT64_LIMIT

torch = pytest.importorskip(
    "torch", reason="not checked: torch is not installed")

CONFIG = cases.test_size("vaswani2017_base").replace(
    dropout=0.25, n_encoder_layers=1, n_decoder_layers=1)


def new(seed=0):
    from impl_torch import Transformer
    torch.manual_seed(seed)
    return Transformer(CONFIG)


def ids(config=CONFIG):
    """A source and a target; the second source is padded."""
    source = cases.ids("source", 3, 7, config.source_vocab)
    source[1, 5:] = config.pad_id
    target = cases.ids("target", 3, 5, config.target_vocab)
    return torch.from_numpy(source), torch.from_numpy(target)


def test_a_seed_repeats_what_is_dropped():
    model = new()
    answers = []
    for seed in 1, 1, 2:
        torch.manual_seed(seed)
        answers.append(model(*ids()).detach().numpy())
    np.testing.assert_array_equal(answers[0], answers[1])
    assert np.abs(answers[0] - answers[2]).max() > 1e-3


@pytest.mark.parametrize("word", CHOICES["positions"])
def test_after_inference_mode_a_model_learns(word):
    """What it keeps from there may be differentiated: the same gradient."""
    from impl_torch import create
    config = CONFIG.replace(positions=word)
    batch, gradients = ids(config), []
    for inferring in False, True:
        model = create(config, seed=1).eval()
        if inferring:
            with torch.inference_mode():
                found = model(*batch)
            with torch.no_grad():
                assert torch.equal(model(*batch), found)
        (model(*batch)**2).sum().backward()
        gradients.append({name: weight.grad.numpy() for name, weight
                          in model.named_parameters()})
    for name, array in gradients[0].items():
        np.testing.assert_array_equal(gradients[1][name], array)


def test_a_run_of_the_harness_leaves_mode_and_generator():
    """Its key says what is dropped; parts keep the mode that each has."""
    model = new()
    model.encoder.eval()
    before = [below.training for below in model.modules()]
    state = torch.get_rng_state()
    engine = ports.engine("torch")
    batch = cases.padded_batch(CONFIG)
    key = np.array([3, 4], np.uint32)
    first, second = (
        engine.forward(model, *batch, key=key)["output"] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert np.abs(first - engine.predict(model, *batch)).max() > 1e-3
    assert [below.training for below in model.modules()] == before
    assert torch.equal(torch.get_rng_state(), state)


def test_keys_of_a_state_are_the_modules_own():
    """No table of positions; a table that is tied under each of its names."""
    keys = set(new().state_dict())
    assert "encoder.layers.0.self_attention.query.weight" in keys
    assert "projection.embedding.table.weight" in keys
    assert not any("positions" in key for key in keys)


def test_what_is_tied_stays_tied():
    """In copies, and in other dtypes."""
    for model in (new(), copy.deepcopy(new()), new().double(),
                  new().to(torch.bfloat16)):
        table = model.source_embedding.table.weight
        assert model.target_embedding.table.weight is table
        assert model.projection.embedding.table.weight is table
        assert sum(parameter is table for parameter in model.parameters()) == 1


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
def test_dtype_follows_the_model(dtype):
    model = new().eval().to(getattr(torch, dtype))
    assert model(*ids()).dtype == getattr(torch, dtype)
    assert model.generate(ids()[0], max_tokens=4).dtype == torch.int64


def test_nothing_is_made_on_the_processor():
    """On torch's device without numbers, all steps have that device."""
    model = new().to("meta")
    source, target = (tensor.to("meta") for tensor in ids())
    assert model(source, target).device.type == "meta"


def test_a_padded_source_of_two_axes():
    model = new().eval()
    source, target = ids()
    np.testing.assert_array_equal(
        model(source, target, source != CONFIG.pad_id).detach(),
        model(source, target).detach())


def test_a_target_mask_of_two_axes_is_refused():
    """It would say nothing of later tokens, and let them be read."""
    source, target = ids()
    with pytest.raises(InputError, match="mask"):
        new()(source, target, None, target != CONFIG.pad_id)


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_models_of_one_stack_make_their_masks(stack):
    from impl_torch import create
    config = CONFIG.replace(stacks=stack, tied="output", target_vocab=37)
    model = create(config, seed=1).eval()
    source, target = ids(config)
    found = model(source) if stack == "encoder" else model(None, target)
    assert found.shape == (3, 7 if stack == "encoder" else 5, 37)


# The native form


@pytest.mark.parametrize("changes", [
    {}, {"tied": "none"}, {"tied": "output", "output_bias": True},
    {"residual": "pre", "final_norm": True, "tied": "embeddings"}])
def test_the_native_form_is_the_reference(changes):
    """Outputs and gradients, of sources of padding alone too (R2)."""
    from impl_torch.native import engine
    config = CONFIG.replace(**changes)
    arrays, batch = probe_weights(config), cases.padded_batch(config)
    labels = np.roll(batch.target, -1, axis=1)
    model = engine.build("transformer", config, arrays)
    reference = ports.engine("numpy")
    own = reference.build("transformer", config, arrays)
    for name, array in engine.export(model).items():
        np.testing.assert_array_equal(array, arrays[name])
    assert compare(engine.predict(model, *batch), reference.predict(
        own, *batch), FLOAT64_LIMIT).verdict == MATCH
    loss, found = engine.gradients(model, *batch, labels)
    truth, wanted = reference.gradients(own, *batch, labels)
    assert abs(loss - truth) < 1e-12
    for name in arrays:
        np.testing.assert_allclose(
            found[name], wanted[name], rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("changes, why", [
    ({"norm": "std"}, "nn.LayerNorm"), ({"n_kv_heads": 3}, "Attention"),
    ({"activation": "silu"}, "feed-forward"), ({"positions": "halves"},
                                                "positions"),
    ({"token_types": 2}, "embeddings"), ({"output": "log_probs"}, "logits")])
def test_what_torchs_layers_cannot_be(changes, why):
    from impl_torch.native import engine
    config = CONFIG.replace(**changes)
    with pytest.raises(InputError, match=why):
        engine.build("transformer", config, probe_weights(config))


def test_a_switch_of_the_process_is_put_back():
    from impl_torch.native import engine
    model = engine.build("transformer", CONFIG, probe_weights(CONFIG))
    before = torch.backends.mha.get_fastpath_enabled()
    engine.predict(model, *cases.padded_batch(CONFIG))
    assert torch.backends.mha.get_fastpath_enabled() == before
