"""Reading from one socket, paused as long as anybody has a reason to."""

import asyncio


class Flow:
    """Reasons are bits. After the other side has closed its sending side there is nothing left to pause (`ended`)."""

    __slots__ = ("_transport", "ended", "reasons")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.reasons = 0
        self.ended = False

    def pause(self, reason: int) -> None:
        """Nothing more is read until every reason is gone."""
        if not self.reasons and not self.ended and not self._transport.is_closing():
            self._transport.pause_reading()
        self.reasons |= reason

    def resume(self, reasons: int) -> None:
        """These reasons are gone."""
        were, self.reasons = self.reasons, self.reasons & ~reasons
        if were and not self.reasons and not self.ended and not self._transport.is_closing():
            self._transport.resume_reading()
