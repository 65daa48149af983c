"""The loss.

`logits` is [B T V], `labels` an array of ids [B T], and a label equal to
`pad_id` does not count. Return the mean of -log p of the right tokens over all
labels that count, as a float; p is the softmax of the logits. The mean is over
the labels of the whole batch, not over each row first.
"""


def cross_entropy(logits, labels, pad_id):
    raise NotImplementedError
