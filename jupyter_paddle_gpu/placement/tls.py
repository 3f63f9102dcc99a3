"""The two ends of a connection to an agent that another machine runs: TLS, both proving the same key."""

from __future__ import annotations

import ssl
from pathlib import Path


def shared_key(pem: Path, listens: bool) -> ssl.SSLContext:
    """Return the context of the end that ``listens``, or of the one that connects.

    ``pem`` holds a private key and its self-signed certificate, the same file at both ends: whoever does not have the
    key is refused. Names are not compared, an agent's address is nobody's name. Raises OSError, or its subclass
    ssl.SSLError for a file that holds neither.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if listens else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(pem)
    context.load_verify_locations(pem)
    return context
