"""The kernel's side, with real kernels and real clients."""
