"""What frameworks do differently by default, found by running them."""
