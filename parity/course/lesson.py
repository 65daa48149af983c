"""What the lessons use of the project, to be imported in one line.

A lesson begins with its own matter, and not with where its tools lie.
"""

from parity_io.errors import InputError
from transformer_contract.batch import Batch
from transformer_contract.config import TransformerConfig
from transformer_contract.generation import GenerationConfig
from transformer_contract.shipped import VECTORS
from transformer_contract.sinusoids import (
    angles, halves_table, interleaved_table)
from transformer_contract.tokenizer import Tokenizer
from transformer_contract.training import TrainingConfig
from transformer_contract.weights import (
    initial_weights, probe_weights, select)
from parity import assert_parity, ports
from parity.causes import catalogue
from parity.check import cases, golden
from parity.check.vectors import Vector
from parity.reading import lessons
from parity.render import figures

__all__ = [
    "Batch", "GenerationConfig", "InputError", "Tokenizer", "TrainingConfig",
    "TransformerConfig", "VECTORS", "Vector", "angles", "assert_parity",
    "cases", "catalogue", "figures", "golden", "halves_table",
    "initial_weights", "interleaved_table", "lessons", "ports",
    "probe_weights", "select"]
