import numpy as np


def to_bfloat16(x):
    bits = x.view(np.uint32)
    last = (bits >> np.uint32(16)) & np.uint32(1)
    bits = bits + np.uint32(0x7FFF) + last
    return (bits & np.uint32(0xFFFF0000)).view(np.float32)
