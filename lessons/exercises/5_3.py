"""Weights for torch's own attention.

This project stores the three projections of an attention apart, each kernel as
[in out], so that query = x @ kernel + bias. torch.nn.MultiheadAttention packs
them: `in_proj_weight` has first the query's rows, then the key's, then the
value's, each as [out in], and `in_proj_bias` has the three biases in that
order.

Given three kernels [D D] and three biases [D], return the tuple of
in_proj_weight [3D D] and in_proj_bias [3D]. The kernels are square: nothing
fails if one is the wrong way round.
"""


def packed(query, key, value, query_bias, key_bias, value_bias):
    raise NotImplementedError
