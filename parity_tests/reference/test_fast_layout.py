"""Weights that the reference's fast form lays out for a search."""

import numpy as np
import pytest

from transformer_contract.config import preset
from transformer_contract.weights import probe_weights
from reference_numpy.fast import engine, layout
from reference_numpy.parameters import modules


@pytest.mark.parametrize("outputs, size", [(7, 3), (6, 3), (2, 3), (3, 3)])
@pytest.mark.parametrize("biased", [False, True])
def test_strips_are_the_whole_product(outputs, size, biased):
    draw = np.random.default_rng(0).standard_normal
    weight, x = draw((outputs, 4)), draw((2, 5, 4))
    bias = draw(outputs) if biased else None
    y = layout.Strips(weight, bias, size)(x)
    np.testing.assert_allclose(
        y, x @ weight.T + (bias if biased else 0), rtol=1e-14, atol=1e-14)


def test_strips_are_taken_where_they_pay(monkeypatch):
    """Of few rows, and where a strip is a small product."""
    weight = np.zeros((64, 2048), np.float32)
    monkeypatch.setattr(layout, "takes_small", lambda: True)
    assert [layout.strip(rows, weight[:, :512]) for rows in (1, 2, 32, 33)] == [
        0, 32, 32, 0]
    assert [layout.strip(rows, weight) for rows in (8, 16, 32)] == [32, 16, 8]
    assert layout.strip(2, np.zeros((64, 10**5), np.float32)) == 0
    monkeypatch.setattr(layout, "takes_small", lambda: False)
    assert layout.strip(2, weight) == 0


@pytest.mark.parametrize("wide", [False, True])
def test_what_lays_out_leaves_the_model(wide, monkeypatch):
    """Its maps stay what they were, and short searches get no other model."""
    monkeypatch.setattr(layout, "takes_small", lambda: wide)
    config = preset("lesson")
    model = engine.build("transformer", config, probe_weights(config))
    kinds = [type(each) for _, each in modules(model)]
    assert layout.laid_out(model, 4, layout.LONG - 1) is model
    own = layout.laid_out(model, 4, layout.LONG)
    assert [type(each) for _, each in modules(model)] == kinds
    taken = own.decoder.layers[0].feed_forward.inner
    assert isinstance(taken, layout.Strips) == wide


@pytest.mark.parametrize("threads, limit, library, found, takes", [
    (1, None, "scipy-openblas", ["X86_V3", "X86_V4"], True),
    (2, "1", "scipy-openblas", ["X86_V4"], True),
    (2, None, "scipy-openblas", ["X86_V4"], False),
    (1, None, "scipy-openblas", ["X86_V3"], False),
    (1, None, "accelerate", ["X86_V4"], False)])
def test_whether_small_products_pay(threads, limit, library, found, takes,
                                    monkeypatch):
    monkeypatch.setattr(layout, "THREADS", threads)
    for name in "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS":
        monkeypatch.delenv(name, raising=False)
    if limit:
        monkeypatch.setenv("OMP_NUM_THREADS", limit)
    monkeypatch.setattr(np, "show_config", lambda mode: {
        "SIMD Extensions": {"baseline": ["X86_V2"], "found": found},
        "Build Dependencies": {"blas": {"name": library}}})
    assert layout.takes_small.__wrapped__() == takes
