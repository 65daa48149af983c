"""What other systems change in the paper's parts: each a subclass."""
