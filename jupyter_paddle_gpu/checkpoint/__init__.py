"""The training state: captured at a safe moment, written whole, restored exactly."""
