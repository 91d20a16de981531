"""Origins whose connections are read by threads: what they share is how they listen."""

import socket
import threading
from typing import BinaryIO


class ThreadedOrigin:
    """Listens on a port of its own, from the first moment on; `one` reads a request and answers it."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.address: tuple[str, int] = self._listener.getsockname()
        threading.Thread(target=self._accept, daemon=True).start()

    def one(self, sock: socket.socket, stream: BinaryIO) -> bool:
        """One request; False when the connection has ended. ValueError when it cannot be read."""
        raise NotImplementedError

    def unreadable(self, error: ValueError) -> None:
        """What `one` raised; the connection ends."""

    def close(self) -> None:
        """Listens no longer."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        with sock, sock.makefile("rb") as stream:
            try:
                while self.one(sock, stream):
                    pass
            except OSError:
                return
            except ValueError as error:
                self.unreadable(error)
