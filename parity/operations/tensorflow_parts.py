"""What TensorFlow does in one call, done in several that others do as well.

Each function has the inputs of the operation that it stands for, and its
attributes last; it returns the outputs, or None for one that nothing reads.
"""

import math

import numpy as np
import tensorflow as tf


def _softmax(x, _):
    e = tf.exp(x - tf.reduce_max(x, -1, keepdims=True))
    return e / tf.reduce_sum(e, -1, keepdims=True)


def _log_softmax(x, _):
    shifted = x - tf.reduce_max(x, -1, keepdims=True)
    return shifted - tf.math.log(
        tf.reduce_sum(tf.exp(shifted), -1, keepdims=True))


def _bias(x, bias, attributes):
    if attributes.get("data_format") in (b"NCHW", "NCHW") and len(x.shape) > 2:
        bias = tf.reshape(bias, (-1,) + (1,) * (len(x.shape) - 2))
    return tf.add(x, bias)


def _squared_difference(x, y, _):
    return tf.raw_ops.Pow(x=tf.subtract(x, y), y=tf.constant(2.0, x.dtype))


def _square(x, _):
    return tf.raw_ops.Pow(x=x, y=tf.constant(2, x.dtype))


def _relu6(x, _):
    return tf.minimum(tf.maximum(x, tf.constant(0, x.dtype)),
                      tf.constant(6, x.dtype))


def _leaky(x, attributes):
    slope = tf.constant(_plain_number(attributes["alpha"]), x.dtype)
    return tf.where(x > 0, x, slope * x)


def _elu(x, _):
    return tf.where(x > 0, x, tf.math.expm1(x))


def _selu(x, _):
    scale = tf.constant(1.0507009873554804934193349852946, x.dtype)
    alpha = tf.constant(1.7580993408473768599402175208123, x.dtype)
    return tf.where(x > 0, scale * x, alpha * tf.math.expm1(x))


def _softsign(x, _):
    return x / (tf.abs(x) + 1)


def _batch_norm(x, scale, offset, mean, variance, attributes):
    """FusedBatchNorm of three kinds: y, and the batch's statistics."""
    form = attributes.get("data_format", b"NHWC")
    form = form.decode() if isinstance(form, bytes) else form
    epsilon = _plain_number(attributes.get("epsilon", 1e-4))
    factor = _plain_number(attributes.get("exponential_avg_factor", 1.0))
    channel = form.index("C")
    kept = [x.shape[i] if i == channel else 1 for i in range(len(form))]
    of = tf.cast(x, scale.dtype)
    new = mean, variance
    if attributes.get("is_training", True):
        axes = [i for i in range(len(form)) if i != channel]
        now = tf.reduce_mean(of, axes)
        spread = tf.reduce_mean((of - tf.reshape(now, kept)) ** 2, axes)
        count = math.prod(tuple(x.shape)) // x.shape[channel]
        wide = spread * (count / max(count - 1, 1))
        new = (now, wide) if factor == 1 else (
            mean * (1 - factor) + now * factor,
            variance * (1 - factor) + wide * factor)
        mean, variance = now, spread
    y = (of - tf.reshape(mean, kept)) * tf.math.rsqrt(
        tf.reshape(variance, kept) + epsilon)
    y = y * tf.reshape(scale, kept) + tf.reshape(offset, kept)
    return [tf.cast(y, x.dtype), *new, None, None, None][:6]


def _div_no_nan(x, y, _):
    zero = tf.constant(0, x.dtype)
    return tf.where(tf.equal(y, zero), zero, x / y)


def _plain_number(value):
    """The short decimal that a number of float32 was written as."""
    short = short_decimal(value)
    return float(value) if short is None else short


def short_decimal(value):
    """A decimal of six digits at most that rounds to a float32, or None."""
    decimal = float(f"{float(value):.6g}")
    return decimal if np.float32(decimal) == np.float32(value) else None


def _stack(*inputs):
    *inputs, attributes = inputs
    axis = attributes.get("axis", 0)
    return tf.concat([tf.expand_dims(each, axis) for each in inputs], axis)


def _resized(x, size, attributes):
    """Bilinear, of x [B H W C]: along H, then along W."""
    for axis, count in zip((1, 2), size.numpy().tolist()):
        x = _along(x, axis, count, attributes)
    return x


def _along(x, axis, count, attributes):
    """Between the two nearest numbers of an axis, by their distances."""
    length = x.shape[axis]
    place = np.arange(count, dtype=np.float64)
    if attributes.get("align_corners"):
        place *= (length - 1) / max(count - 1, 1)
    elif attributes.get("half_pixel_centers"):
        place = np.maximum((place + 0.5) * length / count - 0.5, 0)
    else:
        place *= length / count
    low = np.minimum(np.floor(place).astype(int), length - 1)
    high = np.minimum(low + 1, length - 1)
    share = tf.constant((place - low).reshape(
        (-1,) + (1,) * (len(x.shape) - axis - 1)), x.dtype)
    below, above = tf.gather(x, low, axis=axis), tf.gather(x, high, axis=axis)
    return below + share * (above - below)


#: Operation -> what stands for it.
PARTS: dict = {
    "Softmax": _softmax, "LogSoftmax": _log_softmax, "BiasAdd": _bias,
    "SquaredDifference": _squared_difference, "Square": _square,
    "Relu6": _relu6, "LeakyRelu": _leaky, "Elu": _elu, "Selu": _selu,
    "Softsign": _softsign, "FusedBatchNorm": _batch_norm,
    "FusedBatchNormV2": _batch_norm, "FusedBatchNormV3": _batch_norm,
    "DivNoNan": _div_no_nan, "Pack": _stack, "ResizeBilinear": _resized}
