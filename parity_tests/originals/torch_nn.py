"""``torch.nn.Transformer``, between embeddings and a projection."""

import warnings

import numpy as np

from parity_tests.originals.stack_ends import add_embeddings_and_projection
from parity_tests.originals.torch_model import TorchModel


class TorchNN(TorchModel):
    """One model, with ends as ``stack_ends.py`` describes them.

    Args:
        dialect: not used; the same as the others'.
        described: torch's own arguments, and the sizes of the ends.
    """

    provable = staticmethod(add_embeddings_and_projection)

    def __init__(self, dialect, described):
        import torch
        self.torch = torch
        ends = {name: described[name]
                for name in ("source_vocab", "target_vocab", "pad_id",
                             "max_length")}
        words = {name: value for name, value in described.items()
                 if name not in ends}
        with warnings.catch_warnings():  # on nested tensors
            warnings.simplefilter("ignore")
            model = torch.nn.Transformer(**words, batch_first=True)
        width, self.pad_id = described["d_model"], described["pad_id"]
        model.source = torch.nn.Embedding(ends["source_vocab"], width)
        model.target = torch.nn.Embedding(ends["target_vocab"], width)
        model.projection = torch.nn.Linear(width, ends["target_vocab"])
        self.model = model.double()
        for part in model.modules():  # eval() takes a path that zeroes padding
            if isinstance(part, torch.nn.Dropout):
                part.p = 0.0

    def run(self, question):
        """Its outputs by name."""
        with self.torch.no_grad():
            found = self._forward(question)
        return {name: value.numpy() for name, value in found.items()}

    def logits(self, question):
        """A score for every token."""
        return self._forward(question)["logits"]

    def _forward(self, question):
        hidden = self.tensor(question.source == self.pad_id)
        length = question.target.shape[1]
        later = self.tensor(~np.tri(length, dtype=bool))
        memory = self.model.encoder(
            self.model.source(self.tensor(question.source)),
            src_key_padding_mask=hidden)
        output = self.model.decoder(
            self.model.target(self.tensor(question.target)), memory,
            tgt_mask=later, memory_key_padding_mask=hidden)
        return {"memory": memory, "output": output,
                "logits": self.model.projection(output)}

