"""A port under its own compiler, with the face that a proof asks.

JAX compiles each operation for each shape, which takes 40 seconds of a core for
each drawn model; compiled as a whole, as JAX is used, it takes less than half.
"""

from parity import ports


class Compiled:
    """An engine whose forward pass, gradients and step are compiled whole.

    The step is that of the fast form. A gradient is of weights alone.
    """

    MODE = "jit"

    def __init__(self, engine):
        self.engine, self.fast = engine, ports.engine(engine.NAME, "fast")
        self.modes = ports.modes(engine.NAME)
        for name in ("build", "export", "train_step"):
            setattr(self, name, getattr(engine, name))

    def trainer(self, model, training):
        """A Trainer of the fast form, of a copy of a model."""
        return self.fast.trainer(self.fast.build(
            "transformer", model.config, self.engine.export(model)), training)

    def forward(self, model, *inputs):
        """Every step by name."""
        return self.engine.call(model, *inputs, compiled=True)[1]

    def gradients(self, model, *inputs):
        """The loss, and its gradient by every weight."""
        return self.modes.differentiator(model, self.MODE, inputs)[0]()
