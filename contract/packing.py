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
