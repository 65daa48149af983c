"""torch.nn.Transformer, made to compute the same function as ours."""

import math

import torch
from torch import nn

from transformer_contract.weights import select


class PeerTransformer(nn.Module):
    """nn.Transformer between embeddings and a projection, tied.

    nn.Transformer has neither; both stand here as PyTorch's tutorials write
    them. It ends each stack in a norm that the paper does not have; where the
    config has none, they are taken out, as the constructor of
    nn.TransformerEncoder allows.
    """

    def __init__(self, config, positions):
        super().__init__()
        if config.residual != "post" or config.norm != "layer":
            raise ValueError("nn.Transformer is compared as post-norm here")
        self.scale = math.sqrt(config.d_model)
        self.embedding = nn.Embedding(config.source_vocab, config.d_model)
        self.register_buffer("positions", positions)
        self.transformer = nn.Transformer(
            config.d_model, config.n_heads, config.n_encoder_layers,
            config.n_decoder_layers, config.d_ff, config.dropout,
            config.activation, layer_norm_eps=config.norm_eps,
            batch_first=True)
        if not config.final_norm:
            self.transformer.encoder.norm = None
            self.transformer.decoder.norm = None

    def embed(self, tokens):
        """Tokens [B T] to vectors [B T D]."""
        x = self.embedding(tokens) * self.scale
        return x + self.positions[:tokens.shape[1]]

    def forward(self, source, target, causal, padding=(None, None)):
        """Score every next target token: [B T V].

        ``padding`` is what to add to scores of keys, of each of the two.
        """
        decoded = self.transformer(
            self.embed(source), self.embed(target), tgt_mask=causal,
            src_key_padding_mask=padding[0], tgt_key_padding_mask=padding[1],
            memory_key_padding_mask=padding[0], tgt_is_causal=True)
        return nn.functional.linear(decoded, self.embedding.weight)


def compiled(model):
    """A model by torch.compile, and "" or why it runs eagerly instead."""
    from impl_torch.targets.modes import missing
    if words := missing("inductor", "float32"):
        return model, f"{words}: it ran eagerly"
    return torch.compile(model, dynamic=False), ""


def padding_of(ids, pad_id):
    """-∞ where ids [B T] are padding, else 0; None if none are."""
    seen = ids != pad_id
    return None if seen.all() else torch.where(seen, 0.0, -math.inf)


def copy_linear(linear, weights):
    linear.weight.copy_(torch.from_numpy(weights["kernel"].T))
    linear.bias.copy_(torch.from_numpy(weights["bias"]))


def _copy_attention(attention, weights):
    parts = [select(weights, f"{name}.") for name in ("query", "key", "value")]
    attention.in_proj_weight.copy_(torch.cat(
        [torch.from_numpy(p["kernel"].T) for p in parts]))
    attention.in_proj_bias.copy_(torch.cat(
        [torch.from_numpy(p["bias"]) for p in parts]))
    copy_linear(attention.out_proj, select(weights, "output."))


def copy_norm(norm, weights):
    norm.weight.copy_(torch.from_numpy(weights["norm.scale"]))
    norm.bias.copy_(torch.from_numpy(weights["norm.bias"]))


@torch.no_grad()
def load(model, weights):
    """Load our weights, by canonical name, into a PeerTransformer."""
    model.embedding.weight.copy_(
        torch.from_numpy(weights["source_embedding.table"]))
    attentions = {
        "encoder": ["self_attention"],
        "decoder": ["self_attention", "cross_attention"],
    }
    theirs = {"self_attention": "self_attn",
              "cross_attention": "multihead_attn"}
    for stack, names in attentions.items():
        layers = getattr(model.transformer, stack).layers
        for i, layer in enumerate(layers):
            ours = select(weights, f"{stack}.layers.{i}.")
            for name in names:
                _copy_attention(getattr(layer, theirs[name]),
                                select(ours, f"{name}."))
            copy_linear(layer.linear1, select(ours, "feed_forward.inner."))
            copy_linear(layer.linear2, select(ours, "feed_forward.outer."))
            for number, name in enumerate([*names, "feed_forward"], start=1):
                copy_norm(getattr(layer, f"norm{number}"),
                           select(ours, f"{name}_residual."))
    return model
