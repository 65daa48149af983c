"""Which class each part of a model is: the paper's own, or a dialect's.

A part is named by its file and class. The file is imported when a config asks
for it, so that a model of the paper's imports no dialect.
"""

from transformer_contract import chosen
from transformer_contract.components import named

#: By words of the config: the paper's own first, then those of dialects.
ATTENTIONS = {
    "usual": "attention.MultiHeadAttention",
    "dialect": "dialects.attention.DialectAttention",
    "rotary": "dialects.attention.RotaryAttention",
    "relative": "dialects.attention.RelativeAttention",
}
NORMS = {
    "layer": "layer_norm.LayerNorm",
    "std": "dialects.norms.StdLayerNorm",
    "scalar_std": "dialects.norms.ScalarStdLayerNorm",
    "rms": "dialects.norms.RMSNorm",
    "rms_float32": "dialects.norms.Float32RMSNorm",
}
FEED_FORWARDS = {
    "usual": "feed_forward.FeedForward",
    "dialect": "dialects.feed_forward.DialectFeedForward",
    "gated": "dialects.feed_forward.GatedFeedForward",
}
RESIDUALS = {
    "post": "residual.Residual", "pre": "dialects.residual.PreNorm"}
ENCODER_LAYERS = {
    "post": "encoder.EncoderLayer",
    "pre": "dialects.layers.PreNormEncoderLayer",
}
DECODER_LAYERS = {
    "post": "decoder.DecoderLayer",
    "pre": "dialects.layers.PreNormDecoderLayer",
}
CAUSAL_LAYERS = {
    "post": "dialects.layers.CausalLayer",
    "pre": "dialects.layers.PreNormCausalLayer",
}
ENCODERS = {
    "usual": "encoder.Encoder", "dialect": "dialects.stacks.DialectEncoder"}
DECODERS = {
    "usual": "decoder.Decoder", "dialect": "dialects.stacks.DialectDecoder"}
EMBEDDINGS = {
    "usual": "embedding.TokenEmbedding",
    "dialect": "dialects.embedding.DialectEmbedding",
    "typed": "dialects.embedding.TypedEmbedding",
}
TIED_EMBEDDINGS = {
    "usual": "embedding.TiedEmbedding",
    "dialect": "dialects.embedding.TiedDialectEmbedding",
}
POSITIONS = {
    "usual": "positional.PositionalEncoding",
    "sinusoids": "dialects.positional.SinusoidalPositions",
    "unpadded sinusoids": "dialects.positional.UnpaddedSinusoids",
    "learned": "dialects.positional.LearnedPositions",
    "unpadded learned": "dialects.positional.UnpaddedPositions",
    "none": "dialects.positional.NoPositions",
}
MODELS = {
    "usual": "transformer.Transformer",
    "dialect": "dialects.transformer.DialectTransformer",
    "encoder": "dialects.one_stack.EncoderModel",
    "decoder": "dialects.one_stack.DecoderModel",
}

#: By whether there is a bias.
TIED_PROJECTIONS = {
    False: "projection.TiedProjection",
    True: "dialects.projection.BiasedTiedProjection",
}
PROJECTIONS = {
    True: "dialects.projection.Projection",
    False: "dialects.projection.ProjectionWithoutBias",
}

#: By whether a target's first token is read, whatever its id.
DECODER_MASKS = {
    True: "masks.decoder_mask", False: "dialects.masks.prompt_mask"}

#: By words of a TrainingConfig.
OPTIMIZERS = {
    "adam": "optimizer.Adam", "adamw": "dialects.optimizer.AdamW"}
SCHEDULES = {
    "inverse_sqrt": "optimizer.inverse_sqrt",
    "constant": "dialects.optimizer.constant",
}

#: By a GenerationConfig's method, and whether the search is the paper's.
SEARCHES = {
    ("greedy", "usual"): "search.Greedy",
    ("beam", "usual"): "search.Beam",
    ("sample", "usual"): "sample.Sample",
    ("greedy", "dialect"): "dialects.search.DialectGreedy",
    ("beam", "dialect"): "dialects.search.DialectBeam",
    ("sample", "dialect"): "dialects.search.DialectSample",
}


def part(table, word):
    """The class, or function, that a table has for a word."""
    return named(__package__, table[word])


def attention(config, kind):
    """An attention; kind is "bidirectional", "causal" or "cross"."""
    word = chosen.attention(config, kind)
    if word == "usual":  # a mask is all that tells the paper's kinds apart
        return part(ATTENTIONS, word)(config)
    return part(ATTENTIONS, word)(config, kind)


def norm(config, eps):
    """A norm of vectors [B T D]."""
    return part(NORMS, config.norm_form)(config.d_model, eps)


def feed_forward(config):
    """A feed-forward network."""
    return part(FEED_FORWARDS, chosen.feed_forward(config))(config)


def residual(config):
    """A residual connection."""
    return part(RESIDUALS, config.residual)(config)


def encoder_layer(config):
    """A layer of an encoder."""
    return part(ENCODER_LAYERS, config.residual)(config)


def decoder_layer(config):
    """A layer of a decoder that reads a memory."""
    return part(DECODER_LAYERS, config.residual)(config)


def causal_layer(config):
    """A layer of a decoder that reads none."""
    return part(CAUSAL_LAYERS, config.residual)(config)


def encoder(config):
    """An encoder."""
    return part(ENCODERS, chosen.stack(config))(config)


def decoder(config):
    """A decoder that reads a memory."""
    return part(DECODERS, chosen.stack(config))(config)


def embedding(config, vocab):
    """An embedding of ``vocab`` tokens that have no types."""
    return part(EMBEDDINGS, chosen.embedding(config))(config, vocab)


def source_embedding(config):
    """The source's embedding; its tokens may have types."""
    return part(EMBEDDINGS, chosen.source_embedding(config))(
        config, config.source_vocab)


def target_embedding(config, source):
    """The target's embedding, which may read the source's table."""
    if config.embeddings_tied:
        return part(TIED_EMBEDDINGS, chosen.embedding(config))(source)
    return embedding(config, config.target_vocab)


def source_positions(config):
    """What is added to the source's embeddings."""
    return part(POSITIONS, chosen.positions(config))(
        config, config.source_length)


def target_positions(config):
    """What is added to the target's embeddings."""
    return part(POSITIONS, chosen.positions(config))(
        config, config.max_length)


def projection(config, embedding):
    """The projection, which may read an embedding's table."""
    if config.output_tied:
        return part(TIED_PROJECTIONS, config.has_output_bias)(embedding)
    return untied_projection(config)


def untied_projection(config):
    """A projection by a matrix of its own."""
    return part(PROJECTIONS, config.has_output_bias)(
        config.d_model, config.target_vocab)


def model(config):
    """A whole model."""
    return part(MODELS, chosen.model(config))(config)


def decoder_mask(config):
    """The function that says what a model's target reads of itself."""
    return part(DECODER_MASKS, config.stacks == "both")


def optimizer(training, d_model):
    """The optimizer of a training run."""
    return part(OPTIMIZERS, training.optimizer)(training, d_model)


def schedule(training):
    """The function that gives a training run its learning rates."""
    return part(SCHEDULES, training.schedule)


def search(config, settings):
    """The class that searches, of a model's config and a GenerationConfig."""
    return part(SEARCHES, (settings.method, chosen.search(config, settings)))
