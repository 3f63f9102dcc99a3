"""The first process beside a kernel: starts it, hears the eviction, tells it, reports."""
