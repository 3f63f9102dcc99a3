"""Beside the user's code: the extension, the magics, the guard."""
