"""A port under its own compiler, with the face that a proof asks.

JAX compiles each operation for each shape, which takes 40 seconds of a core for
each drawn model. Here a model is two programs: one of its steps, loss and
gradients, whatever its weights, and a training step of the fast form.
"""

from parity import ports


class CompiledEngine:
    """An engine whose forward pass and gradients are one program.

    The step is that of the fast form. A gradient is of weights alone.
    """

    def __init__(self, engine):
        self.engine, self.fast = engine, ports.engine(engine.NAME, "fast")
        self.answers = ports.whole(engine.NAME).answers
        for name in ("build", "export", "train_step"):
            setattr(self, name, getattr(engine, name))

    def trainer(self, model, training):
        """A Trainer of the fast form, of a copy of a model."""
        return self.fast.trainer(self.fast.build(
            "transformer", model.config, self.engine.export(model)), training)

    def forward(self, model, *inputs):
        """Every step by name."""
        _, target, *_ = inputs
        return self.answers(model, *inputs, target)[0]  # as labels

    def gradients(self, model, *inputs):
        """The loss, and its gradient by every weight."""
        return self.answers(model, *inputs)[1:]
