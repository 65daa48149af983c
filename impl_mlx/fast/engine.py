"""The fast form's engine; functions without one are the readable engine's."""

from impl_mlx import engine


def __getattr__(name):
    return getattr(engine, name)
