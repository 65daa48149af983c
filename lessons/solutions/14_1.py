def torch_mask(mask, heads):
    return ~mask[:, 0].repeat(heads, axis=0)
