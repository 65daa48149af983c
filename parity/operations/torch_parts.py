"""What torch does in one call, done in several that others do as well.

Each function has the arguments of the operation that it stands for, and
computes the same in operations that are recorded one by one. Where a case is
not covered it returns NotImplemented, and the operation is recorded whole.
"""

import math
from collections.abc import Callable

import torch
from torch.utils._python_dispatch import _disable_current_modes

aten = torch.ops.aten


def addmm(bias, x, y, *, beta=1, alpha=1):
    """β bias + α x y."""
    product = torch.mm(x, y)
    return added(bias, product, beta, alpha)


def addmv(bias, x, y, *, beta=1, alpha=1):
    """β bias + α x y, of a matrix and a vector."""
    return added(bias, torch.mv(x, y), beta, alpha)


def baddbmm(bias, x, y, *, beta=1, alpha=1):
    """β bias + α x y, of batches."""
    return added(bias, torch.bmm(x, y), beta, alpha)


def grouped_mm(x, kernels, offs=None, bias=None, out_dtype=None):
    """Rows of x [T I] in groups, each by a kernel of its own [E I O].

    Args:
        offs: the first row behind each group; without it x is [E T I].
    """
    if offs is None and x.dim() == kernels.dim() == 3:
        made = torch.bmm(x, kernels)
    elif offs is not None and x.dim() == 2 and kernels.dim() == 3:
        with _disable_current_modes():  # how long a group is, is no number
            ends = [0, *offs.tolist()]
        groups = [x[first:last] @ kernels[i] for i, (first, last) in enumerate(
            zip(ends, ends[1:])) if first < last]
        left = len(x) - ends[-1]
        made = torch.cat(groups + [
            x.new_zeros(left, kernels.shape[-1])] * bool(left))
    else:
        return NotImplemented
    return made if bias is None else made + bias


def added(bias, product, beta, alpha):
    """β bias + α product, without factors of one."""
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    return product + (bias if beta == 1 else bias * beta)


def layer_norm(x, shape, weight, bias, epsilon):
    """Over the last axes: (x - mean) / √(var + ε) · weight + bias."""
    axes = [*range(-len(shape), 0)]
    mean, root = moments(x, axes, epsilon)
    return scaled((x - mean) * root, weight, bias), mean, root


def moments(x, axes, epsilon):
    """The mean, and one by the root of the variance and ε."""
    mean = torch.mean(x, axes, keepdim=True)
    distance = x - mean
    variance = torch.mean(distance * distance, axes, keepdim=True)
    return mean, torch.rsqrt(variance + epsilon)


def scaled(x, weight, bias):
    """x · weight + bias, where there are such."""
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def group_norm(x, weight, bias, n, c, hw, groups, epsilon):
    """Each group of channels [N C *] is normalised as one."""
    grouped = x.reshape(n, groups, -1)
    mean, root = moments(grouped, [2], epsilon)
    y = ((grouped - mean) * root).reshape(x.shape)
    return (scaled(y, *(by_channel(each, x) for each in (weight, bias))),
            mean.reshape(n, groups), root.reshape(n, groups))


def convolution(x, kernel, bias, stride, padding, dilation, transposed,
                output_padding, groups):
    """Without its bias [C], which is then added to [N C *]."""
    if bias is None:
        return NotImplemented
    made = aten.convolution(x, kernel, None, stride, padding, dilation,
                            transposed, output_padding, groups)
    return made + by_channel(bias, made)


def by_channel(array, x):
    """One number a channel, shaped to meet x [N C *]."""
    return None if array is None else array.reshape(
        1, -1, *(1 for _ in x.shape[2:]))


def batch_norm_inference(x, weight, bias, mean, variance, momentum, epsilon):
    """With the averages that are kept: x [N C *]."""
    y = (x - by_channel(mean, x)) * torch.rsqrt(
        by_channel(variance, x) + epsilon)
    return (scaled(y, *(by_channel(each, x) for each in (weight, bias))),
            x.new_empty(0), x.new_empty(0))


def batch_norm(x, weight, bias, mean, variance, training, momentum, epsilon):
    """With averages that are kept; in training recorded whole."""
    if training or mean is None:
        return NotImplemented
    return batch_norm_inference(
        x, weight, bias, mean, variance, momentum, epsilon)


def softmax(x, axis, half_to_float=False):
    """exp(x - max) / sum."""
    if not x.numel() or not x.dim():
        return NotImplemented
    raised = torch.exp(x - torch.amax(x, axis, keepdim=True))
    return raised / torch.sum(raised, axis, keepdim=True)


def log_softmax(x, axis, half_to_float=False):
    """x - max - log sum exp(x - max)."""
    if not x.numel() or not x.dim():
        return NotImplemented
    shifted = x - torch.amax(x, axis, keepdim=True)
    return shifted - torch.log(torch.sum(
        torch.exp(shifted), axis, keepdim=True))


def gelu(x, *, approximate="none"):
    """x Φ(x), by erf or by tanh."""
    if approximate == "none":
        return 0.5 * x * (1 + torch.erf(x * math.sqrt(0.5)))
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
    return 0.5 * x * (1 + torch.tanh(inner))


def silu(x):
    """x σ(x)."""
    return x * torch.sigmoid(x)


def mish(x):
    """x tanh(log(1 + exp x))."""
    return x * torch.tanh(torch.nn.functional.softplus(x))


def leaky_relu(x, slope=0.01):
    """x, or slope · x below zero."""
    return torch.where(x > 0, x, x * slope)


def elu(x, alpha=1, scale=1, input_scale=1):
    """scale · x, or scale · α (exp(x · input_scale) - 1) below zero."""
    below = torch.expm1(x if input_scale == 1 else x * input_scale)
    below = below if alpha == 1 else below * alpha
    made = torch.where(x > 0, x, below)
    return made if scale == 1 else made * scale


def hardtanh(x, low=-1, high=1):
    """x between two bounds."""
    return torch.minimum(torch.maximum(x, x.new_tensor(low)),
                         x.new_tensor(high))


def rms_norm(x, shape, weight, epsilon):
    """x / √(mean x² + ε) · weight, over the last axes."""
    axes = [*range(-len(shape), 0)]
    epsilon = torch.finfo(x.dtype).eps if epsilon is None else epsilon
    root = torch.rsqrt(torch.mean(x * x, axes, keepdim=True) + epsilon)
    return scaled(x * root, weight, None), root


def attention_on_cpu(query, key, value, dropout=0.0, causal=False, *,
                     attn_mask=None, scale=None):
    """Scaled dot-product attention, with every step seen."""
    made = attention(query, key, value, attn_mask, dropout, causal, scale=scale,
                     enable_gqa=query.shape[-3] != key.shape[-3])
    return made if made is NotImplemented else (made[0], query.new_empty(0))


def attention(query, key, value, mask=None, dropout=0.0, causal=False,
              dropout_mask=None, *, scale=None, enable_gqa=False):
    """softmax(query keyᵀ · scale + mask) value [… T K], [… S K], [… S V]."""
    if dropout:
        return NotImplemented
    if enable_gqa:
        times = query.shape[-3] // key.shape[-3]
        key, value = (each.repeat_interleave(times, -3)
                      for each in (key, value))
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = torch.matmul(query, key.transpose(-2, -1)) * scale
    if causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool,
                          device=scores.device).tril()
    if mask is not None:
        scores = (torch.where(mask, scores, -math.inf)
                  if mask.dtype == torch.bool else scores + mask)
    weights = torch.softmax(scores, -1)
    if mask is not None and mask.dtype == torch.bool:
        seen = torch.isfinite(scores).any(-1, keepdim=True)
        if not bool(seen.all()):
            weights = torch.where(seen, weights, 0.0)
    return torch.matmul(weights, value), weights


def stack(tensors, axis=0):
    """Each with a new axis, joined along it."""
    return torch.cat([each.unsqueeze(axis) for each in tensors], axis)


def select(x, axis, place):
    """One place of an axis, which goes."""
    axis, size = axis % x.dim(), x.shape[axis]
    place = place % size
    return torch.ops.aten.slice.Tensor(
        x, axis, place, place + 1).squeeze(axis)


def addcmul(x, one, two, *, value=1):
    """x + value · one · two."""
    product = one * two
    return x + (product if value == 1 else product * value)


def addcdiv(x, one, two, *, value=1):
    """x + value · one / two."""
    ratio = one / two
    return x + (ratio if value == 1 else ratio * value)


def lerp(x, y, weight):
    """x + weight (y - x)."""
    return x + weight * (y - x)


def square_root_of_variance(x, axes=None, *, correction=1, keepdim=False):
    """The standard deviation."""
    return torch.sqrt(torch.var(
        x, axes, correction=correction, keepdim=keepdim))


#: Operation -> what stands for it.
PARTS: dict[object, Callable] = {
    aten.addmm: addmm, aten.addmv: addmv, aten.baddbmm: baddbmm,
    aten.convolution: convolution,
    aten.native_layer_norm: layer_norm, aten.native_group_norm: group_norm,
    aten.native_batch_norm: batch_norm,
    aten._native_batch_norm_legit_no_training: batch_norm_inference,
    aten._softmax: softmax, aten._log_softmax: log_softmax, aten.gelu: gelu,
    aten.silu: silu, aten.mish: mish, aten.leaky_relu: leaky_relu,
    aten.elu: elu, aten.hardtanh: hardtanh, aten._fused_rms_norm: rms_norm,
    aten._scaled_dot_product_flash_attention_for_cpu: attention_on_cpu,
    aten._scaled_dot_product_attention_math: attention,
    aten.stack: stack, aten.select: select, aten.addcmul: addcmul,
    aten.addcdiv: addcdiv, aten.lerp: lerp, aten.std: square_root_of_variance,
    aten._grouped_mm: grouped_mm,
}
