"""What the reference and its ports agree on.

Configuration, weight names and files, token ids and masks, taps and step
markers. Standard library, NumPy, safetensors and tokenizers only; nothing here
computes any part of the model, and importing it imports no framework.
"""
