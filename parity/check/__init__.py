"""The main job: this project's own four, every step, every number."""
