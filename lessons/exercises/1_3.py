"""The gradient of an embedding's table, by hand.

The forward pass was  embedded = table[tokens] * sqrt(D).  Given `tokens` [B T],
the gradient of its output `dembedded` [B T D], and the number of rows `vocab`,
return the gradient of the table, an array [vocab D].

A token may stand in several places. Think of what its row then receives, and
try your code on a sentence with one word twice. Do it by hand, without a
framework's own derivatives.
"""


def embed_backward(tokens, dembedded, vocab):
    raise NotImplementedError
