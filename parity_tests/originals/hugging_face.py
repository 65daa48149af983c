"""Models of Hugging Face's transformers."""

import contextlib
import dataclasses

import numpy as np

from parity_tests.originals import random_models
from parity_tests.originals.torch_model import TorchModel
from parity_tests.originals.unrounded import unrounded

#: Dialect -> the library's classes of a model and of its configuration.
CLASSES = {
    "hf_marian": ("MarianMTModel", "MarianConfig"),
    "bart": ("BartForConditionalGeneration", "BartConfig"),
    "bert": ("BertForMaskedLM", "BertConfig"),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config"),
    "t5": ("T5ForConditionalGeneration", "T5Config"),
    "llama": ("LlamaForCausalLM", "LlamaConfig"),
    "whisper": ("WhisperForConditionalGeneration", "WhisperConfig"),
}

#: Attention's weights, as the library's outputs name a tuple of layers.
ATTENTIONS = ("encoder_attentions", "decoder_attentions", "cross_attentions",
              "attentions")


#: Dialects whose library casts to float32 inside -> the fields that say so.
CASTS = {"t5": {"norm_rounding": "none", "softmax_rounding": "none"},
         "llama": {"norm_rounding": "none", "softmax_rounding": "none",
                   "position_rounding": "none"}}


class HuggingFace(TorchModel):
    """One model; its attention is the plain one, which gives its weights.

    Of those that cast to float32 inside all but that is proved: the casts do
    nothing, in the library and in the dialect.

    Args:
        dialect: whose library it is.
        described: what its ``config.json`` would say.
    """

    #: How searches are asked, see ``searching.every``.
    BEAMS = range(1, 9)
    RULES = ((True, 1.0), (False, 1.0), ("never", 0.6))

    def __init__(self, dialect, described):
        import torch
        import transformers
        transformers.logging.set_verbosity_error()  # on ids of its defaults
        self.torch, self.casts = torch, dialect.name in CASTS
        model, config = (getattr(transformers, name)
                         for name in CLASSES[dialect.name])
        words = {name: value for name, value in described.items()
                 if name != "model_type" and value is not None}
        if "decoder_layers" in words:  # its default is an id of a large model
            words["decoder_start_token_id"] = described["pad_token_id"]
        self.model = model(config(
            **words, attn_implementation="eager")).double().eval()
        if dialect.is_bare(self.model.state_dict()):
            self.bare = dialect.prefix
        if dialect.name == "llama":
            rotary = self.model.model.rotary_emb
            width = 2 * len(rotary.inv_freq)
            rotary.inv_freq = described["rope_theta"] ** -(
                torch.arange(0, width, 2, dtype=torch.float64) / width)

    @staticmethod
    def provable(dialect):
        """The dialect without what is cast to float32."""
        return dataclasses.replace(dialect, fixed={
            **dialect.fixed, **CASTS.get(dialect.name, {})})

    def asked(self, config, seed):
        """What is asked: of every second, a target that begins with padding.

        No decoder of the library hides what stands first.
        """
        behind = seed % 2 and self.model.config.is_encoder_decoder
        draw = (random_models.asked_behind_padding if behind
                else random_models.asked)
        return draw(config, seed)

    # Searches

    def question(self, seed, rows):
        """Ids [B S] of inputs; a decoder's are prompts without padding."""
        config = self.model.config
        return random_models.sources(
            config.vocab_size, config.pad_token_id, seed, rows,
            padded=config.is_encoder_decoder)

    def searched(self, config):
        """Our configuration of a search's model."""
        return config

    def search(self, question, words):
        """What ``generate()`` answers: tokens [B W N] and scores [B W].

        Tokens begin with the last one of the prompt; scores are None of a
        greedy search.

        Args:
            words: what its ``generation_config.json`` would say.
        """
        import transformers
        beam = words["num_beams"]
        asked = transformers.GenerationConfig(**{
            **words, "num_return_sequences": beam, "output_scores": True,
            "return_dict_in_generate": True})
        with (unrounded(self.torch) if self.casts
              else contextlib.nullcontext()), self.torch.no_grad():
            found = transformers.GenerationMixin.generate(
                self.model, generation_config=asked,
                **self._searched(question))
        prompt = (1 if self.model.config.is_encoder_decoder
                  else question.shape[1])
        tokens = found.sequences.numpy()[:, prompt - 1:]
        most = 1 + words["max_new_tokens"] - tokens.shape[1]
        tokens = np.pad(tokens, ((0, 0), (0, most)),
                        constant_values=np.ravel(words["eos_token_id"])[0])
        scores = found.get("sequences_scores")
        return (tokens.reshape(len(question), beam, -1),
                None if scores is None else scores.numpy())

    def _searched(self, question):
        """The inputs of a search."""
        ids = self.tensor(question)
        return {"input_ids": ids, "attention_mask": self.tensor((
            question != self.model.config.pad_token_id).astype(int))}

    # Answers

    def run(self, question):
        """Its outputs, and each layer's attention weights, by name."""
        with self.torch.no_grad():
            found = self._forward(question)
        outputs = {}
        for name, value in found.items():
            if name in ATTENTIONS:
                outputs |= {f"{name}{i}": layer.numpy()
                            for i, layer in enumerate(value)}
            elif isinstance(value, self.torch.Tensor):
                outputs[name] = value.numpy()
        return outputs

    def logits(self, question):
        """A score for every token."""
        return self._forward(question).logits

    def _forward(self, question):
        with (unrounded(self.torch) if self.casts
              else contextlib.nullcontext()):
            return self.model(**self._inputs(question))

    def _inputs(self, question):
        """The arguments of the library's call."""
        inputs = {"output_attentions": True, "return_dict": True}
        if question.source is None:
            return {**inputs, "input_ids": self.tensor(question.target)}
        inputs["input_ids"] = self.tensor(question.source)
        inputs["attention_mask"] = self.tensor(
            (question.source != self.model.config.pad_token_id).astype(int))
        if question.types is not None:
            inputs["token_type_ids"] = self.tensor(question.types)
        if question.target is not None:
            inputs["decoder_input_ids"] = self.tensor(question.target)
        return inputs
