"""Whisper in a file of CTranslate2, which faster-whisper reads."""

from transformer_contract.dialects.dialect import Dialect
from transformer_contract.dialects.rows import (
    SAME, TRANSPOSED, Entry, fused, fused_biases, shape_of)
from transformer_contract.dialects.whisper import WHISPER
from parity_io.errors import InputError

#: What a file says of its decoder -> the one value that is computed here;
#: 3 is CTranslate2's number of GELU.
_ONLY = {
    "decoder/pre_norm": 1, "decoder/activation": 3,
    "decoder/scale_embeddings": 0, "decoder/alibi": 0,
    "decoder/start_from_zero_embedding": 0,
}


def _linear(ours, theirs):
    """A Linear, or several in one: ``ours`` is a name or a tuple of names."""
    if isinstance(ours, str):
        return (Entry(f"{ours}.kernel", f"{theirs}/weight", TRANSPOSED),
                Entry(f"{ours}.bias", f"{theirs}/bias", SAME))
    return (Entry(tuple(f"{name}.kernel" for name in ours),
                  f"{theirs}/weight", fused(len(ours), turned=True)),
            Entry(tuple(f"{name}.bias" for name in ours),
                  f"{theirs}/bias", fused_biases(len(ours))))


def _norm(ours, theirs):
    return (Entry(f"{ours}.scale", f"{theirs}/layer_norm/gamma", SAME),
            Entry(f"{ours}.bias", f"{theirs}/layer_norm/beta", SAME))


def _layer(stack, cross):
    """A layer's rows: the Linears of a sub-layer are counted from 0."""
    ours, theirs = f"{stack}.layers.{{i}}", f"{stack}/layer_{{i}}"

    def named(attention, *names):
        return tuple(f"{ours}.{attention}.{name}" for name in names)

    rows = (
        *_linear(named("self_attention", "query", "key", "value"),
                 f"{theirs}/self_attention/linear_0"),
        *_linear(f"{ours}.self_attention.output",
                 f"{theirs}/self_attention/linear_1"),
        *_norm(f"{ours}.self_attention_residual.norm",
               f"{theirs}/self_attention"),
        *_linear(f"{ours}.feed_forward.inner", f"{theirs}/ffn/linear_0"),
        *_linear(f"{ours}.feed_forward.outer", f"{theirs}/ffn/linear_1"),
        *_norm(f"{ours}.feed_forward_residual.norm", f"{theirs}/ffn"))
    if cross:
        rows += (
            *_linear(f"{ours}.cross_attention.query",
                     f"{theirs}/attention/linear_0"),
            *_linear(named("cross_attention", "key", "value"),
                     f"{theirs}/attention/linear_1"),
            *_linear(f"{ours}.cross_attention.output",
                     f"{theirs}/attention/linear_2"),
            *_norm(f"{ours}.cross_attention_residual.norm",
                   f"{theirs}/attention"))
    return rows


def _told(checkpoint):
    """What a file says: the heads, which it counts in an array, too."""
    heads = checkpoint.arrays.get("decoder/num_heads")
    described = checkpoint.config or {}
    return described if heads is None else described | dict.fromkeys(
        ("encoder_attention_heads", "decoder_attention_heads"),
        heads.tolist())


def _sizes(fields, described, arrays):
    """The sizes, which the file tells by shapes and by its heads."""
    if "decoder/num_heads" not in arrays:
        return fields
    frames, width = shape_of(
        arrays, "encoder/position_encodings/encodings", 2)
    shape_of(arrays, "decoder/num_heads", 0)
    only = {**_ONLY, "encoder/num_heads": arrays["decoder/num_heads"]}
    for name, value in only.items():
        if name in arrays and (shape_of(arrays, name, 0),
                               arrays[name]) != ((), value):
            raise InputError(
                f"{name} is {arrays[name]} in the file, which whisper_ct2 "
                f"has no table for; it must be {value}.")
    count = {stack: len({name.split("/")[1] for name in arrays
                         if name.startswith(f"{stack}/layer_")
                         and not name.startswith(f"{stack}/layer_norm")})
             for stack in ("encoder", "decoder")}
    return fields | {
        "d_model": width, "n_heads": int(arrays["decoder/num_heads"]),
        "d_ff": shape_of(arrays, "encoder/layer_0/ffn/linear_0/bias", 1)[0],
        "n_encoder_layers": count["encoder"],
        "n_decoder_layers": count["decoder"], "source_max_length": frames,
        "source_vocab": frames,
        "target_vocab": shape_of(arrays, "decoder/embeddings/weight", 2)[0],
        "max_length": shape_of(
            arrays, "decoder/position_encodings/encodings", 2)[0]}


WHISPER_CT2 = Dialect(
    name="whisper_ct2",
    source="OpenNMT/CTranslate2, python/ctranslate2/specs/whisper_spec.py",
    unlike=(*WHISPER.unlike[:3],
            "Keys have a bias like queries and values; it is 0.",
            *WHISPER.unlike[4:]),
    component="frames",
    fixed={**WHISPER.fixed, "attention_bias": "all", "activation": "gelu"},
    keys={name: means for name, means in WHISPER.keys.items()
          if name != "activation_function"},
    defaults=WHISPER.defaults,
    adjust=_sizes,
    told=_told,
    sign="encoder/conv1/weight",
    aliases={"decoder/projection/weight": "decoder/embeddings/weight"},
    ignored=(*_ONLY, r"(en|de)coder/num_heads",
             r"decoder/(alignment_(heads|layer)|scale_alibi|"
             r"alibi_use_positive_positions)"),
    apart=(r"encoder/conv[12]/.*",),
    rows=(
        Entry("target_embedding.table", "decoder/embeddings/weight", SAME),
        Entry("source_positions.table",
              "encoder/position_encodings/encodings", SAME),
        Entry("target_positions.table",
              "decoder/position_encodings/encodings", SAME),
        *_layer("encoder", cross=False), *_layer("decoder", cross=True),
        *_norm("encoder.norm", "encoder"), *_norm("decoder.norm", "decoder"),
    ),
    outputs=WHISPER.outputs,
)
