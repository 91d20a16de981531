"""A WebSocket tunnel: bytes carried both ways as they come, counted by frames, so that both sides
can be told a proper goodbye.
"""

import secrets

from greenroom.gateway.wire.websocket import TRY_AGAIN_LATER, FrameCount, close_frame


class Tunnel:
    """How far each direction is; `of_visitor` are the visitor's bytes, `of_origin` the origin's."""

    __slots__ = ("of_origin", "of_visitor")

    def __init__(self) -> None:
        self.of_visitor = FrameCount()
        self.of_origin = FrameCount()

    def goodbye_to_visitor(self) -> bytes:
        """A closing frame that the visitor understands; nothing in the middle of another frame."""
        return close_frame(TRY_AGAIN_LATER) if self.of_origin.between else b""

    def goodbye_to_origin(self) -> bytes:
        """The same for the origin, from the visitor."""
        return (
            close_frame(TRY_AGAIN_LATER, secrets.token_bytes(4)) if self.of_visitor.between else b""
        )
