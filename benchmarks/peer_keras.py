"""keras_hub's layers, made to compute the same function as ours."""

import math

import keras
import keras_hub
import tensorflow as tf
from keras import ops

from transformer_contract.sinusoids import TABLES

#: Parts of their weights' paths, and ours.
NAMES = {
    "self_attention_layer_norm": "self_attention_residual.norm",
    "cross_attention_layer_norm": "cross_attention_residual.norm",
    "feedforward_layer_norm": "feed_forward_residual.norm",
    "feedforward_intermediate_dense": "feed_forward.inner",
    "feedforward_output_dense": "feed_forward.outer",
    "self_attention_layer": "self_attention", "attention_output": "output",
    "gamma": "scale", "beta": "bias",
}


class PeerTransformer(keras.Model):
    """Their encoder and decoder layers between tied embeddings."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embedding = keras_hub.layers.ReversibleEmbedding(
            config.source_vocab, config.d_model)
        self.positions = ops.convert_to_tensor(TABLES[config.positions](
            config.max_length, config.d_model), "float32")
        settings = {
            "intermediate_dim": config.d_ff, "num_heads": config.n_heads,
            "dropout": config.dropout, "activation": config.activation,
            "layer_norm_epsilon": config.norm_eps}
        self.encoder = [keras_hub.layers.TransformerEncoder(**settings)
                        for _ in range(config.n_encoder_layers)]
        self.decoder = [keras_hub.layers.TransformerDecoder(**settings)
                        for _ in range(config.n_decoder_layers)]

    def embed(self, tokens):
        """Tokens [B T] to vectors [B T D]."""
        x = self.embedding(tokens) * math.sqrt(self.config.d_model)
        return x + self.positions[:tokens.shape[1]]

    def call(self, source, target, training, padded=False):
        """Score every next target token: [B T V]; masks only if padded."""
        source_mask, target_mask = (
            ids != self.config.pad_id if padded else None
            for ids in (source, target))
        memory = self.embed(source)
        for layer in self.encoder:
            memory = layer(memory, source_mask, training=training)
        x = self.embed(target)
        for layer in self.decoder:
            x = layer(x, memory, decoder_padding_mask=target_mask,
                      encoder_padding_mask=source_mask, training=training)
        return self.embedding(x, reverse=True)


def load(model, weights):
    """Load our weights, by canonical name, into a PeerTransformer."""
    model(ops.ones((1, 2), "int32"), ops.ones((1, 2), "int32"), training=False)
    model.embedding.embeddings.assign(weights["source_embedding.table"])
    for stack in ("encoder", "decoder"):
        for i, layer in enumerate(getattr(model, stack)):
            for weight in layer.weights:
                path = weight.path.split("/")
                path = path[path.index(layer.name) + 1:]
                name = ".".join(NAMES.get(part, part) for part in path)
                weight.assign(weights[f"{stack}.layers.{i}.{name}"].reshape(
                    weight.shape))
    return model


def train_step(model, training, padded):
    """(source, target) -> loss, with a step of Keras' own Adam."""
    config = model.config
    optimizer = keras.optimizers.Adam(
        training.learning_rate, training.beta1, training.beta2, training.eps)
    optimizer.build(model.trainable_variables)
    smoothing = config.label_smoothing

    def step(source, target):
        read, labels = target[:, :-1], target[:, 1:]
        with tf.GradientTape() as tape:
            log_probs = ops.log_softmax(model(
                source, read, training=True, padded=padded))
            at_label = ops.take_along_axis(
                log_probs, labels[..., None], axis=-1)[..., 0]
            losses = -(1 - smoothing) * at_label - smoothing * ops.mean(
                log_probs, axis=-1)
            kept = ops.cast(labels != config.pad_id, losses.dtype)
            loss = ops.sum(losses * kept) / ops.sum(kept)
        optimizer.apply(tape.gradient(loss, model.trainable_variables),
                        model.trainable_variables)
        return loss

    return step
