"""The fast form's engine; all that it has is the readable engine's."""

from impl_mlx import engine


def __getattr__(name):
    return getattr(engine, name)


def not_fused(config, settings=None):
    """What is left to the readable form, in words each: all there is."""
    return ("forward pass", "generation", "training")
