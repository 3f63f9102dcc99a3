"""One machine: its devices, the book of leases over them, and agents started as processes."""
