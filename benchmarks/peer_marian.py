"""Hugging Face's Marian and CTranslate2, from our weights."""

import pathlib
import tempfile

import torch
from transformers import MarianConfig, MarianMTModel

from benchmarks.peer_torch import copy_linear, copy_norm
from transformer_contract.weights import select

ATTENTIONS = {"self_attention": "self_attn", "cross_attention": "encoder_attn"}
PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj",
               "output": "out_proj"}


def marian(config, weights, bos_id):
    """A MarianMTModel that computes what ours does; it never stops by itself.

    Its positions are halves, its norms stand after the sum with an epsilon of
    1e-5, and its vocabularies are tied.
    """
    model = MarianMTModel(MarianConfig(
        vocab_size=config.target_vocab, d_model=config.d_model,
        max_position_embeddings=config.max_length,
        encoder_layers=config.n_encoder_layers,
        decoder_layers=config.n_decoder_layers,
        encoder_ffn_dim=config.d_ff, decoder_ffn_dim=config.d_ff,
        encoder_attention_heads=config.n_heads,
        decoder_attention_heads=config.n_heads,
        activation_function=config.activation, scale_embedding=True,
        dropout=config.dropout,
        pad_token_id=config.pad_id, decoder_start_token_id=bos_id,
        eos_token_id=None, forced_eos_token_id=None)).eval()
    with torch.no_grad():
        model.model.shared.weight.copy_(
            torch.from_numpy(weights["source_embedding.table"]))
        for stack, names in (
                ("encoder", ["self_attention"]),
                ("decoder", ["self_attention", "cross_attention"])):
            for i, layer in enumerate(getattr(model.model, stack).layers):
                _copy_layer(layer, select(weights, f"{stack}.layers.{i}."),
                            names)
    return model


def _copy_layer(layer, ours, names):
    for name in names:
        theirs = getattr(layer, ATTENTIONS[name])
        for mine, other in PROJECTIONS.items():
            copy_linear(getattr(theirs, other), select(ours, f"{name}.{mine}."))
        copy_norm(getattr(layer, f"{ATTENTIONS[name]}_layer_norm"),
                  select(ours, f"{name}_residual."))
    copy_linear(layer.fc1, select(ours, "feed_forward.inner."))
    copy_linear(layer.fc2, select(ours, "feed_forward.outer."))
    copy_norm(layer.final_layer_norm, select(ours, "feed_forward_residual."))


def word(token):
    """A token's name; a vocabulary of names needs no tokenizer."""
    return f"t{token}"


def translator(model, eos_id, threads):
    """A MarianMTModel in CTranslate2, float32.

    The converter takes padding, the last token, out of the vocabulary. Ours
    begins with the bos's embedding and Marian's own with zeros, so the bos is
    named.
    """
    import ctranslate2
    from ctranslate2.converters.transformers import MarianMTLoader
    bos_id = model.config.decoder_start_token_id
    spec = MarianMTLoader().get_model_spec(model)
    spec.decoder.start_from_zero_embedding = False
    words = [word(token) for token in range(model.config.vocab_size - 1)]
    spec.register_source_vocabulary(words)
    spec.register_target_vocabulary(words)
    spec.config.unk_token = spec.config.bos_token = word(bos_id)
    spec.config.decoder_start_token = word(bos_id)
    spec.config.eos_token = word(eos_id)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model"
        path.mkdir()
        spec.validate()
        spec.optimize(quantization=None)
        spec.save(str(path))
        return ctranslate2.Translator(
            str(path), device="cpu", compute_type="float32",
            inter_threads=1, intra_threads=threads)
