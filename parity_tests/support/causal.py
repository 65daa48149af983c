"""Small models with a cache: ours, and one in torch, right or wrong."""

import numpy as np

from transformer_contract.batch import Batch
from transformer_contract.config import preset
from transformer_contract.weights import initial_weights
from parity_tests.support.engines import usable

V, W, H, T = 13, 8, 2, 6


def ids(rows=2):
    """Token ids of which the last of the first row is padding, and a mask."""
    import torch
    tokens = np.random.default_rng(3).integers(1, V, (rows, T))
    tokens[0, -1] = 0
    return (torch.from_numpy(tokens),), {
        "attention_mask": torch.from_numpy((tokens > 0).astype(np.int64))}


def causal(**wrong):
    """The model; ``wrong`` has what is otherwise, by name.

    Args:
        wrong: ``places`` of (first, length), ``keys`` of a cache's keys,
            ``mask`` of a mask, ``mixed`` of what attention made: each returns
            what takes its argument's place.
    """
    usable("torch")
    import torch
    from torch import nn
    s = {"places": torch.arange, "keys": lambda keys: keys,
         "mask": lambda mask: mask, "mixed": lambda mixed: mixed} | wrong

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v, self.o = (
                nn.Linear(W, W) for _ in range(4))

        def forward(self, x, mask, past):
            q, k, v = (layer(x).view(*x.shape[:2], H, -1).transpose(1, 2)
                       for layer in (self.q, self.k, self.v))
            if past is not None:
                k = torch.cat([s["keys"](past[0]), k], 2)
                v = torch.cat([s["keys"](past[1]), v], 2)
            first = k.shape[2] - q.shape[2]
            seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(
                first)
            if mask is not None:
                seen = seen & (s["mask"](mask)[:, None, None] > 0)[
                    ..., -k.shape[2]:]
            scores = (q @ k.mT / (W // H)**0.5).masked_fill(~seen, -1e9)
            mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape)
            return self.o(s["mixed"](mixed)), (k, v)

    class Causal(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(V, W), nn.Embedding(16, W)
            self.attention, self.head = Attention(), nn.Linear(W, V)

        def forward(self, input_ids, attention_mask=None, past_key_values=None,
                    use_cache=False):
            first = 0 if past_key_values is None else (
                past_key_values[0].shape[2])
            x = self.tokens(input_ids) + self.places(s["places"](
                first, first + input_ids.shape[1]))
            mixed, kept = self.attention(x, attention_mask, past_key_values)
            return Output(self.head(x + mixed), kept if use_cache else None)
    torch.manual_seed(0)
    return Causal().double().eval()


class Output(dict):
    """Logits, and what is kept, as Hugging Face's models return them."""

    def __init__(self, logits, past_key_values=None):
        super().__init__(logits=logits)
        self.past_key_values = past_key_values


def ours(port, length, padding=False):
    """A model of ours in a port, and a native batch of two rows.

    Args:
        length: how many tokens a target has; a source has 5.
        padding: whether the first source ends in padding.
    """
    engine = usable(port)
    config = preset("vaswani2017_base").replace(
        d_model=8, n_heads=2, d_ff=12, n_encoder_layers=1, n_decoder_layers=1,
        source_vocab=9, target_vocab=9, max_length=12)
    source = np.random.default_rng(0).integers(1, 9, (2, 5))
    if padding:
        source[0, -1] = 0
    return engine.build("transformer", config, initial_weights(config)), [
        engine.to_native(array, "cpu")
        for array in Batch.of_ids(source, source[:, :length])]
