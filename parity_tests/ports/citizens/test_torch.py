"""What torch's port is to its users, and what no other framework has."""

import copy

import numpy as np
import pytest

from transformer_contract.config import CHOICES
from transformer_contract.weights import probe_weights
from parity.check import cases

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


def test_a_switch_of_the_process_is_put_back():
    from impl_torch.native import engine
    model = engine.build("transformer", CONFIG, probe_weights(CONFIG))
    before = torch.backends.mha.get_fastpath_enabled()
    engine.predict(model, *cases.padded_batch(CONFIG))
    assert torch.backends.mha.get_fastpath_enabled() == before
