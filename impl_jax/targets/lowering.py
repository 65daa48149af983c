"""How JAX lowers the many small programs of a check, step by step."""

import contextlib
import functools


def share_context():
    """Have every program of this process lowered in one MLIR context."""
    # jax: 0.10 makes a context for each and loads all dialects into it, which
    # takes a third of the time where programs are small. It has no switch.
    with contextlib.suppress(ImportError, AttributeError):
        from jax._src.interpreters import mlir
        mlir.make_ir_context = functools.cache(mlir.make_ir_context)
