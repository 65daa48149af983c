"""Greedy search.

`next_log_probs(tokens)` takes the list of ids written so far and returns log p
of every id that may come next, an array [V]. Begin with the list [bos]. Append
the most likely id, and again, until `eos` is appended or there are `most` ids
after the bos. Return the list of ints, with the bos and, where it ended, the
eos.
"""


def greedy(next_log_probs, bos, eos, most):
    raise NotImplementedError
