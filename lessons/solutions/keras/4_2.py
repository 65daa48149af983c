import numpy as np
from keras import ops


def masked_softmax(scores, mask):
    hidden = ops.where(mask, scores, np.finfo("float64").min)
    return ops.where(mask, ops.softmax(hidden, axis=-1), 0)
