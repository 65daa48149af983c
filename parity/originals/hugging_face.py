"""Models of Hugging Face's transformers, in float64 on a CPU."""

import numpy as np

#: Dialect -> the library's classes of a model and of its configuration.
CLASSES = {
    "hf_marian": ("MarianMTModel", "MarianConfig"),
    "bart": ("BartForConditionalGeneration", "BartConfig"),
    "bert": ("BertModel", "BertConfig"),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config"),
    "t5": ("T5ForConditionalGeneration", "T5Config"),
    "llama": ("LlamaForCausalLM", "LlamaConfig"),
}

#: Attention's weights, as the library's outputs name a tuple of layers.
ATTENTIONS = ("encoder_attentions", "decoder_attentions", "cross_attentions",
              "attentions")


class HuggingFace:
    """One model; its attention is the plain one, which gives its weights.

    Args:
        dialect: whose library it is.
        described: what its ``config.json`` would say.
    """

    def __init__(self, dialect, described):
        import torch
        import transformers
        self.torch = torch
        model, config = (getattr(transformers, name)
                         for name in CLASSES[dialect.name])
        self.dialect = dialect
        words = {name: value for name, value in described.items()
                 if name != "model_type"}
        self.model = model(config(
            **words, attn_implementation="eager")).double().eval()

    def arrays(self):
        """Every array of it by its own name, tied ones under each name."""
        return {name: tensor.detach().numpy().copy()
                for name, tensor in self.model.state_dict().items()}

    def learned(self):
        """The names of the arrays that have gradients."""
        return {name for name, _ in self.model.named_parameters()}

    def load(self, arrays):
        """Take arrays by name; those that are tied once, under one name."""
        state = self.model.state_dict()
        for name, array in arrays.items():
            if name not in state:
                raise KeyError(f"{self.dialect.name} has no array {name}")
            with self.torch.no_grad():
                state[name].copy_(self.torch.from_numpy(
                    np.ascontiguousarray(array)))

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

    def _forward(self, question):
        def tensor(array):
            return self.torch.from_numpy(np.ascontiguousarray(array))
        inputs = {"output_attentions": True, "return_dict": True}
        if question.source is None:
            return self.model(tensor(question.target), **inputs)
        inputs["input_ids"] = tensor(question.source)
        inputs["attention_mask"] = tensor(
            (question.source != self.model.config.pad_token_id).astype(int))
        if question.types is not None:
            inputs["token_type_ids"] = tensor(question.types)
        if question.target is not None:
            inputs["decoder_input_ids"] = tensor(question.target)
        return self.model(**inputs)

    def loss(self, question):
        """The mean cross-entropy of the labels, with its graph."""
        logits = self._forward(question).logits
        return self.torch.nn.functional.cross_entropy(
            logits.flatten(0, 1),
            self.torch.from_numpy(question.labels.copy()).flatten())

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
