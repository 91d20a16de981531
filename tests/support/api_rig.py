"""A real greenroom with its management API, the official SDK in front of it, and plain HTTP beside
that.
"""

import http.client
import inspect
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cloudflare
from warm_start import output_of

ACCOUNT = "67726565656e726f6f6d000000000001"


def create_token(data: Path, name: str, *options: str) -> str:
    """The secret of a new token, made at the command line."""
    return output_of("token", "create", name, "--data", str(data), *options).strip()


@dataclass
class Reply:
    """What the API said."""

    status: int
    headers: http.client.HTTPMessage
    body: Any

    @property
    def result(self) -> Any:
        assert self.body["success"] is True, self.body
        return self.body["result"]

    @property
    def codes(self) -> list[int]:
        return [error["code"] for error in self.body["errors"]]

    @property
    def pointers(self) -> set[str]:
        return {error["source"]["pointer"] for error in self.body["errors"] if "source" in error}


@dataclass
class Api:
    """Where the API is and with which token to ask."""

    address: tuple[str, int]
    token: str
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def base_url(self) -> str:
        return f"http://{self.address[0]}:{self.address[1]}/client/v4"

    def ask(
        self,
        method: str,
        path: str,
        document: Any = None,
        *,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Reply:
        """One request; `headers` replace the token."""
        sent = {"Authorization": f"Bearer {self.token}"} if headers is None else headers
        if document is not None:
            body = json.dumps(document).encode()
        connection = http.client.HTTPConnection(*self.address, timeout=60)
        try:
            connection.request(
                method, f"/client/v4{path}", body, {"Content-Type": "application/json", **sent}
            )
            response = connection.getresponse()
            text = response.read()
            return Reply(response.status, response.headers, json.loads(text) if text else None)
        finally:
            connection.close()

    def sdk(self, asynchronous: bool = False, **options: Any) -> Any:
        """The official client, as strict as it can be."""
        kind = cloudflare.AsyncCloudflare if asynchronous else cloudflare.Cloudflare
        asked = {
            "api_token": self.token,
            "base_url": self.base_url,
            "max_retries": 0,
            "_strict_response_validation": True,
        }
        client = kind(**{**asked, **options})
        if "api_key" not in options:
            client.api_key = client.api_email = (
                None  # not what stands in this machine's environment
            )
        return client


async def done(value: Any) -> Any:
    """What a call of either client gives."""
    return await value if inspect.isawaitable(value) else value


async def each(pages: Any) -> list[Any]:
    """Everything that either client's iterator gives before it ends."""
    if isinstance(pages, Iterable):
        return list(pages)
    return [item async for item in pages]
