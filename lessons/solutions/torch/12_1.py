import torch


def to_bfloat16(x):
    bits = x.view(torch.int32)
    last = (bits >> 16) & 1
    bits = bits + 0x7FFF + last
    return (bits & -0x10000).view(torch.float32)  # the upper 16 bits
