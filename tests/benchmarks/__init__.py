"""What protection costs and how fast it is, as ratios measured in one run: `python3 -m tests.benchmarks`."""
