"""Owns the sessions: provisioner, manager, Jupyter server extension."""
