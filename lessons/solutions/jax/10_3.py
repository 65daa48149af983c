import jax


def loss_backward(logits, labels, pad_id):
    right = jax.nn.one_hot(labels, logits.shape[-1])
    kept = labels != pad_id
    return (jax.nn.softmax(logits, axis=-1) - right) * kept[..., None] / (
        kept.sum())
