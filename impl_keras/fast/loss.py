"""The loss with a gradient of its own, which keeps no second B·T·V scores.

Of log p it would keep all; here the gradient is made of the logits again.
"""

from keras import ops

from transformer_contract.smoothing import SMOOTHINGS


def cross_entropy(logits, labels, pad_id, label_smoothing, smoothing):
    """The mean loss of the labels that are not padding; see impl_keras.loss."""
    right, other, padding, negative_entropy = SMOOTHINGS[smoothing](
        label_smoothing, logits.shape[-1])
    kept = labels != pad_id
    share = ops.cast(kept, logits.dtype) / ops.cast(
        ops.maximum(ops.sum(kept), 1), logits.dtype)

    @ops.custom_gradient
    def loss_of(logits):
        highest = ops.max(logits, axis=-1, keepdims=True)
        total = ops.sum(ops.exp(logits - highest), axis=-1, keepdims=True)
        at_label = ops.take_along_axis(logits, labels[..., None], axis=-1)
        q_logits = (
            (right - other) * (at_label - highest)[..., 0]
            + other * ops.sum(logits - highest, axis=-1)
            + (padding - other) * (logits[..., pad_id] - highest[..., 0]))
        losses = negative_entropy + ops.log(total[..., 0]) - q_logits

        def backward(*gradients, upstream=None):
            """The gradient by the logits, (p - q) where labels are kept."""
            gradient = gradients[0] if upstream is None else upstream
            token = ops.arange(logits.shape[-1], dtype=labels.dtype)
            q = (other
                 + (right - other) * ops.cast(
                     token == labels[..., None], logits.dtype)
                 + (padding - other) * ops.cast(
                     token == pad_id, logits.dtype))
            scale = gradient * share[..., None]
            return ops.exp(logits - highest) * (scale / total) - scale * q

        return ops.sum(share * losses), backward

    return loss_of(logits)
