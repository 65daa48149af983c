import numpy as np


def packed(query, key, value, query_bias, key_bias, value_bias):
    return (np.concatenate([query.T, key.T, value.T]),
            np.concatenate([query_bias, key_bias, value_bias]))
