"""Generation: a target from a source, token by token (section 3.1).

The decoder reads what it has written so far and says what comes next. Here it
reads all of it anew for every token, which defines the answer.
"""

import numpy as np

from reference_numpy.masks import causal_mask, padding_mask


def greedy(model, source, begin_id, end_id, length):
    """The most likely token after each; of equals, the lowest id.

    Args:
        model: a Transformer.
        source: int [B S].
        begin_id: what every target begins with.
        end_id: after it a row is padding.
        length: the most tokens of a target, with its begin.

    Returns:
        int [B T]; T is at most ``length``, less where every row has ended.
    """
    pad_id = model.config.pad_id
    source_mask = padding_mask(source, pad_id)
    memory, _ = model.encode(source, source_mask)
    tokens = np.full((len(source), 1), begin_id)
    ended = tokens[:, 0] == end_id
    while tokens.shape[1] < length and not np.all(ended):
        mask = padding_mask(tokens, pad_id) & causal_mask(tokens.shape[1])
        decoded, _ = model.decode(tokens, memory, source_mask, mask)
        output, _ = model.project(decoded[:, -1:])
        best = np.argmax(output[:, 0], axis=-1)
        best = np.where(ended, pad_id, best)
        tokens = np.concatenate([tokens, best[:, None]], axis=-1)
        ended = ended | (best == end_id)
    return tokens
