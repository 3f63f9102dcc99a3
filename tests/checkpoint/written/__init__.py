"""Snapshots that earlier versions of Paddle and of this package have written, to be read for years.

`python -m tests.checkpoint.written` adds one of the Paddle that is installed. Replace none: where one does not read any
more, what users have does not either.
"""
