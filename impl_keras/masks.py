"""Masks: which keys a query may attend to. True = may attend (R1)."""

from keras import ops


def padding_mask(tokens, pad_id):
    """Every key that is not padding: tokens [B S] to bool [B 1 1 S]."""
    return (tokens != pad_id)[:, None, None, :]


def causal_mask(length):
    """No key later than its query: bool [1 1 T T] (section 3.2.3)."""
    position = ops.arange(length)
    return (position[None, :] <= position[:, None])[None, None]


def decoder_mask(tokens, pad_id):
    """What a target reads of itself: tokens [B T] to bool [B 1 T T].

    No later token and no padding; but the first token always, since some
    systems begin a target with padding's id (R52).
    """
    length = ops.shape(tokens)[1]  # keras: a tensor where it is unknown
    first = ops.arange(length) == 0
    return (padding_mask(tokens, pad_id) | first) & causal_mask(length)
