"""What was found, for the eye: terminal, pages and pictures."""
