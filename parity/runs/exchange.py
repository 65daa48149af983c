"""Other people's models made ours, and ours made theirs.

A model of theirs becomes a folder: ``weights.safetensors``, which every command
reads, with our configuration in it and theirs beside it; ``apart.safetensors``,
the arrays that are no part of the Transformer; and its tokenizer. From it the
original is written again, equal to the bit.
"""

import dataclasses
import json
import pathlib
import shutil

import numpy as np

from transformer_contract import weights
from parity_io.checkpoints import safetensors_file
from parity_io.checkpoints.folder import (
    CONFIG, GENERATION, read, read_file, read_json)
from transformer_contract.config import TransformerConfig
from transformer_contract.dialects import searches, table
from transformer_contract.dialects.dialect import Dialect
from parity_io.errors import InputError, one_of
from parity_io.files import new_folder, as_input_error, write_json
from transformer_contract.generation import GenerationConfig
from parity_io.memory import check_memory
from transformer_contract.schema import schema
from transformer_contract.tokenizer import Tokenizer

WEIGHTS, APART = "weights.safetensors", "apart.safetensors"
MODEL, NPZ = "model.safetensors", "model.npz"

#: The files that say how a sound is seen, of several releases.
SEEING = ("preprocessor_config.json", "processor_config.json")

#: The files of a tokenizer, of a sound and of generation, which are copied as
#: they are.
BESIDE = ("tokenizer.json", "tokenizer_config.json", "vocab.json", "vocab.txt",
          "merges.txt", "source.spm", "target.spm", "spiece.model",
          "special_tokens_map.json", *SEEING, GENERATION)


@dataclasses.dataclass(frozen=True)
class Foreign:
    """A model of others, read.

    Attributes:
        dialect: whose.
        described: its configuration in the dialect's own words.
        config, arrays: ours; the arrays are views of theirs where can be.
        apart: {their name: array} of what is no part of the Transformer.
        bare: whether its names lack the dialect's prefix.
        folder: where its tokenizer may be, or None.
        assumed: {their key: value} of what no file says, by their library's
            defaults.
    """

    dialect: Dialect
    described: dict
    config: TransformerConfig
    arrays: dict
    apart: dict
    bare: bool
    folder: pathlib.Path | None
    assumed: dict = dataclasses.field(default_factory=dict)


def foreign(path, name=None, words=None):
    """Read a file or a folder of others.

    Args:
        path: of the file or the folder.
        name: the dialect, if it is to be told; else it is recognised.
        words: what the file does not say, in the dialect's own words.

    Raises:
        InputError: it cannot be read, or is of no dialect.
    """
    checkpoint = read(path)
    dialect = (table.recognised(checkpoint) if name is None else
               table.SYSTEMS[one_of(name, table.SYSTEMS, "dialect")])
    described = dialect.told(checkpoint)
    for key in words or ():
        one_of(key, sorted(dialect.vocabulary | described.keys()), "--set")
    described |= words or {}
    for key in dialect.asked:
        if key not in described:
            raise InputError(
                f"{str(path)!r} does not say its {key}; give it with --set "
                f"{key}=8, or what it is.")
    config = dialect.config(described, checkpoint.arrays)
    weights.check_layers(config, len(checkpoint.arrays), str(path))
    if checkpoint.format != "npz":  # it has been asked there
        check_memory(sum(
            array.nbytes for array in checkpoint.arrays.values()), path)
    arrays = dialect.read(checkpoint.arrays, config)
    weights.check(arrays, dialect.wanted(config), str(path))
    return Foreign(dialect, described, config, arrays,
                   dialect.aside(checkpoint.arrays),
                   dialect.is_bare(checkpoint.arrays),
                   checkpoint.path if checkpoint.path.is_dir() else None,
                   {} if checkpoint.config else dialect.assumed(described))


def keep(model, out, tokenizer=None):
    """Write a Foreign model as a folder of ours, whole or not at all.

    Args:
        out: a folder that does not exist yet.
        tokenizer: a Tokenizer made for it, if it has no ``tokenizer.json``.
    """
    check_new(out)
    metadata = {"config": model.config.as_dict(), "framed": True,
                "dialect": model.dialect.name, "bare": model.bare,
                "original": model.described}
    with as_input_error(out), new_folder(out) as folder:
        for name in BESIDE:
            if model.folder and (model.folder / name).is_file():
                shutil.copy(model.folder / name, folder / name)
        if tokenizer is not None:
            tokenizer.save(folder / "tokenizer.json")
        _check_vocabulary(folder / "tokenizer.json", model.config)
        _write(folder / WEIGHTS, model.arrays, metadata)
        if model.apart:
            _write(folder / APART, model.apart, {})


def check_new(out):
    """Raise InputError where a folder is there already."""
    if pathlib.Path(out).exists():
        raise InputError(
            f"{str(out)!r} exists; give the name of a new folder.")


def _write(path, arrays, metadata):
    """Arrays with our metadata and checksum, one after another."""
    metadata |= {weights.CHECKSUM: weights.checksum(arrays, metadata)}
    safetensors_file.write(path, arrays, {weights.METADATA_KEY: json.dumps(
        metadata, sort_keys=True, separators=(",", ":"))})


def _check_vocabulary(path, config):
    """Raise InputError where a tokenizer knows more tokens than the model."""
    if not path.is_file():
        return
    import tokenizers
    try:
        vocabulary = tokenizers.Tokenizer.from_file(str(path)).get_vocab()
    except Exception as error:  # the library raises Exception itself
        raise InputError(
            f"the tokenizer.json beside the model cannot be read "
            f"({str(error)[:80]}); fetch it again.") from None
    if (last := max(vocabulary.values(), default=0)) >= config.target_vocab:
        raise InputError(
            f"the tokenizer has a token {last}, but the model only "
            f"{config.target_vocab}; they do not belong together.")


def kept(folder):
    """Read a folder that ``keep`` wrote, or a file that we trained.

    Returns:
        Our config, our arrays, the arrays apart, and what the file says.
    """
    folder = pathlib.Path(folder)
    path = folder / WEIGHTS if folder.is_dir() else folder
    if not path.is_file():
        raise InputError(
            f"there is no {WEIGHTS} in {str(folder)!r}; give a folder that "
            "parity import made, or weights of parity train.")
    arrays, metadata = _verified(path)
    description = weights.described(metadata)
    name = description.get("dialect")
    try:
        config = TransformerConfig(**description["config"])
        dialect = None if name is None else table.SYSTEMS[name]
        if dialect and not isinstance(description["original"], dict):
            raise TypeError
    except (KeyError, TypeError):
        raise InputError(
            f"{str(path)!r} does not say which model it is; give a folder "
            "that parity import made, or weights of parity train.") from None
    weights.check_layers(config, len(arrays), str(path))
    weights.check(arrays, dialect.wanted(config) if dialect
                  else schema(config), str(path))
    aside = path.with_name(APART)
    apart = _verified(aside)[0] if dialect and aside.is_file() else {}
    return config, arrays, apart, description


def _verified(path):
    """The arrays of a file, with the checksum that stands in it; metadata."""
    _, arrays, metadata = read_file(path)
    weights.verify(arrays, metadata, path)
    return arrays, metadata


def generation(folder):
    """What a folder's ``generation_config.json`` says; {} without one."""
    path = pathlib.Path(folder) / GENERATION
    return read_json(path) if path.is_file() else {}


def searching(folder, model, texts):
    """How a folder's model answers texts by its own files.

    Args:
        model: a translation.Model of the folder.
        texts: a decoder alone counts the longest among its tokens.

    Returns:
        A GenerationConfig, and in words what the files ask and is not done.
    """
    config, tokenizer = model.config, model.tokenizer
    _, _, _, description = kept(folder)
    most, prompt, fields, undone = config.max_length, 1, {}, []
    if config.stacks == "decoder":
        prompt = max(1, *(len(tokenizer.encode(text)) for text in texts))
        most = max(1, most + 1 - prompt)
    if dialect := table.SYSTEMS.get(description.get("dialect", "")):
        fields, undone = searches.fields(
            dialect, description["original"], generation(folder), prompt)
    fields["max_tokens"] = min(most, fields.get("max_tokens", most))
    fields = {"bos_id": tokenizer.bos_id, "eos_id": tokenizer.eos_id, **fields}
    if config.stacks == "decoder" and fields["bos_id"] is None:
        fields["bos_id"] = 0  # a prompt is continued, so it is not read
    for field, key in (("bos_id", "decoder_start_token_id"),
                       ("eos_id", "eos_token_id")):
        if fields[field] is None:
            raise InputError(
                f"the files in {str(folder)!r} do not say which token "
                f"{'begins' if field == 'bos_id' else 'ends'} an answer; add "
                f"{key!r} to {GENERATION}.")
    return GenerationConfig(**fields), undone


def export(folder, name, out):
    """Write a model of ours in a dialect, as a new folder.

    In the dialect that it came from it is the original again: every array to
    the bit, and its configuration. In an npz, which Marian reads, float64 and
    bfloat16 become float32.

    Raises:
        InputError: the dialect has no word for something; it is named.
    """
    check_new(out)
    config, arrays, apart, description = kept(folder)
    dialect = table.SYSTEMS[one_of(name, table.SYSTEMS, "dialect")]
    same = description.get("dialect") == name
    if not same and apart:
        raise InputError(
            f"the model has arrays of {description['dialect']} that are no "
            f"part of the Transformer, such as {min(apart)!r}; {name} has no "
            "name for them.")
    described = description["original"] if same else dialect.describe(config)
    theirs = dialect.write(arrays, config)
    if same and description.get("bare"):
        theirs = {each.removeprefix(dialect.prefix): array
                  for each, array in theirs.items()}
    with as_input_error(out), new_folder(out) as temporary:
        if dialect.inside:
            np.savez(temporary / NPZ, **{
                name: _readable(array) for name, array
                in {**dialect.inside(described), **theirs, **apart}.items()})
        else:
            safetensors_file.write(
                temporary / MODEL, {**theirs, **apart}, {"format": "pt"})
            write_json(temporary / CONFIG, described)
        source = pathlib.Path(folder)
        for each in BESIDE:
            if source.is_dir() and (source / each).is_file():
                shutil.copy(source / each, temporary / each)


def _readable(array):
    """An array as Marian reads it, which aborts at other floats."""
    kept = array.dtype in (np.int8, np.float16, np.float32)
    return np.ascontiguousarray(array if kept else array.astype(np.float32))


def tokenizer_of(words, pattern, special, unknown="<unk>", marks=None):
    """A Tokenizer whose tokens are whole words of a list.

    Args:
        words: the tokens, by id.
        pattern: a regular expression of one token in a text.
        special: bos and eos, between which a source stands.
        unknown: the token of what is in no word.
        marks: the tokens that are no text; by default all that begin with <.
    """
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers, processors
    inner = tokenizers.Tokenizer(models.WordLevel(
        {word: i for i, word in enumerate(words)}, unk_token=unknown))
    inner.pre_tokenizer = pre_tokenizers.Split(
        tokenizers.Regex(pattern), "isolated")
    inner.decoder = decoders.Fuse()
    begin, end = special
    inner.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A {end}", special_tokens=[
            (token, words.index(token)) for token in special])
    inner.add_special_tokens(
        list(marks) if marks else [word for word in words if word[0] == "<"])
    return Tokenizer(inner)
