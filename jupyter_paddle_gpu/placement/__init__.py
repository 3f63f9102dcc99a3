"""Where a session's agent runs: this machine, a cluster."""
