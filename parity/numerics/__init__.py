"""How far two arrays are apart, and how far they may be."""
