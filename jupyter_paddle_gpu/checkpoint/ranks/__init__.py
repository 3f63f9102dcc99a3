"""Several ranks of one training: one snapshot of all, at one place."""
