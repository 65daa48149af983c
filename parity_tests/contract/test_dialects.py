"""Dialects: their words and names, there and back, equal to the bit."""

import numpy as np
import pytest

from transformer_contract import weights
from transformer_contract.config import PLAIN
from transformer_contract.dialects.dialect import UNTOLD
from transformer_contract.dialects.rows import names_of
from transformer_contract.dialects.table import DIALECTS, SYSTEMS
from parity_io.errors import InputError


def small(dialect):
    """Their configuration of a small model, no two sizes equal."""
    sizes = {"d_model": 12, "n_heads": 2, "d_ff": 20, "source_vocab": 17,
             "target_vocab": 17, "n_encoder_layers": 2, "n_decoder_layers": 3,
             "max_length": 9, "pad_id": 3}
    described = {}
    for key, means in dialect.keys.items():
        if not isinstance(means, dict) and names_of(means)[0] in sizes:
            described[key] = sizes[names_of(means)[0]]
    return described


@pytest.fixture(params=SYSTEMS)
def system(request):
    return SYSTEMS[request.param]


def test_names_are_those_of_the_table():
    assert all(name == dialect.name for name, dialect in DIALECTS.items())


def test_a_system_says_where_it_is_read_and_what_it_does(system):
    assert system.source
    assert system.unlike and all(
        line.endswith(".") for line in system.unlike)


def test_a_description_comes_back(system):
    """The default's, and that of a small model; but dropout and the like."""
    for described in ({}, small(system)):
        config = system.config(described)
        again = system.config(system.describe(config))
        assert again.replace(**{field: getattr(config, field)
                                for field in UNTOLD}) == config
        told = system.describe(config)
        assert all(told[key] == value for key, value in described.items())
        assert told.get("scale_decoder_outputs", False) is not None


def test_every_weight_has_a_name_and_comes_back(system):
    """Each once; theirs made of ours, and ours of theirs, to the bit."""
    config = system.config(small(system))
    given = {name: array for name, array
             in weights.probe_weights(config).items()
             if name in system.wanted(config)}
    theirs = system.write(given, config)
    found = system.read(theirs, config)
    assert found.keys() == given.keys()
    for name, array in given.items():
        assert np.array_equal(found[name], array), name
    again = system.write(found, config)
    assert {name: array.tobytes() for name, array in again.items()} == {
        name: array.tobytes() for name, array in theirs.items()}


def test_a_missing_and_a_surplus_array_are_named(system):
    config = system.config(small(system))
    theirs = system.write(every(system, config), config)
    with pytest.raises(InputError, match="holds an array 'surplus'"):
        system.read({**theirs, "surplus": np.zeros(1)}, config)
    for name in (min(theirs), max(theirs)):
        with pytest.raises(InputError, match=f"lacks the array '{name}'"):
            system.read({n: a for n, a in theirs.items() if n != name},
                        config)


def every(system, config):
    return {name: np.zeros(shape)
            for name, shape in system.wanted(config).items()}


def test_what_a_system_has_no_word_for_is_named(system):
    """The paper's own model is in none of these systems' words."""
    with pytest.raises(InputError, match=f"{system.name} has no|divide|tied"):
        system.describe(PLAIN.replace(
            norm="std", output="log_probs", n_encoder_layers=4))


def test_null_is_no_size(system):
    """What a description leaves out is usual; what is null is asked for."""
    for key in system.keys:
        if system.defaults.get(key) is not None:
            with pytest.raises(InputError, match=f"{key} is null"):
                system.config({key: None})


@pytest.mark.parametrize("value", [{}, [], "wide", None, -1, 10**9])
def test_sizes_that_are_none(value):
    """Nothing is computed from them before they are checked."""
    table = {"model.encoder.embed_positions.weight": np.zeros((4, 4), "f4")}
    for name, key in (("gpt2", "n_embd"), ("t5", "num_layers"),
                      ("hf_marian", "max_position_embeddings"),
                      ("hf_marian", "d_model")):
        try:
            SYSTEMS[name].config({key: value}, table)
        except InputError as error:
            assert key in str(error) or repr(value) in str(error)
        else:
            assert value == 10**9


def test_unknown_words_are_named(system):
    for key, means in system.keys.items():
        if isinstance(means, dict):
            first = key[0] if isinstance(key, tuple) else key
            with pytest.raises(InputError, match=first):
                system.config({first: "nobody's"})


# Settings that transformers reads in a second place

@pytest.mark.parametrize("name, described, fields", [
    ("t5", {"dense_act_fn": "gelu"}, {"activation": "gelu"}),
    ("t5", {"feed_forward_proj": "gated-gelu", "dense_act_fn": "silu"},
     {"activation": "silu", "gated": True}),
    ("t5", {"is_gated_act": True}, {"gated": True}),
    ("whisper", {"num_key_value_heads": 2}, {"n_heads": 2}),
    ("gpt2", {"pad_token_id": -1}, {"pad_id": 0}),
    ("gpt2", {"pad_token_id": 50257}, {"pad_id": 0}),
    ("llama", {"pad_token_id": -1}, {"pad_id": 0})])
def test_settings_that_are_read(name, described, fields):
    if name == "whisper":
        described = {**described, "decoder_attention_heads": 2}
    config = SYSTEMS[name].config(described)
    assert {field: getattr(config, field) for field in fields} == fields


@pytest.mark.parametrize("name, described", [
    ("t5", {"dense_act_fn": "quick_gelu"}),
    ("t5", {"is_gated_act": "gated"}),
    ("llama", {"quantization_config": {"quant_method": "gptq"}}),
    ("t5", {"scale_decoder_outputs": None}),
    ("t5", {"tie_word_embeddings": None}),
    ("bert", {"pad_token_id": None}), ("bart", {"pad_token_id": None}),
    ("whisper", {"tie_word_embeddings": False}),
    ("whisper", {"num_key_value_heads": 1, "encoder_attention_heads": 2})])
def test_settings_that_are_refused(name, described):
    with pytest.raises(InputError, match=next(iter(described))):
        SYSTEMS[name].config(described)


def test_a_bert_whose_projection_is_its_own_has_to_have_it():
    bert, name = SYSTEMS["bert"], "cls.predictions.decoder.weight"
    arrays = {"cls.predictions.transform.dense.weight": np.zeros((4, 4))}
    described = {"tie_word_embeddings": False}
    with pytest.raises(InputError, match=name):
        bert.config(described, arrays)
    assert bert.config(described, {**arrays, name: np.zeros((9, 4))})
    assert bert.config(described)


@pytest.mark.parametrize("name, surplus", [
    ("t5", "decoder.block.0.layer.1.EncDecAttention."
           "relative_attention_bias.weight"),
    ("bart", "model.encoder.version")])
def test_arrays_of_older_files_are_kept_apart(name, surplus):
    """transformers read over them."""
    system = SYSTEMS[name]
    config = system.config(small(system))
    theirs = system.write(every(system, config), config)
    given = {**theirs, surplus: np.ones(3)}
    assert system.read(given, config).keys() == system.read(
        theirs, config).keys()
    assert list(system.aside(given)) == [surplus]


@pytest.mark.parametrize("pad_id, learns", [
    (None, True), (-1, True), (99, True), (3, False)])
def test_llamas_padding_learns_where_a_file_names_none(pad_id, learns):
    config = SYSTEMS["llama"].config({"vocab_size": 20, "pad_token_id": pad_id})
    assert config.padding_learns == learns
    assert config.pad_id == (0 if learns else 3)


@pytest.mark.parametrize("name", ["bart", "hf_marian", "fairseq", "bert"])
def test_what_only_training_needs_is_no_reason_to_refuse(name):
    """Our own models, whose padding learns, may be written as theirs."""
    config = SYSTEMS[name].config({})
    assert not config.padding_learns
    SYSTEMS[name].describe(config.replace(padding_learns=True))
