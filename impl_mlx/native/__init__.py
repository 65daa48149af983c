"""The native form: the Transformer of the layers that MLX brings along."""
