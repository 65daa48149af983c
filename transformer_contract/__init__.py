"""What the reference and its ports agree on.

Configuration, weight names, token ids and masks, taps and step markers.
Standard library, NumPy, tokenizers and parity_io only; nothing here
computes any part of the model, and importing it imports no framework.
"""
