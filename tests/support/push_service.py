"""A push service that records what comes, and the keys of a browser that can read it."""

import os
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import trustme
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from greenroom.calls.web_push import CURVE, bytes_of, public_bytes, text_of

NAME = "push.example"


class PushService:
    """Over TLS on 127.0.0.1; `status` is answered."""

    def __init__(self) -> None:
        self.status = 201
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        authority = trustme.CA()
        self.trusted = ssl.create_default_context()
        authority.configure_trust(self.trusted)
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                service.requests.append((self.path, headers, body))
                self.send_response(service.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(NAME).configure_cert(context)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_port
        self.url = f"https://{NAME}:{self.port}/send/"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )
        self._thread.start()

    async def resolve(self, _host: str, _port: int) -> list[str]:
        return ["127.0.0.1"]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Subscription:
    """What a browser keeps, and tells the site."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self._key = ec.generate_private_key(CURVE)
        self._auth = os.urandom(16)

    @property
    def told(self) -> dict[str, str]:
        return {
            "to": self.endpoint,
            "p256dh": text_of(public_bytes(self._key)),
            "auth": text_of(self._auth),
        }

    def read(self, body: bytes) -> bytes:
        """As RFC 8188 and 8291 have it, written down again from the browser's side."""
        salt, length = body[:16], body[20]
        theirs = body[21 : 21 + length]
        point = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, theirs)
        info = b"WebPush: info\x00" + public_bytes(self._key) + theirs
        secret = HKDF(SHA256(), 32, self._auth, info).derive(self._key.exchange(ec.ECDH(), point))
        key = HKDF(SHA256(), 16, salt, b"Content-Encoding: aes128gcm\x00").derive(secret)
        nonce = HKDF(SHA256(), 12, salt, b"Content-Encoding: nonce\x00").derive(secret)
        padded = AESGCM(key).decrypt(nonce, body[21 + length :], None)
        message, mark, rest = padded.rpartition(b"\x02")
        assert mark
        assert not rest.strip(b"\x00")
        return message


def signed_claims(authorization: str) -> bytes:
    """Of a VAPID header whose signature holds (RFC 8292)."""
    from cryptography.hazmat.primitives.asymmetric import utils

    token, key = (
        part.partition("=")[2] for part in authorization.removeprefix("vapid ").split(", ")
    )
    signed, _, signature = token.rpartition(".")
    raw = bytes_of(signature)
    r, s = int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")
    public = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, bytes_of(key))
    public.verify(utils.encode_dss_signature(r, s), signed.encode(), ec.ECDSA(SHA256()))
    return bytes_of(signed.partition(".")[2])
