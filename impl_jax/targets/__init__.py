"""How else JAX can run a model: compiled, exported, on a mesh."""
