"""A masked softmax.

`scores` is [B H T S], for B sentences, H heads, T queries and S keys. `mask` is
boolean [B 1 T S], True where a query may attend to a key. Return the weights,
[B H T S]:

- where the mask is False, the weight is exactly 0;
- the other weights of a row are positive and have the sum 1;
- in a row whose mask is False everywhere, all weights are 0, not NaN.
"""


def masked_softmax(scores, mask):
    raise NotImplementedError
