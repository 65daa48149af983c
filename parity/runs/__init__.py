"""Training runs with their data, and texts through trained models."""
