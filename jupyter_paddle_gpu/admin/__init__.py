"""The command jupyter paddle-gpu."""
