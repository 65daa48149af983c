"""What two models were given, where it differs, and why."""
