"""An encoder layer, from its parts.

Write the paper's encoder layer, post-norm:

    x = norm_1(x + attention(x, x, mask))
    x = norm_2(x + outer(relu(inner(x))))

`x` is [B T D], `mask` boolean [B 1 1 T], True where a key may be attended to.
`w` is a dict of weights: "self_query.kernel" [D D] and "self_query.bias" [D],
likewise "self_key", "self_value", "self_output"; "inner" [D F], "outer" [F D];
"norm_1.scale", "norm_1.bias", and the same for "norm_2". A linear map is
x W + b. ε is 1e-5. Head h has the columns from h · D/heads on. Your answers to
3.1, 4.2, 5.1, 5.2 and 6.1 are the parts.
"""


def encoder_layer(x, mask, w, heads):
    raise NotImplementedError
