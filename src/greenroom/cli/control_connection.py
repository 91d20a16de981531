"""A connection to the control listener of a running greenroom, by address and port or over its Unix
socket.
"""

import http.client
import socket

from greenroom.config.addresses import address_of


def control_connection(written: str, timeout_s: float) -> http.client.HTTPConnection:
    """Not connected yet. Raises http.client.InvalidURL for a port that is not a number."""
    address = address_of(written)
    if address is not None and address.path:
        return _OverSocketFile(address.path, timeout_s)
    return http.client.HTTPConnection(written, timeout=timeout_s)


class _OverSocketFile(http.client.HTTPConnection):
    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
