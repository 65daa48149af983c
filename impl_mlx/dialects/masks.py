"""The mask of a decoder that has no source."""

from impl_mlx.masks import causal_mask, padding_mask


def prompt_mask(tokens, pad_id):
    """No later token and no padding: tokens [B T] to bool [B 1 T T].

    The first token may be padding here: prompts are padded in front.
    """
    return padding_mask(tokens, pad_id) & causal_mask(tokens.shape[1])
