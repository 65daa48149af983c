"""Models that the original libraries made and ran: a folder of each.

``config.json`` and ``model.safetensors`` are the library's own; in
``io.safetensors`` are the inputs, ``in.*``, and what it answered, ``out.*``, in
float64. torch.nn's have their weights there too, as ``w.*``, and a metadata key
``config``.
"""

import functools
import json
import re

import numpy as np

from transformer_contract import sound
from parity_io.checkpoints.folder import Checkpoint, read, read_file
from transformer_contract.components import WHOLE
from transformer_contract.dialects import searches, table
from parity_io.errors import InputError
from transformer_contract.generation import an_id_beside
from transformer_contract.weights import finite, select
from parity import ports
from parity.numerics.comparator import relative_error
from parity.numerics.tolerances import FLOAT64_LIMIT, limit

IO = "io.safetensors"

#: What the metadata of torch.nn's call their sizes -> torch's own words.
CALLED = {"n_heads": "nhead", "d_ff": "dim_feedforward",
          "eps": "layer_norm_eps"}

#: The answers of a search: greedy, or a beam with its width, its rule and the
#: exponent of the length, whose best W targets of a source are W rows.
SEARCH = re.compile(
    r"(greedy|beam\.W(\d+)\.(true|false|never)\.lp([\d.]+?))(\.scores)?")

#: Scores are float32 in transformers, whatever the model is in.
SCORES_LIMIT = 1e-6


class StoredOutputs:
    """One folder, read and checked.

    Attributes:
        name: the folder's.
        layout: its dialect's name.
        config, weights: ours; and apart, what is no part of the Transformer.
        answers: its ``out.*`` that are steps of ours, without the prefix.
        left_out: {answer: why it is not compared}.
        stale: none.
    """

    stale: frozenset = frozenset()

    def __init__(self, folder):
        self.name = folder.name
        _, arrays, metadata = read_file(folder / IO)
        checkpoint = _described(folder, arrays, metadata)
        self.table = table.recognised(checkpoint)
        self.layout = self.table.name
        self.config = self.table.config(
            checkpoint.config or {}, checkpoint.arrays)
        self.weights = self.table.read(checkpoint.arrays, self.config)
        self.apart = self.table.aside(checkpoint.arrays)
        self.given = select(arrays, "in.")
        self.answers, self.left_out, self.searches = {}, {}, {}
        answers = select(arrays, "out.")
        for name, array in answers.items():
            if search := SEARCH.fullmatch(name):
                self._search(name, search.groups(), checkpoint, answers)
            elif name.startswith("beam"):
                self.left_out[name] = "is a search whose settings are not told"
            elif self.table.step_of(name, self.config) is None:
                self.left_out[name] = "is no step of the Transformer"
            else:
                finite(name, array, str(folder))
                self.answers[name] = array

    def _search(self, name, words, checkpoint, answers):
        """Keep the settings of an answer that is a search's."""
        kind, width, rule, alpha, _ = words
        alike = [array.shape[1] for other, array in answers.items()
                 if other.startswith(kind[:4]) and array.ndim == 2]
        prompt = (self._prompts(answers[name], int(width or 1)).shape[1]
                  if self.config.stacks == "decoder"
                  and not name.endswith(".scores") else 1)
        asked = searches.settings(
            self.table, checkpoint.config, checkpoint.generation).replace(
                max_tokens=max(alike) - prompt)
        if width and int(width) > 1:
            asked = asked.replace(method="beam", beam=int(width),
                                  length_rule=f"hf_{rule}", alpha=float(alpha))
        try:
            self.searches[name] = asked.check(self.config)
            kind = float if name.endswith(".scores") else np.int64
            self.answers[name] = answers[name].astype(kind)
        except InputError as error:
            self.left_out[name] = f"is a search that cannot be done: {error}"

    def truths(self):
        """What each answer should be."""
        return self.answers

    def limit_and_scale(self, name, truths):
        """The limit of an answer, and that it is not zero beside another.

        Where the library casts to float32 it is that of a port in float32.
        """
        if name in self.searches:
            return SCORES_LIMIT if name.endswith(".scores") else 0.0, None
        if not self.table.casts:
            return FLOAT64_LIMIT, None
        own_error, _ = relative_error(self.in_float32[name], truths[name])
        return limit("float32", own_error, inner=True), None

    @functools.cached_property
    def in_float32(self):
        """What the reference answers in float32."""
        return self.replay(ports.engine("numpy"), "float32")

    def replay(self, engine, dtype="float64"):
        """Our answers under their names, as an engine computes them."""
        self.dtype = dtype
        try:
            steps = RUNS[self.table.component](self, engine)
        except KeyError as missing:
            raise InputError(
                f"the peer {self.name} lacks the input 'in.{missing.args[0]}'"
                ".") from None
        return {name: self._found(engine, name) if name in self.searches
                else steps[self.table.step_of(name, self.config)]
                for name in self.answers}

    def _found(self, engine, name):
        """The answer of a search: W rows a source, as theirs are cut."""
        truth, settings = self.answers[name], self.searches[name]
        ids = self.given["input_ids"][:len(truth) // settings.width]
        pad_id = self.config.pad_id
        if self.config.stacks == "decoder":
            ids = self._prompts(truth, settings.width)
            pad_id = an_id_beside([*ids.ravel(), *settings.eos_ids])
        found = engine.generate(
            self._built(engine, pad_id=pad_id), ids, settings)
        if name.endswith(".scores"):
            return found["scores"].reshape(truth.shape)
        tokens = found["tokens"].reshape(len(truth), -1)
        tokens = np.where(tokens == pad_id, self.config.pad_id, tokens)
        if self.config.stacks == "decoder":
            tokens = np.concatenate([ids, tokens[:, 1:]], axis=1)
        return tokens[:, :truth.shape[1]]

    def _prompts(self, answer, width):
        """What answers of a decoder alone continue: ids [B N].

        As much of the inputs as all answers begin with.
        """
        first = answer[::width]
        ids = self.given["input_ids"][:len(first)]
        length = min(ids.shape[1], first.shape[1])
        same = (ids[:, :length] == first[:, :length]).all(axis=0)
        return ids[:, :length if same.all() else int(same.argmin())]

    def _built(self, engine, **changes):
        """The whole model, in an engine."""
        return engine.build("transformer", self.config.replace(**changes), {
            name: np.asarray(array, self.dtype)
            for name, array in self.weights.items()}, self.dtype)

    def _model(self, engine):
        """The steps of a whole model, from ids."""
        source = self.given["input_ids"]
        keep = self._keep(source, "attention_mask")
        target = (self.given["decoder_input_ids"]
                  if self.config.stacks == "both" else source)
        if "token_type_ids" in self.given:
            source = source + (
                self.config.source_vocab * self.given["token_type_ids"])
        model = self._built(engine)
        return engine.forward(model, source, target, keep, earlier(target))

    def _frames(self, engine):
        """The steps of a whole model, from a sound's picture."""
        frames = sound.vectors(self.given["input_features"], self.apart)
        batch, length, width = frames.shape
        config = self.config.replace(source_vocab=batch * length)
        model = engine.build("transformer", config, {
            **self.weights,
            "source_embedding.table": frames.reshape(-1, width)})
        source = np.arange(batch * length).reshape(batch, length)
        target = self.given["decoder_input_ids"]
        return engine.forward(model, source, target,
                              np.ones((batch, 1, 1, length), bool),
                              earlier(target))

    def _stacks(self, engine):
        """The steps of both stacks, from vectors."""
        source, target = self.given["src"], self.given["tgt"]
        return run_stacks(engine, self.config, self.weights, source, target,
                          self._keep(source, "src_keep"), earlier(target))

    def _keep(self, source, name):
        """bool [B 1 1 S], True where a key is not padding; all without one."""
        keep = self.given.get(name, np.ones(source.shape[:2]))
        return (keep != 0)[:, None, None, :]


def run_stacks(engine, config, weights, source, target, source_mask,
               target_mask):
    """The steps of an encoder and of a decoder that reads its output.

    Args:
        source, target: vectors [B S D] and [B T D].
    """
    encoder = engine.build("encoder", config, select(weights, "encoder."))
    decoder = engine.build("decoder", config, select(weights, "decoder."))
    encoding = engine.run(encoder, source, source_mask)
    memory = encoding["output"]
    decoding = engine.run(decoder, target, memory, source_mask, target_mask,
                          **WHOLE["decoder"])
    return {"memory": memory, "decoded": decoding["output"],
            **{f"encoder.{name}": step for name, step in encoding.items()},
            **{f"decoder.{name}": step for name, step in decoding.items()}}


RUNS = {"transformer": StoredOutputs._model, "stacks": StoredOutputs._stacks,
        "frames": StoredOutputs._frames}


def earlier(target):
    """bool [B 1 T T], True where a key is not later than the query."""
    batch, length = target.shape[:2]
    return np.broadcast_to(np.tri(length, dtype=bool),
                           (batch, 1, length, length)).copy()


def _described(folder, arrays, metadata):
    """The Checkpoint of a folder; torch.nn's is made of the one file."""
    if (folder / "model.safetensors").is_file():
        return read(folder)
    try:
        sizes = json.loads(metadata["config"])
        described = {CALLED.get(name, name): value
                     for name, value in sizes.items()}
        layers = described["n_layers"]
    except (KeyError, TypeError, ValueError):
        raise InputError(
            f"the folder {str(folder)!r} holds no model.safetensors, nor a "
            "description in the metadata of its io.safetensors.") from None
    return Checkpoint(folder, "safetensors", select(arrays, "w."), metadata,
                      {**described, "num_encoder_layers": layers,
                       "num_decoder_layers": layers})
