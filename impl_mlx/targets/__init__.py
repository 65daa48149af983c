"""How else MLX can run a model: compiled."""
