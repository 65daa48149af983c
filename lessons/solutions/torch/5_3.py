import torch


def packed(query, key, value, query_bias, key_bias, value_bias):
    return (torch.cat([query.T, key.T, value.T]),
            torch.cat([query_bias, key_bias, value_bias]))
