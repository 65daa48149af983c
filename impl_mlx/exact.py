"""What MLX computes less exactly than its inputs' dtype allows.

Its exp, sigmoid, erf, erfinv, softmax and logsumexp of float64 are float32's,
right to some 1e-7; expm1, tanh, log and sqrt are right to rounding, and those
below are made of them. docs/mlx.md has what was measured.
"""

import math

import mlx.core as mx

#: The distance of the nodes of erfc's sum, and the nodes. What the sum leaves
#: out is exp(-π²/STEP²) of it, 7e-18.
STEP = 0.5
NODES = [STEP * (n + 0.5) for n in range(13)]


@mx.custom_function
def _exp(x):
    """eˣ by e^|x| = 1 + expm1(|x|)."""
    grown = 1 + mx.expm1(mx.abs(x))
    return mx.where(x < 0, 1 / grown, grown)


@_exp.vjp
def _exp_vjp(x, dy, y):
    """dy eˣ."""
    return dy * y


def exp(x):
    """eˣ."""
    return _exp(x) if x.dtype == mx.float64 else mx.exp(x)


@mx.custom_function
def sigmoid(x):
    """σ(x) = 1 / (1 + exp(-x))."""
    return 1 / (1 + exp(-x))


@sigmoid.vjp
def _sigmoid_vjp(x, dy, y):
    """dy σ(x) σ(-x); 1 - σ(x) would lose what is small."""
    return dy * y * sigmoid(-x)


def _tails(x):
    """erfc(x) and erf(x) of x ≥ 0.

    The midpoint rule for erfc(x) = 2x/π exp(-x²) ∫ exp(-t²) / (t² + x²) dt
    over t > 0; a pole at t = ix adds what it lacks where x is small (Hunter
    and Regan 1972). No term cancels another.
    """
    total = sum(math.exp(-t * t) / (t * t + x * x) for t in NODES)
    tail = 2 * STEP / math.pi * x * exp(-x * x) * total
    near = x < math.pi / STEP
    turn = 2 * math.pi / STEP * x
    return (tail + mx.where(near, 2 / (1 + exp(turn)), 0),
            mx.where(near, mx.tanh(turn / 2), 1) - tail)


@mx.custom_function
def erfc(x):
    """1 - erf(x), of 16 bits in float32."""
    wide = x if x.dtype == mx.float64 else x.astype(mx.float32)
    tail, _ = _tails(mx.minimum(mx.abs(wide), 30))  # erfc(30) is 0
    return mx.where(wide < 0, 2 - tail, tail).astype(x.dtype)


@erfc.vjp
def _erfc_vjp(x, dy, y):
    """-dy 2/√π exp(-x²)."""
    return dy * (-2 / math.sqrt(math.pi)) * exp(-x * x)


def sum_of(x):
    """The sum over the last axis, which stays; summed in float64.

    As mean_of, and for its reason.
    """
    wide = x.astype(mx.float64)
    return mx.sum(wide, axis=-1, keepdims=True).astype(x.dtype)


def mean_of(x):
    """The mean over the last axis, which stays; summed in float64.

    MLX's own sum of float32 is a running one: its error grows with the axis.
    """
    wide = x.astype(mx.float64)
    return mx.mean(wide, axis=-1, keepdims=True).astype(x.dtype)


def erf_inv(x):
    """The number whose erf is x, float64, -1 < x < 1.

    Winitzki's approximation, right to 2e-3, and three of Halley's steps; each
    has a third of the error's digits left.
    """
    size = mx.abs(x)
    low = mx.log1p(-size * size)
    half = 2 / (math.pi * 0.147) + low / 2
    y = mx.sqrt(mx.sqrt(half * half - low / 0.147) - half)
    for _ in range(3):
        tail, body = _tails(y)
        short = mx.where(size < 0.5, size - body, tail - (1 - size))
        step = short / (2 / math.sqrt(math.pi) * exp(-y * y))
        y = y + step / (1 - y * step)
    return mx.where(x < 0, -y, y)
