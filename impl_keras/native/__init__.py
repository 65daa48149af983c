"""The native form: the Transformer of the layers that Keras brings along."""
