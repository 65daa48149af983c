from keras import ops


def torch_mask(mask, heads):
    return ops.logical_not(ops.repeat(mask[:, 0], heads, axis=0))
