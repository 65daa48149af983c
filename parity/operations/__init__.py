"""What a model computes, operation by operation: recorded, rerun, aligned."""
