"""The whole loop on one machine, with real processes: train, be evicted, come back, end bit-equal."""
