import math

from keras import ops


def embed(tokens, table):
    return ops.take(table, tokens, axis=0) * math.sqrt(table.shape[1])
