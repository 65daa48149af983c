"""TransformerConfig, the one description of a model, and the presets."""

import dataclasses

from parity_io.errors import InputError, one_of
from transformer_contract import config_checks

#: The fields that the paper's own model has; the others are dialects'.
PAPER = (
    "source_vocab", "target_vocab", "d_model", "n_heads", "d_ff",
    "n_encoder_layers", "n_decoder_layers", "max_length", "dropout",
    "label_smoothing", "norm_eps", "tied", "pad_id",
)

#: The allowed words of every field that chooses a variant.
CHOICES = {
    "residual": ("pre", "post"),
    "norm": ("layer", "std", "scalar_std", "rms"),
    "positions": ("interleaved", "halves", "learned", "none",
                  "rotary_halves", "rotary_interleaved", "relative"),
    "position_divisor": ("half", "half_less_one"),
    "position_rounding": ("none", "float32"),
    "embedding_scale": ("root", "none"),
    "activation": ("relu", "gelu", "gelu_tanh", "silu"),
    "attention_bias": ("all", "none", "all_but_key"),
    "attention_scale": ("root", "none"),
    "output": ("logits", "log_probs"),
    "output_scale": ("none", "root"),
    "tied": ("none", "output", "embeddings", "all"),
    "begin": ("token", "zero"),
    "stacks": ("both", "encoder", "decoder"),
    "smoothing": ("uniform", "others", "kl"),
}

#: The same, of fields that go with one word of another field.
DEPENDENT = {
    "norm_rounding": ("none", "float32"),
    "softmax_rounding": ("none", "float32"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """Every number and every choice that changes the maths.

    Frozen, and checked when it is made: a value that cannot work raises
    InputError, which says what to change. Defaults are the base model of
    "Attention Is All You Need" (Vaswani et al. 2017, table 3).

    Attributes: the paper's.
        source_vocab, target_vocab: V, rows of the embedding tables.
        d_model: D, the width of every vector between components.
        n_heads: H, heads of each attention; divides d_model, unless d_head is
            given.
        d_ff: F, the width inside the feed-forward network.
        n_encoder_layers, n_decoder_layers: N of each stack.
        max_length: rows of the position table, the longest sequence.
        dropout: probability that a value is dropped while training.
        label_smoothing: ε, the share moved from the right token to others.
        norm_eps: the norm's epsilon; inside the root for "layer" and "rms",
            added to the standard deviation for the other two.
        tied: which share one table: "none"; "output", the target embedding and
            the projection; "embeddings", of source and target; or "all" three.
            False and True, as earlier files have them, are "none" and "all".
        pad_id: the token id that is padding.

    Attributes: other systems', each by default the paper's.
        stacks: "both"; or one alone: "encoder", which scores what each source
            token may be, or "decoder", which has no source and no
            cross-attention, and continues a prompt.
        residual: "post", norm(x + f(x)), or "pre", x + f(norm(x)).
        norm: "layer", the usual layer norm; "std", divided by the unbiased
            standard deviation; "scalar_std", the same with one scale and one
            bias for all features; "rms", divided by the root mean square, with
            a scale alone.
        norm_rounding: "none"; or "float32", to which the mean square of "rms"
            is rounded, whatever the model computes in.
        final_norm: whether each stack ends in a norm of its own.
        final_norm_eps: that norm's epsilon.
        n_kv_heads: G, heads of keys and values, each of which H / G heads of
            queries share; None for H.
        d_head: K, the width of a head; None for d_model / n_heads.
        attention_bias: which projections of an attention have a bias: "all",
            "none", or "all_but_key".
        attention_scale: scores are divided by "root", √d_k, or by "none".
        softmax_rounding: to what the scores and the weights of a softmax are
            rounded: "none", or "float32", whatever the model computes in.
        positions: "interleaved", sine on even and cosine on odd features;
            "halves", sines first; "learned", a table of weights; or "none".
            In self-attention instead: "rotary_halves" and
            "rotary_interleaved", queries and keys turned by their position;
            "relative", a number for each distance, added to scores.
        position_divisor: pair i has wavelength 2π · 10000^(i/m); m is d/2
            ("half", the paper) or d/2 - 1 ("half_less_one", Tensor2Tensor).
        position_start: the row of the table that the first position has.
        position_rounding: "none", or "float32", to which the table of sines
            and cosines is rounded once, whatever the model computes in.
        position_padding: whether only tokens that are not padding count, and
            padding has the position 0, all zeros.
        source_max_length: rows of the source's own table; None, max_length.
        rotary_base: of the angles by which rotary positions turn.
        relative_buckets: how many numbers a head has for relative positions.
        relative_distance: the distance from which on all share one of them.
        embedding_scale: embeddings times √d_model, "root", or "none".
        embedding_norm: whether the sum of embeddings and positions is
            normalised, before dropout, with norm_eps.
        padding_learns: whether the row of padding's id learns where embeddings
            read it; False is torch's ``padding_idx``.
        token_types: 0, or how many types, as BERT's segments, the tokens of a
            source may have. Token i of type n is the id i + n · source_vocab.
        begin: what a target begins with: "token", the embedding of its first
            id, or "zero", zeros in its place.
        activation: "relu"; "gelu" in its exact form; "gelu_tanh", its
            approximation by tanh; or "silu", x σ(x).
        gated: whether the feed-forward network multiplies its inner vector by
            an activated gate, from a kernel of its own.
        feed_forward_bias: whether the feed-forward network has biases.
        output: "logits", or "log_probs" for their log-softmax.
        output_transform: whether vectors pass a linear map of their own, the
            activation and a norm with norm_eps before the projection, as in
            BERT.
        output_scale: vectors times 1/√d_model before the projection, "root",
            or "none".
        output_bias: whether the projection has a bias; None, unless it is
            tied.
        smoothing: to which tokens label_smoothing moves mass: "uniform", to
            all V; "others", to all but the right one; "kl", to all but that
            and padding, and the loss is the KL divergence.
    """

    source_vocab: int = 37_000
    target_vocab: int = 37_000
    d_model: int = 512
    n_heads: int = 8
    d_ff: int = 2048
    n_encoder_layers: int = 6
    n_decoder_layers: int = 6
    max_length: int = 5000
    dropout: float = 0.1
    label_smoothing: float = 0.1
    norm_eps: float = 1e-6
    tied: str | bool = "all"
    pad_id: int = 0

    stacks: str = "both"
    residual: str = "post"
    norm: str = "layer"
    norm_rounding: str = "none"
    final_norm: bool = False
    final_norm_eps: float = 1e-6
    n_kv_heads: int | None = None
    d_head: int | None = None
    attention_bias: str = "all"
    attention_scale: str = "root"
    softmax_rounding: str = "none"
    positions: str = "interleaved"
    position_divisor: str = "half"
    position_start: int = 0
    position_rounding: str = "none"
    position_padding: bool = False
    source_max_length: int | None = None
    rotary_base: float = 10000.0
    relative_buckets: int = 32
    relative_distance: int = 128
    embedding_scale: str = "root"
    embedding_norm: bool = False
    padding_learns: bool = True
    token_types: int = 0
    begin: str = "token"
    activation: str = "relu"
    gated: bool = False
    feed_forward_bias: bool = True
    output: str = "logits"
    output_transform: bool = False
    output_scale: str = "none"
    output_bias: bool | None = None
    smoothing: str = "uniform"

    def __post_init__(self):
        if isinstance(self.tied, bool):  # as earlier files have it
            object.__setattr__(self, "tied", "all" if self.tied else "none")
        config_checks.check(self, CHOICES | DEPENDENT)

    @property
    def embeddings_tied(self):
        """Whether source and target have one embedding table."""
        return self.tied in ("embeddings", "all")

    @property
    def one_table(self):
        """Whether the source's table serves the target too."""
        return self.embeddings_tied or (
            self.stacks == "encoder" and self.output_tied)

    @property
    def output_tied(self):
        """Whether the projection is the target embedding's table."""
        return self.tied in ("output", "all")

    @property
    def has_output_bias(self):
        """Whether the projection has a bias."""
        return (not self.output_tied if self.output_bias is None
                else self.output_bias)

    @property
    def source_ids(self):
        """How many ids a source may have: those of every type of a token.

        The source of a decoder alone is its prompt, of the target's tokens.
        """
        if self.stacks == "decoder":
            return self.target_vocab
        return self.source_vocab * max(self.token_types, 1)

    @property
    def source_length(self):
        """The longest source: source_max_length, or else max_length."""
        return self.source_max_length or self.max_length

    @property
    def d_k(self):
        """K, the width of one head: d_head, or d_model / n_heads."""
        return self.d_head or self.d_model // self.n_heads

    @property
    def norm_form(self):
        """Which of NORMS: the norm's word, and what it rounds to."""
        return (self.norm if self.norm_rounding == "none"
                else f"{self.norm}_{self.norm_rounding}")

    @property
    def kv_heads(self):
        """G, heads of keys and values: n_kv_heads, or as many as queries'."""
        return self.n_kv_heads or self.n_heads

    def replace(self, **changes):
        """A copy with some fields changed, checked again."""
        unknown = sorted(changes.keys() - self.as_dict().keys())
        if unknown:
            raise InputError(
                f"the configuration has no field {unknown[0]!r}; its fields "
                f"are {', '.join(self.as_dict())}."
            )
        return dataclasses.replace(self, **changes)

    def as_dict(self):
        """The fields as a plain dict, in order."""
        return dataclasses.asdict(self)


#: The paper's model, but three tables and no label smoothing: what most other
#: descriptions of a model leave out.
PLAIN = TransformerConfig(tied="none", label_smoothing=0.0)

_lesson = PLAIN.replace(
    residual="pre", norm="scalar_std", norm_eps=1e-6, final_norm=True,
    final_norm_eps=1e-6, output="log_probs",
)
_post = PLAIN.replace(norm_eps=1e-5)
_paper = TransformerConfig()

#: The systems that the project covers, by name (R18 to R20 in RULINGS.md).
PRESETS = {
    "lesson": _lesson,
    "components": _lesson.replace(output="logits"),
    "notebook": _post,
    "complete": _post.replace(norm="std", norm_eps=1e-6),
    "practical": _post,
    "vaswani2017_base": _paper,
    "vaswani2017_big": _paper.replace(
        d_model=1024, n_heads=16, d_ff=4096, dropout=0.3
    ),
}


def preset(name):
    """The preset called ``name``; an unknown name raises InputError."""
    return PRESETS[one_of(name, PRESETS, "preset")]


def at_test_size(config):
    """``config`` with the same variants and small sizes.

    No two sizes are equal, so that every transposed or swapped axis shows,
    and neither d_model nor d_k is a power of 4, so that no root is
    exact: D 48, H 6, K 8 (10 where d_head is given), F 80, V 37 and 41 (37
    where tied), 2 and 3 layers; 3 heads of keys and values, where there are
    fewer, but one where there is one.
    """
    groups = config.n_kv_heads and {
        1: 1, config.n_heads: 6}.get(config.n_kv_heads, 3)
    return config.replace(
        source_vocab=37, target_vocab=37 if config.one_table else 41,
        d_model=48, n_heads=6, n_kv_heads=groups,
        d_head=config.d_head and 10, d_ff=80,
        n_encoder_layers=2, n_decoder_layers=3, max_length=64,
        source_max_length=config.source_max_length and 72,
    )
