"""Looking into a model: what went into and came out of each part."""
