from keras import ops


def to_bfloat16(x):
    bits = ops.view(x, "int32")
    last = ops.bitwise_and(ops.right_shift(bits, 16), 1)
    bits = bits + 0x7FFF + last
    return ops.view(ops.bitwise_and(bits, -0x10000), "float32")
