"""The shipped model, the strings that it reads on the pages, and its variants.

What takes long is a function of its own, which another process can call.
"""

import functools
import warnings

import numpy as np

from transformer_contract import weights as files
from transformer_contract.batch import Batch
from parity_io.errors import InputError
from transformer_contract.schema import schema
from parity import ports
from parity.check import golden
from parity.check.run import LONGEST
from parity.numerics.tolerances import (
    FLOAT64_GRADIENT, FLOAT64_LIMIT, LOCKSTEP_LIMIT)
from parity.ports import NotChecked
from parity.reading import variables
from parity.reading.model_run import ModelRun, of_all

#: Which pair of the shipped ones is read, and which are drawn as maps.
EXAMPLE, MAPS = "vendredi 19 avril 2047", (
    "vendredi 19 avril 2047", "Thursday, January 26, 1989",
    "2039年11月6日日曜日")

#: The models that are seen beside the shipped one, and what they are.
OTHERS = (
    ({"norm": "std", "residual": "pre", "final_norm": True, "tied": "none"},
     "a pre-norm model with unbiased deviations, final norms and a projection "
     "of its own"),
    ({"norm": "rms", "residual": "pre", "final_norm": True, "gated": True,
      "activation": "silu", "position_padding": True},
     "a pre-norm model with RMS norms, gated feed-forward networks and "
     "positions that do not count padding"),
    ({"tied": "output", "output_bias": True, "token_types": 2,
      "positions": "learned", "output_transform": True},
     "a model with types of tokens, learned positions, and a head before a "
     "tied projection with a bias"),
    ({"stacks": "decoder", "tied": "none", "output_bias": False,
      "positions": "rotary_halves"},
     "a decoder alone, with rotary positions in halves"),
    ({"stacks": "decoder", "tied": "none", "residual": "pre",
      "final_norm": True, "positions": "rotary_interleaved"},
     "a pre-norm decoder alone, with rotary positions in pairs side by side"),
    ({"positions": "relative", "activation": "gelu"},
     "a model with relative positions and GELU"),
    ({"positions": "halves"}, "a model with sines first, then cosines"),
    ({"positions": "learned", "position_padding": True},
     "a model with learned positions that do not count padding"),
)

#: One layer shows them; the first, whose norms stand elsewhere, needs both.
ONE_LAYER = {"n_encoder_layers": 1, "n_decoder_layers": 1}

#: Owner of steps -> the limit of what it computes, where it is none of the
#: forward pass: gradients, and what one step of training makes of them.
LIMITS = {"loss_and_gradients": FLOAT64_GRADIENT, "Trainer": LOCKSTEP_LIMIT}

#: A kernel [D D].
SQUARE = "encoder.layers.0.self_attention.output.kernel"


class Shipped:
    """The shipped model, and the reference.

    Attributes:
        engines: column -> engine, the reference's first.
        config, weights, tokenizer: the model's; the weights in float64.
        pairs: source -> target of the shipped strings.
    """

    def __init__(self):
        self.engines = {"numpy": ports.engine("numpy")}
        self.config, weights, self.tokenizer, pairs = golden.trained()
        self.pairs = dict(pairs)
        self.weights = {name: array.astype(np.float64)
                        for name, array in weights.items()}

    def versions(self):
        """Column -> what computes there, in words."""
        return {column: ", ".join(f"{name} {version}" for name, version
                                  in engine.versions().items())
                for column, engine in self.engines.items()}

    def built(self, engine):
        """The shipped model, as an engine builds it, in float64."""
        return engine.build(
            "transformer", self.config, self.weights, "float64")

    def pairs_batch(self, sources):
        """The batch that a decoder reads, and what it is to predict."""
        for source in sources:
            if source not in self.pairs:
                raise InputError(
                    f"the shipped file {golden.TRAINED}.tsv lacks "
                    f"{source!r}, which the pages read; name another string "
                    "in parity/reading/shipped_model.py.")
        targets = [self.pairs[source] for source in sources]
        whole = Batch.of_text(sources, targets, self.tokenizer)
        batch = Batch.of_ids(
            whole.source, whole.target[:, :-1], self.config.pad_id)
        return batch, whole.target[:, 1:]


class Running(Shipped):
    """The shipped model in the reference and in ports.

    Args:
        port_names: which ports to run.

    Attributes:
        not_checked: column -> why a port was not run.
        ports: the columns that were, without the reference's.
    """

    def __init__(self, port_names):
        super().__init__()
        self.not_checked = {}
        for column in ports.usual_ports():
            if column not in port_names:
                self.not_checked[column] = "it was not asked for"
                continue
            engine = ports.engine(column)
            if isinstance(engine, NotChecked):
                self.not_checked[column] = engine.reason
            else:
                engine.set_precision()
                self.engines[column] = engine
        self.ports = tuple(self.engines)[1:]

    @functools.cached_property
    def models(self):
        """Column -> the shipped model, built."""
        return {column: self.built(engine)
                for column, engine in self.engines.items()}

    def run(self, config, weights):
        """A ModelRun of EXAMPLE, with its gradients."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ModelRun(self.engines, config, weights,
                            *self.pairs_batch([EXAMPLE]))

    def run_other(self, number):
        """The ModelRun of one of OTHERS."""
        words, _ = OTHERS[number]
        config = self.config.replace(**words, **(ONE_LAYER if number else {}))
        return self.run(config, reread(self.weights, config))

    def run_searches(self):
        """{(owner, step): SeenArray} of steps that no module records.

        And column -> the tokens and scores of greedy search.
        """
        arrays, answers = {}, {}
        batch, labels = self.pairs_batch([EXAMPLE])
        for column, engine in self.engines.items():
            arrays[column], answers[column] = variables.steps(
                engine, self.models[column], self.config, self.weights, batch,
                labels, self.tokenizer, LONGEST)
        return {key: of_all(".".join(key), arrays, key, limit=LIMITS.get(
                    key[0], FLOAT64_LIMIT))
                for key in arrays["numpy"]
                if all(key in steps for steps in arrays.values())}, answers


def run_other(number, port_names):
    """The ModelRun of one of OTHERS, in a process of its own."""
    return Running(port_names).run_other(number)


def run_searches(port_names):
    """What Running.run_searches makes, in a process of its own."""
    return Running(port_names).run_searches()


def reread(weights, config):
    """The shipped weights as those of another variant of the model.

    Norms that it has besides begin as the identity; the tied table serves
    three times, its first rows as a learned one of positions or types, the
    inner kernel as a gate's too, and an attention's output kernel as a head's.
    """
    table = weights["source_embedding.table"]
    arrays = {}
    for name, shape in schema(config).items():
        if name in weights:
            arrays[name] = weights[name]
        elif name.endswith(("table", "types")):
            arrays[name] = np.resize(table, shape)
        elif (other := name.replace(".gate.", ".inner.")) in weights:
            arrays[name] = weights[other]
        elif name == "head.inner.kernel":
            arrays[name] = weights[SQUARE]
        elif name == "projection.kernel":
            arrays[name] = np.ascontiguousarray(table.T)
        elif name.endswith("scale"):
            arrays[name] = np.ones(shape)
        else:
            arrays[name] = np.zeros(shape)
    files.check(arrays, schema(config))
    return arrays
