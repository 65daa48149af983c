"""How else Keras can run a model: compiled, exported, on a mesh."""
