"""An OpenID Connect provider that speaks HTTP on a port of its own: discovery, keys, authorization
code with PKCE, userinfo, sign-out.
"""

import base64
import hashlib
import json
import secrets
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote_plus, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "greenroom", "a secret / with: signs"
RETURN = "/sign-in/oidc/return"

Claims = dict[str, Any]


def rsa_key(name: str) -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": name, "use": "sig"}, private=True)


KEY, OTHER_KEY = rsa_key("one"), rsa_key("two")
"""Made once: they take a tenth of a second each."""


@dataclass
class Granted:
    """What a code was given out for."""

    redirect_uri: str
    challenge: str
    nonce: str
    used: bool = False


@dataclass
class Provider:
    """Its state, and what a test may have it do wrong."""

    now_s: Callable[[], int]
    user: Claims = field(
        default_factory=lambda: {
            "sub": "u1",
            "email": "ada@example.com",
            "email_verified": True,
            "groups": ["shop"],
        }
    )
    key: RSAKey = field(default_factory=lambda: KEY)
    published: list[RSAKey] = field(default_factory=lambda: [KEY])
    change_claims: Callable[[Claims], None] = lambda claims: None
    sign: Callable[[Claims], str] | None = None
    change_document: Callable[[Claims], None] = lambda document: None
    change_answer: Callable[[Claims], None] = lambda answer: None
    codes_again: bool = False
    in_userinfo: tuple[str, ...] = ()
    refuse: str = ""
    issuer: str = ""
    asked: list[str] = field(default_factory=list)
    codes: dict[str, Granted] = field(default_factory=dict)

    def document(self) -> Claims:
        told = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "end_session_endpoint": f"{self.issuer}/leave",
        }
        self.change_document(told)
        return told

    def authorize(self, query: dict[str, str]) -> str:
        """Where the browser goes next. The person is signed in here already."""
        assert query["response_type"] == "code"
        assert query["client_id"] == CLIENT
        assert query["code_challenge_method"] == "S256"
        back = {"state": query["state"]}
        if self.refuse:
            return f"{query['redirect_uri']}?{urlencode({**back, 'error': self.refuse})}"
        code = secrets.token_urlsafe(16)
        self.codes[code] = Granted(query["redirect_uri"], query["code_challenge"], query["nonce"])
        return f"{query['redirect_uri']}?{urlencode({**back, 'code': code})}"

    def tokens(self, form: dict[str, str], authorization: str) -> tuple[int, Claims]:
        granted = self.codes.get(form.get("code", ""))
        pair = (
            base64.b64decode(authorization.removeprefix("Basic ")).decode().split(":")
            if authorization
            else ["", ""]
        )
        challenge = (
            base64.urlsafe_b64encode(
                hashlib.sha256(form.get("code_verifier", "").encode()).digest()
            )
            .rstrip(b"=")
            .decode()
        )
        if [unquote_plus(one) for one in pair] != [CLIENT, SECRET]:
            return 401, {"error": "invalid_client"}
        if (
            granted is None
            or (granted.used and not self.codes_again)
            or granted.redirect_uri != form.get("redirect_uri")
        ):
            return 400, {"error": "invalid_grant"}
        if granted.challenge != challenge:
            return 400, {"error": "invalid_grant", "error_description": "PKCE"}
        granted.used = True
        told = {name: value for name, value in self.user.items() if name not in self.in_userinfo}
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "iat": self.now_s(),
            "exp": self.now_s() + 300,
            "nonce": granted.nonce,
            **told,
        }
        self.change_claims(claims)
        token = (
            self.sign(claims)
            if self.sign
            else jwt.encode({"alg": "RS256", "kid": self.key.kid}, claims, self.key)
        )
        answer = {"access_token": "access", "token_type": "Bearer", "id_token": token}
        self.change_answer(answer)
        return 200, answer


@contextmanager
def provider_at(now_s: Callable[[], int], tls: ssl.SSLContext | None = None) -> Iterator[Provider]:
    """A provider that answers on a port of 127.0.0.1 until the end of the block; with `tls` by
    HTTPS.
    """
    provider = Provider(now_s)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            path, query = (
                urlsplit(self.path).path,
                {name: one[0] for name, one in parse_qs(urlsplit(self.path).query).items()},
            )
            provider.asked.append(path)
            if path == "/.well-known/openid-configuration":
                self.tell(200, provider.document())
            elif path == "/jwks":
                self.tell(200, {"keys": [key.as_dict(private=False) for key in provider.published]})
            elif path == "/userinfo":
                allowed = self.headers.get("Authorization") == "Bearer access"
                self.tell(200 if allowed else 401, provider.user)
            elif path == "/authorize":
                self.tell(302, {}, provider.authorize(query))
            elif path == "/leave":
                self.tell(302, {}, query["post_logout_redirect_uri"])
            else:
                self.tell(404, {})

        def do_POST(self) -> None:
            provider.asked.append(self.path)
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: one[0] for name, one in parse_qs(body).items()}
            self.tell(*provider.tokens(form, self.headers.get("Authorization", "")))

        def tell(self, status: int, said: Claims, location: str = "") -> None:
            body = json.dumps(said).encode()
            self.send_response(status)
            for name, value in (
                ("Content-Length", str(len(body))),
                ("Content-Type", "application/json"),
                ("Location", location),
            ):
                if value:
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None:
            """What a test breaks is not told."""

    server = Server(("127.0.0.1", 0), Handler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    provider.issuer = f"http{'s' if tls else ''}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
