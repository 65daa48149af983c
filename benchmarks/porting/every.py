"""Every planted fault."""

from benchmarks.porting.across import across, within
from benchmarks.porting.encoders import encoders
from benchmarks.porting.equal import equal
from benchmarks.porting.hub_faults import keras_hub
from benchmarks.porting.kernels import kernels, whisper
from benchmarks.porting.llama import llama
from benchmarks.porting.newer import newer
from benchmarks.porting.small import small
from benchmarks.porting.t5 import gpt2, t5


def faults():
    """A list of Planted."""
    return [*llama(), *t5(), *encoders(), *gpt2(), *small(),
            *whisper(), *kernels(), *newer(), *within(), *across(),
            *keras_hub(), *equal()]
