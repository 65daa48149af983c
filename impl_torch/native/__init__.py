"""The native form: the Transformer of the layers that torch brings along."""
