import torch.nn.functional as F


def linear(x, w, name):
    return F.linear(x, w[f"{name}.kernel"].T, w[f"{name}.bias"])


def layer_norm(x, w, name):
    return F.layer_norm(x, x.shape[-1:], w[f"{name}.scale"],
                        w[f"{name}.bias"], eps=1e-5)


def attention(x, memory, mask, w, name, heads):
    def split(y):
        return y.unflatten(-1, (heads, -1)).transpose(1, 2)
    query = split(linear(x, w, f"{name}_query"))
    key = split(linear(memory, w, f"{name}_key"))
    value = split(linear(memory, w, f"{name}_value"))
    context = F.scaled_dot_product_attention(query, key, value, mask)
    context = context.transpose(1, 2).flatten(2)
    return linear(context, w, f"{name}_output")


def decoder_layer(x, memory, source_mask, target_mask, w, heads):
    y = attention(x, x, target_mask, w, "self", heads)
    x = layer_norm(x + y, w, "norm_1")
    y = attention(x, memory, source_mask, w, "cross", heads)
    x = layer_norm(x + y, w, "norm_2")
    y = linear(F.relu(linear(x, w, "inner")), w, "outer")
    return layer_norm(x + y, w, "norm_3")
