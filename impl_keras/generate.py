"""Generation: a target from a source, token by token (section 3.1)."""

from keras import ops

from impl_keras.masks import causal_mask, padding_mask


def greedy(model, source, begin_id, end_id, length):
    """The most likely token after each; of equals, the lowest id."""
    pad_id = model.config.pad_id
    source_mask = padding_mask(source, pad_id)
    memory = model.encode(source, source_mask)
    tokens = ops.full((len(source), 1), begin_id, "int64")
    ended = tokens[:, 0] == end_id
    while tokens.shape[1] < length and not ops.all(ended):
        mask = padding_mask(tokens, pad_id) & causal_mask(tokens.shape[1])
        decoded = model.decode(tokens, memory, source_mask, mask)
        output = model.project(decoded[:, -1:])
        best = ops.cast(ops.argmax(output[:, 0], axis=-1), "int64")
        best = ops.where(ended, ops.full_like(best, pad_id), best)
        tokens = ops.concatenate([tokens, best[:, None]], axis=-1)
        ended = ended | (best == end_id)
    return tokens
