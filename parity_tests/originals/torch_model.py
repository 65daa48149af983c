"""What every original in PyTorch does alike: arrays, loss, gradients, a step.
"""

import typing

import numpy as np

from parity_tests.originals import random_models


class TorchModel:
    """An original in float64 on a CPU, without dropout.

    A subclass sets ``torch`` and ``model``, and has ``run`` and ``logits``.
    """

    #: How models are drawn, see ``random_models.described``.
    DRAWN: dict = {}

    #: (Dialect) -> the Dialect that is proved.
    provable = staticmethod(lambda dialect: dialect)

    #: What a dialect's names begin with and this model's do not.
    bare = ""

    #: What is drawn for a model of a configuration, and our weights of it.
    asked = staticmethod(random_models.asked)
    completed = staticmethod(lambda weights, source: weights)

    torch: typing.Any
    model: typing.Any
    logits: typing.Callable

    def arrays(self):
        """Every array of it by its own name, tied ones under each name."""
        return {name: tensor.detach().numpy().copy()
                for name, tensor in self.model.state_dict().items()}

    def load(self, arrays):
        """Take arrays by name; those that are tied once, under one name."""
        state = self.model.state_dict()
        for name, array in arrays.items():
            with self.torch.no_grad():
                state[name.removeprefix(self.bare)].copy_(self.tensor(array))

    def tensor(self, array):
        """An array as a tensor."""
        return self.torch.from_numpy(np.ascontiguousarray(array))

    def loss(self, question):
        """The mean cross-entropy of the labels, with its graph."""
        return self.torch.nn.functional.cross_entropy(
            self.logits(question).flatten(0, 1),
            self.tensor(question.labels).flatten(),
            ignore_index=question.pad_id)

    def gradients(self, question):
        """The loss, and its gradient by every parameter."""
        self.model.zero_grad()
        loss = self.loss(question)
        loss.backward()
        return loss.item(), {
            name: parameter.grad.numpy().copy() for name, parameter
            in self.model.named_parameters() if parameter.grad is not None}

    def step(self, question, training):
        """Make one step of Adam; the loss before it."""
        optimizer = self.torch.optim.Adam(
            self.model.parameters(), lr=training.learning_rate,
            betas=(training.beta1, training.beta2), eps=training.eps)
        optimizer.zero_grad()
        loss = self.loss(question)
        loss.backward()
        optimizer.step()
        return loss.item()
