from keras import ops


def packed(query, key, value, query_bias, key_bias, value_bias):
    kernels = [ops.transpose(each) for each in (query, key, value)]
    return (ops.concatenate(kernels),
            ops.concatenate([query_bias, key_bias, value_bias]))
