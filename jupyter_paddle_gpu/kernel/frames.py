"""Messages of Jupyter's protocol as they travel: frames."""

from __future__ import annotations

import hmac
import itertools
import json
from dataclasses import dataclass
from typing import Any

from jupyter_client.session import DELIM

HEADER, PARENT = 2, 3  # frames behind the delimiter


@dataclass(frozen=True)
class Request:
    """An unanswered request: as it came (``frames``), or as the main thread has already read it (``message``)."""

    header: dict[str, Any]
    frames: list[Any] | None = None
    identities: Any = None
    message: dict[str, Any] | None = None

    def opened(self, session: Any) -> tuple[Any, dict[str, Any]]:
        """Return identities and message, read by hand: a Session refuses what it has read before.

        Raises ValueError for what is no message of this session.
        """
        if self.message is not None:
            return self.identities, self.message
        identities, rest = session.feed_identities(self.frames, copy=False)
        signature, *parts = [bytes(frame.bytes) for frame in rest[:5]]
        if session.auth is not None and not hmac.compare_digest(session.sign(parts), signature):
            raise ValueError("its signature is wrong")
        return identities, {"header": session.unpack(parts[0]), "content": session.unpack(parts[3])}


def identities_of(frames: list[Any]) -> list[bytes]:
    """Return the ROUTER identities in front of the delimiter."""
    parts = (getattr(frame, "bytes", frame) for frame in frames)
    return list(itertools.takewhile(lambda part: part != DELIM, parts))


def part_of(frames: list[Any], offset: int) -> dict[str, Any]:
    """Return the JSON part ``offset`` frames behind the delimiter; {} where there is none."""
    for index, frame in enumerate(frames):
        if getattr(frame, "bytes", frame) == DELIM:
            if index + offset >= len(frames):
                return {}
            part = frames[index + offset]
            try:
                decoded = json.loads(getattr(part, "bytes", part))
            except ValueError:
                return {}
            return decoded if isinstance(decoded, dict) else {}
    return {}
