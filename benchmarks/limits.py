"""What a machine allows, and how times grow."""

import numpy as np

from benchmarks.texts import milliseconds


def roofline(results, flops, size):
    """What this machine's products and memory allow: (seconds, in words).

    The best rate and bandwidth that any process of the run reached count.

    Args:
        results: by a worker each, "rates" of products and "bandwidth".
        flops: operations of the products.
        size: bytes that are read beside them.
    """
    rate = max(max(map(max, result["rates"])) for result in results)
    bandwidth = max(result["bandwidth"] for result in results)
    products, reading = flops / rate, size / bandwidth
    return products + reading, (
        f"{flops / 1e9:.3g} GFLOP of products at {rate / 1e9:.3g} GFLOP/s take "
        f"{milliseconds(products)} ms, reading {size / 1e6:.3g} MB at "
        f"{bandwidth / 1e9:.3g} GB/s {milliseconds(reading)} ms")


def exponent(sizes, seconds):
    """The slope of log time by log size; None of fewer than three sizes."""
    if len(sizes) < 3:
        return None
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
