"""The tutorial's own classes, as the package ``annalog`` has them."""

import functools
import importlib.util
import pathlib
import sys

from parity_tests.originals.torch_model import TorchModel

#: The folder of the package with the classes, and its module that has them.
FOLDER, MODULE = "model_files", "seq2seq_attention"


@functools.cache
def classes():
    """The module with the tutorial's classes.

    Its folder is loaded alone: the package itself also asks for RDKit.
    """
    found = importlib.util.find_spec("annalog").submodule_search_locations[0]
    folder = pathlib.Path(found) / FOLDER
    spec = importlib.util.spec_from_file_location(
        FOLDER, folder / "__init__.py", submodule_search_locations=[
            str(folder)])
    sys.modules[FOLDER] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[FOLDER])
    return importlib.import_module(f"{FOLDER}.{MODULE}")


class Tutorial(TorchModel):
    """One model, whose √d and √d_k are not rounded to float32.

    Args:
        dialect: not used; the same as the others'.
        described: the tutorial's own arguments.
    """

    def __init__(self, dialect, described):
        import torch
        self.torch, kinds = torch, classes()
        encoder, decoder = (kind(
            described[vocab], described["hid_dim"], described[layers],
            described["n_heads"], described["pf_dim"], described["dropout"],
            "cpu", described["max_length"]) for kind, vocab, layers in (
                (kinds.Encoder, "input_dim", "enc_layers"),
                (kinds.Decoder, "output_dim", "dec_layers")))
        self.model = kinds.Seq2Seq(
            encoder, decoder, described["pad_idx"], described["pad_idx"],
            "cpu").double().eval()
        for part in self.model.modules():
            if hasattr(part, "scale"):
                part.scale = torch.tensor(
                    getattr(part, "head_dim", described["hid_dim"]),
                    dtype=torch.float64).sqrt()

    def run(self, question):
        """Its outputs by name."""
        source, target = map(self.tensor, (question.source, question.target))
        with self.torch.no_grad():
            memory = self.model.encoder(
                source, self.model.make_src_mask(source))
            return {"memory": memory.numpy(),
                    "logits": self.model(source, target)[0].numpy()}

    def logits(self, question):
        """A score for every token."""
        return self.model(*map(
            self.tensor, (question.source, question.target)))[0]
