import math


def embed(tokens, table):
    return table[tokens] * math.sqrt(table.shape[1])
