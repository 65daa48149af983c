"""Which tokens of a padded batch are worth computing.

Of a row everything behind its last token is padding, which nobody reads: keys
there are masked, and what a position predicts there does not count. A fast form
that trains leaves it out. It computes all maps of single positions on the
others, packed into one row of N tokens, and only attention sees the batch.
"""

import numpy as np

#: Packing pays where at most this share of a batch is left.
PAYS = 0.95


def ends(ids, pad_id):
    """Where the padding behind each row of ids [B T] begins: int [B]."""
    seen = np.asarray(ids) != pad_id
    behind = np.argmax(seen[:, ::-1], axis=1)
    return np.where(seen.any(axis=1), seen.shape[1] - behind, 0)


def lengths(config, source, labels):
    """How much of each row of a batch a training step needs.

    Args:
        config: a TransformerConfig.
        source: int [B S].
        labels: int [B T], what is to be predicted.

    Returns:
        Of sources and of targets, int [B]. A target counts up to the last label
        that is not padding, since no earlier position reads a later one.
    """
    of_source = ends(source, config.pad_id)
    of_target = ends(labels, config.pad_id)
    if config.stacks == "encoder":  # it predicts where it reads
        of_source = np.maximum(of_source, of_target)
    return of_source, of_target


def places(lengths, width):
    """Where the tokens of rows of some lengths stand in [B·width]: int [N]."""
    return np.flatnonzero(np.arange(width) < lengths[:, None])


def pays(kept, size):
    """Whether so many tokens, of a batch of ``size``, are few enough."""
    return kept <= PAYS * size


def pack_kept(drawn, both):
    """What dropout keeps within the stacks, by place, packed as they are.

    The weights of attention are not packed, nor are embeddings.

    Args:
        drawn: {place: mask [B T F]}.
        both: how sources and targets are packed, each with a method ``pack``.
    """
    stacks = dict(zip(("encoder", "decoder"), both))
    return {name: mask if name.endswith(".weights_dropout")
            or name.partition(".")[0] not in stacks
            else stacks[name.partition(".")[0]].pack(mask)
            for name, mask in drawn.items()}


#: Where every number of tokens is compiled: how many numbers there are, and how
#: many tokens have to be saved.
LEVELS, LEAST = 4, 128


def level(config, sources, labels):
    """How many of LEVELS parts of a batch's tokens are computed.

    Of [A B S] and [A B T] the fullest batch says it. All parts where it does
    not pay to compile anew.
    """
    kept, size = 0, 0
    for ids, of in zip((sources, labels), zip(*(
            lengths(config, *batch) for batch in zip(sources, labels)))):
        count = max(int(np.sum(one)) for one in of)
        size += ids[0].size
        kept = max(kept, -(-count * LEVELS // ids[0].size))
    saved = size * (LEVELS - kept) // LEVELS
    return max(kept, 1) if saved >= LEAST else LEVELS


def both_ways(lengths, width, count):
    """Places of ``count`` tokens, and where each place's token then stands.

    Of rows of some lengths. Tokens that are more than there are have a place
    behind all, and padding a token behind all.
    """
    found = places(lengths, width)
    there = np.full(count, len(lengths) * width, np.int32)
    there[:len(found)] = found
    back = np.full(len(lengths) * width, count, np.int32)
    back[found] = np.arange(len(found))
    return there, back


def compiled(config, sources, labels):
    """How batches are packed where every number of tokens is compiled.

    Returns:
        Of sources and of targets ``both_ways``, int32 [A N] and [A B·T]; None
        where it does not pay.
    """
    part = level(config, sources, labels)
    if part == LEVELS:
        return None
    each = [lengths(config, *batch) for batch in zip(sources, labels)]
    return [tuple(map(np.stack, zip(*(
        both_ways(one, ids.shape[2], -(-part * ids[0].size // LEVELS))
        for one in of)))) for ids, of in zip((sources, labels), zip(*each))]
