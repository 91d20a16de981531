"""An ASGI application that is put together when somebody first asks, or when there is time: importing the management API takes longer
than everything else at the start, and visitors do not need it.
"""

import asyncio
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send


class Deferred:
    """Stands where the application will be."""

    def __init__(self, make: Callable[[], ASGIApp]) -> None:
        """`make` is called once, in a thread."""
        self._make = make
        self._made: ASGIApp | None = None
        self._making = asyncio.Lock()

    async def ready(self) -> ASGIApp:
        """The application itself."""
        async with self._making:
            if self._made is None:
                self._made = await asyncio.to_thread(self._make)
        return self._made

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hands the request on."""
        await (self._made or await self.ready())(scope, receive, send)
