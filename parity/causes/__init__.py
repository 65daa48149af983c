"""Why two computations part: known faults, and which one it is."""
