"""What the devices of this machine are and do."""
