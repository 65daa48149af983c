"""A Dialect: one system's configuration and names, read and written."""

import dataclasses
import re
import typing

import numpy as np

from transformer_contract.config import PLAIN
from transformer_contract.dialects.rows import names_of, numbered
from parity_io.errors import InputError, one_of
from transformer_contract.schema import schema

#: The components that have a whole model's names of weights.
WHOLE = ("transformer", "stacks", "frames")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dialect:
    """How one system stores and computes a model, or a component of one.

    Attributes:
        name: what commands call it.
        source: where it can be read.
        unlike: what it does unlike the paper, a sentence each.
        fixed: the fields of our configuration that it fixes.
        keys: their key -> the field, or fields, that have its value; or
            {their value: the fields that it means}. Of a tuple of keys the
            value is the tuple of theirs.
        defaults: their configuration where a file leaves a key out.
        synonyms: {another name that their library reads: the key it is}.
        required: the keys that a file must have.
        only: {their key: the one value that can be computed here}.
        rows: the weights, see ``rows.py``; or a function of our
            configuration that makes them.
        model_types: what a ``config.json`` calls it.
        sign: a pattern of an array's name that only it has.
        prefix: what stands before every name, unless a file leaves it out.
        renamed: (pattern, replacement) of names in older files.
        aliases: {name of a tied array: the name of the one it is}.
        ignored: patterns of arrays that hold nothing to learn.
        apart: patterns of arrays that are no part of the Transformer.
        adjust: (fields, their configuration, arrays) -> fields, where a
            table does not say all.
        asked: the keys that a file without a configuration does not tell.
        told: (Checkpoint) -> their configuration, where a file tells it in a
            way of its own.
        inside: (their configuration) -> the arrays by which an npz of theirs
            tells it; None where it stands beside safetensors.
        casts: whether its library casts to float32 inside, whatever the model
            is in.
        component: what the arrays belong to: "transformer"; "stacks", an
            encoder and a decoder without embeddings and projection;
            "frames", all but the source's table; or a single component.
        outputs: their output -> our step; ``{i}`` counts layers from
            ``first_layer``.
        first_layer: the number of their first layer in those names.
        inputs: the names of the component's inputs, in order.
        search: the fields of a GenerationConfig that it fixes.
    """

    name: str
    source: str
    unlike: tuple = ()
    fixed: dict = dataclasses.field(default_factory=dict)
    keys: dict = dataclasses.field(default_factory=dict)
    defaults: dict = dataclasses.field(default_factory=dict)
    synonyms: dict = dataclasses.field(default_factory=dict)
    required: tuple = ()
    only: dict = dataclasses.field(default_factory=dict)
    rows: tuple | typing.Callable = ()
    model_types: tuple = ()
    sign: str = ""
    prefix: str = ""
    renamed: tuple = ()
    aliases: dict = dataclasses.field(default_factory=dict)
    ignored: tuple = ()
    apart: tuple = ()
    adjust: typing.Callable = lambda fields, described, arrays: fields
    asked: tuple = ()
    told: typing.Callable = lambda checkpoint: checkpoint.config or {}
    inside: typing.Callable | None = None
    casts: bool = False
    component: str = "transformer"
    outputs: dict = dataclasses.field(default_factory=dict)
    first_layer: int = 0
    inputs: tuple = ("src", "tgt", "src_mask", "tgt_mask")
    search: dict = dataclasses.field(default_factory=dict)

    # Configurations

    @property
    def vocabulary(self):
        """The keys of a description that it reads."""
        return {name for key in self.keys for name in names_of(key)} | {
            *self.asked, *self.required, *self.only, *self.defaults,
            *self.synonyms}

    def config(self, described, arrays=None):
        """Our configuration of a model that they describe by a dict.

        Raises:
            InputError: a key is missing, or has a value that cannot be
                computed here; it is named.
        """
        described = self._by_key(described)
        if described.get("quantization_config"):
            raise InputError(
                "quantization_config asks for a quantised model, which cannot "
                "be computed here; give the one that it was made from.")
        for key in self.required:
            if key not in described:
                raise InputError(
                    f"the file's description lacks {key!r}; add it.")
        for key, value in self.only.items():
            if described.get(key, value) != value:
                raise InputError(
                    f"{key} is {described[key]!r}, which {self.name} has "
                    f"no table for; it must be {value!r}.")
        theirs = {**self.defaults, **described}
        fields = dict(self.fixed)
        given: dict[str, tuple[object, object]] = {}
        for key, means in self.keys.items():
            value = (tuple(theirs.get(each) for each in key)
                     if isinstance(key, tuple) else theirs.get(key))
            if value is None:
                usual = self.defaults.get(key)
                if usual is not None:
                    raise InputError(
                        f"{key} is null; give its value, or leave it out, "
                        f"which is {usual!r}.")
                continue
            for field, word in meaning(key, value, means).items():
                if given.setdefault(field, (key, word))[1] != word:
                    raise InputError(
                        f"{key} is {value!r}, but {given[field][0]} says "
                        f"otherwise; {self.name} has one {field}.")
                fields[field] = word
        fields = self.adjust(fields, theirs, arrays or {})
        return PLAIN.replace(**fields)

    def assumed(self, described):
        """{key: value} of the defaults that no shape of an array tells."""
        told = self._by_key(described)
        return {key: value for keys, means in self.keys.items()
                if isinstance(means, dict)
                or not (SIZES | UNTOLD) & {*names_of(means)}
                for key in names_of(keys) if key not in told
                and (value := self.defaults.get(key)) is not None}

    def _by_key(self, described):
        """A description by the keys of the table alone."""
        made = {key: value for key, value in described.items()
                if key not in self.synonyms}
        for other, key in self.synonyms.items():
            if described.get(other) is None:
                continue
            if made.get(key, described[other]) != described[other]:
                raise InputError(
                    f"{other} is {described[other]!r}, but {key} is "
                    f"{made[key]!r}; for {self.name} they are one.")
            made[key] = described[other]
        return made

    def describe(self, config):
        """Their description of a model of ours, the inverse of ``config``.

        Raises:
            InputError: they have no word for a field; it is named.
        """
        described = dict(self.defaults)
        for key, means in self.keys.items():
            if isinstance(means, dict):
                words = [word for word, fields in means.items() if all(
                    getattr(config, field) == value
                    for field, value in fields.items())]
                if isinstance(key, tuple):
                    described |= {each: word for each, word in zip(
                        key, words[0] if words else ()) if word is not None}
                elif words:
                    described[key] = words[0]
            elif (value := getattr(config, names_of(means)[0])) is not None:
                described[key] = value
        again = self.config(described)
        for field, value in config.as_dict().items():
            if getattr(again, field) != value and field not in UNTOLD:
                raise InputError(
                    f"{self.name} has no {field} {value!r}, only "
                    f"{getattr(again, field)!r}; choose another dialect.")
        return {**described, **self.only}

    # Weights

    def wanted(self, config):
        """The weights that a file of it has: {our name: shape}."""
        shapes = schema(config)
        if self.component == "stacks":
            return {name: shape for name, shape in shapes.items()
                    if name.startswith(("encoder.", "decoder."))}
        if self.component == "frames":
            del shapes["source_embedding.table"]
        return shapes

    def rows_of(self, config):
        """Every row of a model of ``config``, once for each layer.

        Rows of weights that such a model lacks are left out.
        """
        known = schema(config) if self.component in WHOLE else None
        for row in (self.rows(config) if callable(self.rows) else self.rows):
            count = 1
            if "{i}" in names_of(row.ours)[0]:
                count = (config.n_decoder_layers
                         if names_of(row.ours)[0].startswith("decoder")
                         else config.n_encoder_layers)
            for i in range(count):
                one = numbered(row, i)
                if known is None or names_of(one.ours)[0] in known:
                    yield one

    def read(self, arrays, config):
        """Their arrays under our names, in our orientation; views if can be.

        Raises:
            InputError: an array is missing, surplus, of another shape, or
                differs from the one that it is tied to.
        """
        rows = list(self.rows_of(config))
        left = self._each_once(arrays, {
            name for row in rows for name in names_of(row.theirs)})
        weights_by_name: dict[str, np.ndarray] = {}
        for ours, theirs, how in rows:
            for name in names_of(theirs):
                if name not in left:
                    raise InputError(
                        f"the file lacks the array {name!r} that the layout "
                        f"{self.name} asks for; check the layout and the "
                        "number of layers.")
            taken = [left.pop(name) for name in names_of(theirs)]
            try:
                made = how.read(config, *taken)
            except (ValueError, IndexError, TypeError):  # NumPy's, of axes
                raise InputError(
                    f"the array {names_of(theirs)[0]!r} has shape "
                    f"{list(taken[0].shape)}, which does not fit the layout "
                    f"{self.name}; check the sizes.") from None
            weights_by_name |= zip(
                names_of(ours), (made,) if isinstance(ours, str) else made)
        if left:
            raise InputError(
                f"the file holds an array {min(left)!r} that the layout "
                f"{self.name} does not know; check the layout and the number "
                "of layers.")
        return weights_by_name

    def _each_once(self, arrays, wanted):
        """The Transformer's arrays under today's names, a tied one once."""
        found = {self._today(name, arrays): array
                 for name, array in arrays.items()}
        found = {name: array for name, array in found.items()
                 if name in wanted or not self.holds_nothing(name)}
        found = {name: array for name, array in found.items()
                 if not self._any(self.apart, name)}
        for alias, name in self.aliases.items():
            if alias not in found or alias in wanted:
                continue
            array = found.pop(alias)
            if not np.array_equal(found.setdefault(name, array), array):
                raise InputError(
                    f"the arrays {alias!r} and {name!r} differ, but "
                    f"{self.name} has a table for models alone in which they "
                    "are tied; check tie_word_embeddings.")
        return found

    def aside(self, arrays):
        """The arrays that are no part of the Transformer, by today's names."""
        found = {self._today(name, arrays): array
                 for name, array in arrays.items()}
        return {name: array for name, array in found.items()
                if self._any(self.apart, name)}

    def _today(self, name, arrays):
        """A name as files of today have it."""
        for pattern, replacement in self.renamed:
            name = re.sub(pattern, replacement, name)
        if not self._any(self.apart, name) and self.is_bare(arrays):
            name = self.prefix + name
        return name

    def holds_nothing(self, name):
        """Whether an array of theirs is a constant that we compute."""
        return self._any(self.ignored, name)

    def is_bare(self, arrays):
        """Whether these names lack the prefix."""
        return not any(name.startswith(self.prefix) for name in arrays)

    @staticmethod
    def _any(patterns, name):
        return any(re.fullmatch(pattern, name) for pattern in patterns)

    def write(self, weights_by_name, config):
        """Our weights under their names, in their orientation.

        Raises:
            InputError: they have no name for one of ours.
        """
        left = dict(weights_by_name)
        arrays: dict[str, np.ndarray] = {}
        for ours, theirs, how in self.rows_of(config):
            made = how.write(config, *(left.pop(name)
                                       for name in names_of(ours)))
            arrays |= zip(names_of(theirs),
                          (made,) if isinstance(theirs, str) else made)
        if left:
            raise InputError(
                f"{self.name} has no name for the array {min(left)!r}; choose "
                "another dialect.")
        return arrays

    # Answers

    def step_of(self, output, config):
        """Our step of an output of theirs, or None if the table has none."""
        for pattern, step in self.outputs.items():
            count = (config.n_decoder_layers if step.startswith("decoder")
                     else config.n_encoder_layers)
            for i in range(count) if "{i}" in pattern else [0]:
                if output == pattern.replace(
                        "{i}", str(i + self.first_layer)):
                    return step.replace("{i}", str(i))
        return None


#: Fields that shapes of arrays tell: another size would be refused.
SIZES = {"d_model", "d_ff", "n_encoder_layers", "n_decoder_layers",
         "source_vocab", "target_vocab", "max_length", "source_max_length",
         "token_types", "relative_buckets"}

#: Fields that change no output of a model that is not being trained, and that
#: a file of weights need not tell.
UNTOLD = {"dropout", "label_smoothing", "smoothing", "padding_learns"}


def meaning(key, value, means):
    """The fields that a key of theirs sets where it has this value.

    ``means`` is as in a Dialect's keys.
    """
    if not isinstance(means, dict):
        return {field: value for field in names_of(means)}
    if not isinstance(value, (str, bool, tuple)) or value not in means:
        one_of(value, [str(word) for word in means], ", ".join(names_of(key)))
    return means[value]
