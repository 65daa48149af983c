"""Label smoothing.

As exercise 10.1, but the target is not all on the right token: a share `eps` is
spread evenly over all V tokens, the right one and padding included. So the
right token has 1 - eps + eps/V, every other eps/V. Return

    the mean of  -Σ q log p  over the labels that are not `pad_id`

as a float. Two other conventions spread the share over V - 1 and V - 2 tokens;
they are known by name here.
"""


def smoothed_loss(logits, labels, pad_id, eps):
    raise NotImplementedError
