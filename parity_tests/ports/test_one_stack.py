"""Models of one stack: an encoder alone, and a decoder alone.

A decoder continues a prompt, which it is given as a source. What it writes is
held against asking the whole model again for every token.
"""

import numpy as np
import pytest

from transformer_contract import fast_forms
from transformer_contract.config import PLAIN
from parity_io.errors import InputError
from transformer_contract.generation import GenerationConfig
from transformer_contract.schema import schema
from transformer_contract.training import TrainingConfig
from transformer_contract.weights import probe_weights
from parity import ports

SIZES = {"source_vocab": 13, "target_vocab": 13, "d_model": 12, "n_heads": 3,
         "d_ff": 10, "n_encoder_layers": 2, "n_decoder_layers": 2,
         "max_length": 24, "residual": "pre", "final_norm": True}
DECODER = PLAIN.replace(
    stacks="decoder", positions="learned", tied="output", **SIZES)
ENCODER = PLAIN.replace(
    stacks="encoder", positions="learned", tied="output", token_types=2,
    embedding_norm=True, **SIZES)

#: Whole, padded on the left, inside, and on the right; 0 is padding.
PROMPTS = np.array([[3, 4, 5, 6], [0, 0, 7, 8], [9, 0, 1, 2], [5, 11, 0, 0]])
SETTINGS = GenerationConfig(max_tokens=6, bos_id=1, eos_id=12)


def built(engine, config):
    return engine.build("transformer", config, {
        name: 1.5 * array for name, array in probe_weights(config, 3).items()})


def test_weights_of_one_stack():
    """Neither the other stack's nor any of cross-attention."""
    assert {name.split(".")[0] for name in schema(DECODER)} == {
        "target_embedding", "target_positions", "decoder"}
    assert {name.split(".")[0] for name in schema(ENCODER)} == {
        "source_embedding", "source_positions", "encoder"}
    assert not any("cross" in name for name in schema(DECODER))


@pytest.mark.parametrize("tied", ["embeddings", "all", True])
@pytest.mark.parametrize("config", [DECODER, ENCODER])
def test_one_stack_has_one_embedding(config, tied):
    with pytest.raises(InputError, match="one embedding"):
        config.replace(tied=tied)


def greedily(model, engine, prompt):
    """The tokens that follow a prompt, each by the whole model."""
    tokens = list(prompt)
    for _ in range(SETTINGS.max_tokens):
        batch = np.array([tokens])
        masks = engine.masks(batch, batch, 0)  # the second, of a target
        logits = engine.predict(
            model, batch, batch, masks["source_mask"],
            masks["target_mask"] & masks["source_mask"])[0, -1]
        logits[0] = -np.inf  # padding is never an answer
        tokens.append(int(logits.argmax()))
        if tokens[-1] == SETTINGS.eos_id:
            break
    return tokens[len(prompt):]


@pytest.mark.long(24)
@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("padding", [False, True])
def test_a_decoder_continues_its_prompt(engine_of_each_form, cached, padding):
    """As the reference does when it is asked anew for every token."""
    engine, config = engine_of_each_form, DECODER.replace(
        position_padding=padding)
    found = engine.generate(
        built(engine, config), PROMPTS, SETTINGS.replace(cached=cached))
    reference = ports.engine("numpy")
    model = built(reference, config)
    for prompt, tokens in zip(PROMPTS, found["tokens"][:, 0]):
        if not prompt[-1]:
            continue  # its last token is padding, which may see nothing new
        expected = greedily(model, reference, prompt)
        assert tokens[0] == SETTINGS.bos_id
        assert tokens[1:1 + len(expected)].tolist() == expected


@pytest.mark.long(12)
def test_a_beam_continues_a_prompt_with_and_without_a_cache(engine):
    model = built(engine, DECODER)
    beams = [engine.generate(model, PROMPTS, SETTINGS.replace(
        method="beam", beam=3, cached=cached)) for cached in (False, True)]
    np.testing.assert_array_equal(beams[0]["tokens"], beams[1]["tokens"])
    np.testing.assert_allclose(
        beams[0]["scores"], beams[1]["scores"], rtol=1e-12, atol=0)


@pytest.mark.long(12)
def test_a_prompt_and_its_target_fit_the_table(engine):
    model = built(engine, DECODER)
    engine.generate(model, PROMPTS, SETTINGS.replace(max_tokens=21))
    with pytest.raises(InputError, match="25 tokens.*24 rows"):
        engine.generate(model, PROMPTS, SETTINGS.replace(max_tokens=22))


def test_an_encoder_writes_nothing(engine):
    with pytest.raises(InputError, match="no targets"):
        engine.generate(built(engine, ENCODER), PROMPTS, SETTINGS)


def test_an_encoders_labels_are_as_many_as_its_tokens(engine):
    trainer = engine.trainer(built(engine, ENCODER), TrainingConfig())
    with pytest.raises(InputError, match="a label for each token"):
        engine.train_step(trainer, PROMPTS[None], PROMPTS[None])


def test_only_whole_models_have_a_fast_search():
    assert fast_forms.searches(PLAIN)
    assert not fast_forms.searches(DECODER)


def test_a_decoder_is_torchs_encoder_under_a_causal_mask():
    """torch has no decoder without a memory; GPT-2 in torch is made so."""
    torch = pytest.importorskip("torch")
    config = DECODER.replace(norm_eps=1e-5, final_norm_eps=1e-5)
    engine = ports.engine("numpy")
    model = built(engine, config)
    arrays = {name: torch.from_numpy(
        array.T if name.endswith("kernel") else array)
        for name, array in engine.export(model).items()}
    stack = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(
        12, 3, 10, dropout=0.0, norm_first=True, batch_first=True,
        dtype=torch.float64), 2, torch.nn.LayerNorm(12, dtype=torch.float64),
        enable_nested_tensor=False)
    theirs = {}
    for i in range(2):
        ours, there = f"decoder.layers.{i}.", f"layers.{i}."
        for leaf, kind in (("kernel", "weight"), ("bias", "bias")):
            theirs[f"{there}self_attn.in_proj_{kind}"] = torch.cat([
                arrays[f"{ours}self_attention.{name}.{leaf}"]
                for name in ("query", "key", "value")])
            for name, other in (
                    ("self_attention.output", "self_attn.out_proj"),
                    ("feed_forward.inner", "linear1"),
                    ("feed_forward.outer", "linear2")):
                theirs[f"{there}{other}.{kind}"] = arrays[
                    f"{ours}{name}.{leaf}"]
        for leaf, kind in (("scale", "weight"), ("bias", "bias")):
            for name, other in (("self_attention", "norm1"),
                                ("feed_forward", "norm2")):
                theirs[f"{there}{other}.{kind}"] = arrays[
                    f"{ours}{name}_residual.norm.{leaf}"]
            theirs[f"norm.{kind}"] = arrays[f"decoder.norm.{leaf}"]
    stack.load_state_dict(theirs)
    tokens = torch.tensor(PROMPTS[[0, 0]] + [[0], [1]])
    x = arrays["target_embedding.table"][tokens] * 12**0.5
    x = x + arrays["target_positions.table"][:4]
    hidden = torch.triu(torch.ones(4, 4, dtype=torch.bool), 1)
    with torch.no_grad():
        logits = stack.eval()(x, mask=hidden) @ arrays[
            "target_embedding.table"].T
    masks = engine.masks(tokens.numpy(), tokens.numpy(), 0)
    ours = engine.predict(
        model, tokens.numpy(), tokens.numpy(), *masks.values())
    np.testing.assert_allclose(ours, logits.numpy(), rtol=0, atol=1e-12)
