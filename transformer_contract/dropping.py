"""Where dropout is on, and the values that it keeps, during a run.

Dropout is off unless a run is open, so that a model never drops by accident.
The values that a run keeps are drawn before it, for each place by its name: the
path of its Dropout, the same in all four. A run is open for its own thread.
"""

import contextlib
import threading


class _OpenRun(threading.local):
    """The run of this thread, (paths, drawn), or None."""

    def __init__(self):
        self.run = None


_open = _OpenRun()


def places(config, batch, source, target):
    """Where a model drops values: {path of the Dropout: shape}.

    Args:
        config: a TransformerConfig.
        batch, source, target: B, S and T of the inputs.
    """
    if not config.dropout:
        return {}
    d, f, h = config.d_model, config.d_ff, config.n_heads
    inside = "gated" if config.gated else "activated"
    stacks: dict[str, tuple[int, int, dict[str, int]]] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    if config.stacks != "decoder":
        shapes["source_positions.dropout"] = (batch, source, d)
        stacks["encoder"] = (config.n_encoder_layers, source,
                             {"self_attention": source})
    if config.stacks != "encoder":
        shapes["target_positions.dropout"] = (batch, target, d)
        stacks["decoder"] = (config.n_decoder_layers, target,
                             {"self_attention": target})
    if config.stacks == "both":
        stacks["decoder"][2]["cross_attention"] = source
    for stack, (n_layers, length, keys) in stacks.items():
        for layer in (f"{stack}.layers.{i}" for i in range(n_layers)):
            for name, size in keys.items():
                shapes[f"{layer}.{name}.weights_dropout"] = (
                    batch, h, length, size)
            shapes[f"{layer}.feed_forward.{inside}_dropout"] = (
                batch, length, f)
            for name in (*keys, "feed_forward"):
                shapes[f"{layer}.{name}_residual.dropout"] = (batch, length, d)
    return shapes


def kept(module):
    """Which inputs of a Dropout the open run keeps, bool; None if it is off."""
    run = _open.run
    if run is None:
        return None
    paths, drawn = run
    return drawn[paths[id(module)]]


@contextlib.contextmanager
def dropping(paths, drawn):
    """Open a run for the duration of a ``with`` block.

    Args:
        paths: id(module) -> its path from the root.
        drawn: path -> bool array, for every place; {} leaves dropout off.
    """
    before, _open.run = _open.run, (paths, drawn) if drawn else None
    try:
        yield
    finally:
        _open.run = before
