"""Tensors lie where their model lies, on machines without an accelerator too.

Torch's meta device computes shapes and no values, and refuses a tensor of the
CPU beside its own, as CUDA does.
"""

import numpy as np
import pytest

from parity.check import wide
from parity_tests.support import engines


@pytest.fixture
def torch_engine(monkeypatch):
    """The engine, and the set of devices that its answers come from."""
    engine, devices = engines.usable("torch"), set()

    def to_numpy(tensor):
        devices.add(tensor.device.type)
        return np.broadcast_to(0.0, tensor.shape)

    monkeypatch.setattr(engine, "to_numpy", to_numpy)
    return engine, devices


def placed(engine, model):
    return engine.build("transformer", model.config, model.weights(),
                        device="meta")


@pytest.mark.long(40)
@pytest.mark.parametrize("model", wide.models(), ids=lambda model: model.name)
def test_all_is_made_where_the_model_lies(torch_engine, model):
    engine, devices = torch_engine
    there, batch = placed(engine, model), tuple(model.main)
    key = np.array([1, 2], np.uint32)
    engine.predict(there, *batch)
    engine.forward(there, *batch, key=key)
    engine.gradients(there, *batch, batch[1], key=key)
    assert devices == {"meta"}


def test_jax_compiles_nothing_to_take_an_array(caplog):
    """It would for each new shape, and a model has dozens."""
    engine = engines.usable("jax")
    import jax
    with jax.log_compiles():
        taken = engine.to_native(np.ones((3, 19, 23)), "cpu")
        assert "ompil" not in caplog.text
        taken + taken  # which does, so that the log is seen to tell it
    assert "ompil" in caplog.text


def test_a_gpus_attention_is_not_cudnns(monkeypatch):
    """Its kernel is wrong where a query may see no key, in 16 bits."""
    engines.usable("torch")
    import torch
    from torch.backends import cuda
    from impl_torch.fast import attention

    class OnGpu(torch.Tensor):
        is_cuda = True

    def call(query, *inputs, **words):
        seen.append((cuda.cudnn_sdp_enabled(), cuda.math_sdp_enabled()))
        return query

    seen, query = [], torch.ones(1, 1, 2, 2)
    monkeypatch.setattr(attention.F, "scaled_dot_product_attention", call)
    before = cuda.cudnn_sdp_enabled()
    for x in (query, query.as_subclass(OnGpu)):
        attention.one_call(x, query, query, None, False, 1.0)
    assert seen == [(before, True), (False, True)]
    assert cuda.cudnn_sdp_enabled() == before
