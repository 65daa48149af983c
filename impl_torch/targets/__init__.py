"""How else PyTorch can run a model: compiled, exported, on a mesh."""
