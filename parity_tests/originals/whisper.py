"""Whisper of transformers, whose source is a picture of a sound."""

import dataclasses

import numpy as np

from transformer_contract import sound
from parity_tests.originals import random_models
from parity_tests.originals.hugging_face import HuggingFace


class Whisper(HuggingFace):
    """One model; a source's token is a frame of a sound, see the dialect."""

    DRAWN = {"max_source_positions": 7, "num_mel_bins": 5, "pad_token_id": 0}

    def question(self, seed, rows):
        """The numbers [B S] of the frames of sounds, which are drawn."""
        draw = np.random.default_rng([17, seed])
        config = self.model.config
        self.picture = draw.normal(size=(
            rows, config.num_mel_bins, 2 * config.max_source_positions))
        count = rows * config.max_source_positions
        return 1 + np.arange(count).reshape(rows, -1)

    def asked(self, config, seed):
        """A source's tokens are the frames of sounds."""
        drawn = random_models.question(config, seed)
        source = self.question(seed, len(drawn.target))
        return self.searched(config), dataclasses.replace(
            drawn, source=source)

    def searched(self, config):
        """A source's vocabulary is every frame, and one more for padding."""
        frames = len(self.picture) * self.model.config.max_source_positions
        return config.replace(source_vocab=1 + frames)

    def completed(self, weights, source):
        """The source's table is the frames."""
        frames = sound.vectors(self.picture, self.arrays())
        table = frames.reshape(source.size, -1)
        return {**weights, "source_embedding.table":
                np.concatenate([0 * table[:1], table])}

    def _searched(self, question):
        return {"input_features": self.tensor(self.picture)}

    def _inputs(self, question):
        return {"output_attentions": True, "return_dict": True,
                "decoder_input_ids": self.tensor(question.target),
                **self._searched(question)}
