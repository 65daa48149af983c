"""A mask for torch's own attention.

This project's masks are boolean [B 1 T S], and True means that a query may
attend to a key. torch.nn.MultiheadAttention wants `attn_mask` as [B·H T S],
with the H heads of the first row of a batch, then those of the second, and so
on; and its True means that a query may not attend.

Given a mask and the number of heads, return torch's mask, boolean [B·H T S].
Nothing fails if it is wrong.
"""


def torch_mask(mask, heads):
    raise NotImplementedError
