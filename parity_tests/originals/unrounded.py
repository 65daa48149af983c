"""A library's casts to float32, made to do nothing.

T5, Llama and fairseq compute their norms, softmax or rotation in float32
whatever the model is in. A sum in float32 depends on its order, so that two
sound implementations then differ by 1e-7. Without the casts all the rest is
compared in float64.
"""

import contextlib
from unittest import mock


@contextlib.contextmanager
def unrounded(torch):
    """Within this, nothing that PyTorch is asked becomes float32."""
    double, to = torch.float64, torch.Tensor.to
    functions = torch.nn.functional

    def kept(value):
        return double if value is torch.float32 else value

    def wide(softmax):
        return lambda *args, **more: softmax(*args, **{
            name: kept(value) for name, value in more.items()})

    with (mock.patch.object(
            torch.Tensor, "float", lambda self: to(self, double)),
          mock.patch.object(
              torch.Tensor, "to", lambda self, *args, **more: to(
                  self, *map(kept, args),
                  **{name: kept(value) for name, value in more.items()})),
          mock.patch.object(functions, "softmax", wide(functions.softmax)),
          mock.patch.object(functions, "log_softmax",
                            wide(functions.log_softmax))):
        yield
