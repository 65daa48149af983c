def torch_mask(mask, heads):
    return ~mask[:, 0].repeat_interleave(heads, dim=0)
