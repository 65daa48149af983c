"""Generation: a target from a source, token by token (section 3.1)."""

import torch

from impl_torch.masks import causal_mask, padding_mask


def greedy(model, source, begin_id, end_id, length):
    """The most likely token after each; of equals, the lowest id."""
    pad_id = model.config.pad_id
    source_mask = padding_mask(source, pad_id)
    memory = model.encode(source, source_mask)
    tokens = torch.full((len(source), 1), begin_id)
    ended = tokens[:, 0] == end_id
    while tokens.shape[1] < length and not torch.all(ended):
        mask = padding_mask(tokens, pad_id) & causal_mask(tokens.shape[1])
        decoded = model.decode(tokens, memory, source_mask, mask)
        output = model.project(decoded[:, -1:])
        best = torch.argmax(output[:, 0], dim=-1)
        best = torch.where(ended, pad_id, best)
        tokens = torch.cat([tokens, best[:, None]], dim=-1)
        ended = ended | (best == end_id)
    return tokens
