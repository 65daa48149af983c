"""Every implementation in every form, mode, dtype, device and mesh."""
