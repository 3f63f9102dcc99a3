"""A real Kubernetes for the tests, on this machine: `python3 -m tests.cluster up`."""
