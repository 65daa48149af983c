"""fairseq's Transformer, as a clone of facebookresearch/fairseq has it."""

import argparse
import dataclasses
import functools
import importlib
import os
from unittest import mock

import numpy as np

from parity_tests.originals import legacy_imports, random_models
from parity_tests.originals.torch_model import TorchModel
from parity_tests.originals.unrounded import unrounded

#: What fairseq imports to read its configurations and data, of which a model
#: uses nothing; old versions of it are no longer installed by pip.
STAND_INS = ("omegaconf", "hydra", "hydra.core", "hydra.core.config_store",
             "hydra.core.global_hydra", "hydra.experimental", "bitarray")

#: The files that have a model, its configuration, search and words.
MODULES = ("models.transformer", "sequence_generator", "data.dictionary",
           "modules.sinusoidal_positional_embedding")

#: fairseq's ids that are no words: bos, padding, eos, unknown.
SPECIAL, PADDING = 4, 1


@functools.cache
@legacy_imports.imported("fairseq")
def modules():
    """The modules of MODULES, and nothing else of fairseq's many models.

    Its packages import every file that their folder lists, which is none here.
    Python 3.11 and later refuse its configurations as defaults, since they have
    no hash; here they have one.
    """
    made = dataclasses.dataclass

    def hashed(kind=None, **words):
        if kind is None:
            return functools.partial(hashed, **words)
        own = kind.__module__.partition(".")[0] == "fairseq"
        return made(kind, **words, **({"unsafe_hash": True} if own else {}))

    with (legacy_imports.without(*STAND_INS),
          mock.patch.object(dataclasses, "dataclass", hashed),
          mock.patch.object(os, "listdir", lambda folder: [])):
        found = [importlib.import_module(f"fairseq.{name}")
                 for name in MODULES]
        utils = importlib.import_module("fairseq.utils")
    vars(utils).update(safe_getattr=getattr)  # of what is not omegaconf's
    return found


def configuration(described):
    """fairseq's configuration by its own arguments, a part for each stack."""
    parts: dict = {"encoder": {}, "decoder": {}, "": {}}
    for key, value in described.items():
        stack, _, field = key.partition("_")
        parts[stack if stack in parts else ""][
            field if stack in parts else key] = value
    del parts[""]["vocab_size"]
    kinds = importlib.import_module(f"fairseq.{MODULES[0]}.transformer_config")
    return kinds.TransformerConfig(
        encoder=kinds.EncDecBaseConfig(**parts["encoder"]),
        decoder=kinds.DecoderConfig(**parts["decoder"]), **parts[""])


class Fairseq(TorchModel):
    """One model, without its casts to float32 but for the table of positions.

    That is fairseq's formula in float64, then rounded, as ours is.

    Args:
        dialect: not used; the same as the others'.
        described: fairseq's own arguments.
    """

    #: How searches are asked, see ``searching.every``.
    BEAMS, RULES = range(2, 9), ((None, 1.0), (None, 0.6))

    #: That its casts to float32 are taken out.
    casts = True
    searched = staticmethod(lambda config: config)

    def __init__(self, dialect, described):
        import torch
        self.torch = torch
        models, self.searching, words, positions = modules()
        self.words = words.Dictionary()
        for number in range(described["vocab_size"] - SPECIAL):
            self.words.add_symbol(f"word{number}")
        self.model = models.TransformerModelBase.build_model(
            configuration(described), argparse.Namespace(
                source_dictionary=self.words, target_dictionary=self.words))
        self.model.double().eval()
        for part in self.model.modules():
            if isinstance(part, positions.SinusoidalPositionalEmbedding):
                with mock.patch.object(torch, "float", torch.float64):
                    table = part.get_embedding(*part.weights.shape, PADDING)
                part.weights = table.float().double()

    # Answers

    def _forward(self, question):
        """Its vectors of the source, and a score for every token."""
        source = self.tensor(question.source)
        with unrounded(self.torch):
            encoded = self.model.encoder(source)
            return (encoded["encoder_out"][0].transpose(0, 1),
                    self.model.decoder(self.tensor(question.target),
                                       encoder_out=encoded)[0])

    def run(self, question):
        """Its outputs by name."""
        with self.torch.no_grad():
            encoded, logits = map(self.torch.Tensor.numpy,
                                  self._forward(question))
        return {"encoder_out": question.seen(encoded), "logits": logits}

    def logits(self, question):
        """A score for every token."""
        return self._forward(question)[1]

    # Searches

    def question(self, seed, rows):
        """Ids [B S] of inputs."""
        return random_models.sources(len(self.words), PADDING, seed, rows)

    def search(self, question, words):
        """What SequenceGenerator answers: tokens [B W N] and scores [B W].

        Tokens begin with the first one. At the greatest length it forces an
        end whose log p counts, which is the caller's here: a row with such a
        hypothesis has scores that are no numbers.
        """
        beam, most = words["num_beams"], words["max_new_tokens"]
        ids = self.tensor(question)
        generator = self.searching.SequenceGenerator(
            [self.model], self.words, beam_size=beam, max_len_b=most - 1,
            len_penalty=words["length_penalty"], eos=words["eos_token_id"])
        with unrounded(self.torch):
            found = generator.generate(
                [self.model], {"net_input": {"src_tokens": ids}},
                bos_token=words["decoder_start_token_id"])
        tokens = np.full((len(question), beam, 1 + most),
                         words["eos_token_id"])
        tokens[:, :, 0] = words["decoder_start_token_id"]
        scores = np.full(tokens.shape[:2], np.nan)
        for row, hypotheses in enumerate(found):
            for i, one in enumerate(hypotheses):
                length = len(one["tokens"])
                tokens[row, i, 1:1 + length] = one["tokens"]
                if length < most:
                    scores[row, i] = one["score"]
        return tokens, scores
