"""Hugging Face's models beside edited copies of their own files, and ports."""

import dataclasses
import functools

import numpy as np

from benchmarks.families import drawing, planting
from benchmarks.families.fault import BenchPair

#: Sizes of most models: width, heads, key heads, inner width, vocabulary,
#: tokens.
W, H, G, F, V, T = 24, 4, 2, 40, 29, 9

DECODER = {"hidden_size": W, "num_hidden_layers": 2, "vocab_size": V,
           "num_attention_heads": H, "num_key_value_heads": G,
           "intermediate_size": F, "max_position_embeddings": 32,
           "head_dim": W // H, "use_cache": False, "pad_token_id": 0}
ENCODER = {"hidden_size": W, "num_hidden_layers": 2, "vocab_size": V,
           "num_attention_heads": H, "intermediate_size": F,
           "max_position_embeddings": 32, "pad_token_id": 0}


def tokens():
    """ids [2 9] without 0, and a mask with two places left out behind."""
    ids = np.random.default_rng(1).integers(2, V, (2, T))
    mask = np.ones((2, T), np.int64)
    mask[1, -2:] = 0
    return {"input_ids": ids, "attention_mask": mask}


def unpadded():
    """ids [2 9] alone."""
    return {"input_ids": tokens()["input_ids"]}


def image(*shape):
    """A function that draws pixels of a shape."""
    return lambda: {"pixel_values": np.random.default_rng(2).normal(
        size=shape)}


@dataclasses.dataclass(frozen=True)
class Original:
    """One of Hugging Face's models, tiny.

    Attributes:
        family: what the bench calls it.
        name: the folder of its file, ``models/name/modeling_name.py``.
        kind: its class there.
        config: the class of its config, and the fields that are given.
        given: makes the keywords of its call, of NumPy arrays.
        extra: (keyword, value) each that the class is given beside a config.
    """

    family: str
    name: str
    kind: str
    config: tuple
    given: object = tokens
    extra: tuple = ()

    def settings(self):
        """A config."""
        import transformers
        kind, fields = self.config
        config = getattr(transformers, kind)(**fields)
        config._attn_implementation = "eager"
        return config

    def build(self, source):
        """Its class in a file of source, with drawn weights."""
        import torch
        torch.manual_seed(0)
        return self.kind_of(source.load())

    def kind_of(self, module):
        """A model of the class in a module."""
        return getattr(module, self.kind)(
            self.settings(), **dict(self.extra))

    @functools.cached_property
    def _plain(self):
        import importlib
        import torch
        module = importlib.import_module(
            f"transformers.models.{self.name}.modeling_{self.name}")
        torch.manual_seed(0)
        return drawing.drawn(self.kind_of(module))

    def inputs(self):
        """Keywords, as torch's tensors."""
        import torch
        return {name: torch.from_numpy(x) for name, x in self.given().items()}

    def plain(self):
        """(model, (), keywords) of the library's own."""
        return self._plain, (), self.inputs()

    def copied(self, source):
        """The same of an edited copy of its file, with the same weights."""
        model = self.build(source).double().eval()
        model.load_state_dict(self._plain.state_dict(), strict=False)
        return model, (), self.inputs()

    def file(self, *edits):
        """Its file, edited or not."""
        return planting.hugging_face(self.name, *edits)

    def fault(self, name, says, *edits, at=""):
        """A BenchPair: the library's own beside an edited copy of its file."""
        source = self.file(*edits)
        return BenchPair(
            self.family, name, self.plain,
            functools.partial(self.copied, source), says=says,
            where=tuple((source.file, line) for line in source.lines),
            source=source.text, at=at)

    def sound(self):
        """A copy that is not edited."""
        return BenchPair(
            self.family, "an equal copy", self.plain, functools.partial(
                self.copied, self.file()))


@dataclasses.dataclass(frozen=True)
class OwnOriginal(Original):
    """An original of ours in torch: a file of ``ports`` with a class Model.

    Attributes:
        family: what the bench calls it.
        name: the name of the file.
        kind: the class.
        config: what the class is given.
        given: makes its inputs, a dict of NumPy arrays.
    """

    def build(self, source):
        import torch
        torch.manual_seed(0)
        return getattr(source.load(), self.kind)(self.config)

    @functools.cached_property
    def _plain(self):
        return drawing.drawn(self.build(planting.port(self.name)))

    def file(self, *edits):
        return planting.port(self.name, *edits)


@dataclasses.dataclass(frozen=True)
class OurPort:
    """A short port of an original into torch, nnx or Keras.

    Attributes:
        family: what the bench calls it.
        file: the name of its file in ``ports``, which has
            ``build(arrays, config)``, a model with these weights.
        a: makes the original, (model, inputs, keywords).
        given: makes the port's inputs, NumPy arrays.
        config: what ``build`` is given beside arrays.
        framework: "torch", "nnx" or "keras".
    """

    family: str
    file: str
    a: object
    given: object
    config: object = None
    framework: str = "nnx"

    def made(self, source, change=None):
        """(model, inputs, {}) of the port's file, edited or not.

        Args:
            source: the file.
            change: what is done to {name: array}, or None.
        """
        given = drawing.arrays(self.a()[0])
        given = change(given) if change else given
        inputs = tuple(self.given())
        if self.framework == "torch":
            import torch
            inputs = tuple(map(torch.from_numpy, inputs))
        return source.load().build(given, self.config), inputs, {}

    def fault(self, name, says, *edits, change=None, at="", within=False):
        """A BenchPair: the original beside the edited port.

        Args:
            name, says: as in BenchPair.
            edits: as in EditedSource.
            change: what is done to the original's arrays before.
            at: as in BenchPair.
            within: beside the port that is sound, not beside the original.
        """
        source = planting.port(self.file, *edits)
        sound = functools.partial(self.made, planting.port(self.file))
        return BenchPair(
            self.family, name, sound if within else self.a,
            functools.partial(self.made, source, change),
            across=not within and self.framework != "torch", says=says,
            where=tuple((source.file, line) for line in source.lines),
            source=source.text, at=at)

    def sound(self):
        """The original beside the sound port."""
        return dataclasses.replace(
            self.fault(f"a sound port to {self.framework}", ()))
