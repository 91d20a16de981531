"""OpenID Connect: authorization code flow with PKCE. State, nonce and code verifier are derived
from one random secret in the browser's cookie, so an answer for another browser or an earlier
sign-in does not fit. Requests pass the outbound guard; the issuer's own host may be private.
Redirects are not followed.
"""

import asyncio
import hashlib
import hmac
import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus, urlencode

from greenroom.errors import GreenroomError
from greenroom.model.clock import Clock
from greenroom.model.oidc import OidcPerson, OidcSettings, claims_wanted, oidc_person
from greenroom.outbound import (
    Guard,
    OutboundAnswer,
    OutboundFailed,
    OutboundPolicy,
    Request,
    RequestLimits,
    exchange,
    read_target,
    tls_context,
)
from greenroom.outbound.guard import Listening
from greenroom.outbound.policy import NEVER, PRIVATE
from greenroom.web.refusals import ApiFault, Code, Refused

# Verifies ID tokens. Only asymmetric signatures count, whatever the header says.

ALGORITHMS = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "Ed25519",
    "EdDSA",
)
LEEWAY_S = 60

FRESH_S = 600

SUBJECT_MAX = 255


class IdTokenRefused(GreenroomError): ...


class UnknownKey(IdTokenRefused):
    """The provider may have new keys."""


def verified_claims(
    token: str,
    keys: Sequence[Mapping[str, Any]],
    settings: OidcSettings,
    *,
    nonce: str,
    access_token: str,
    now_ms: int,
) -> dict[str, Any]:
    """`keys` are the JWKS. Raises IdTokenRefused."""
    from authlib.oidc.core import CodeIDToken  # type: ignore[import-untyped]
    from joserfc import errors

    entry, now_s = settings.entry, now_ms // 1000
    decoded = _decoded(token, keys)
    essential = {
        "iss": {"essential": True, "value": entry.issuer},
        "aud": {"essential": True, "value": entry.client_id},
    }
    params = {"nonce": nonce, "client_id": entry.client_id, "access_token": access_token}
    try:
        claims = CodeIDToken(decoded.claims, decoded.header, essential, params)
        claims.validate(now=now_s, leeway=LEEWAY_S)
    except errors.ExpiredTokenError:
        raise IdTokenRefused(
            "its ID token has expired (is the clock of this machine right?)"
        ) from None
    except errors.JoseError as error:
        raise IdTokenRefused(
            f"its ID token is not valid: {getattr(error, 'description', '') or error.error}"[:200]
        ) from None
    except (TypeError, ValueError, AttributeError):
        raise IdTokenRefused("its ID token has claims of a wrong type") from None
    if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
        raise IdTokenRefused("its ID token was made for another sign-in (nonce)")
    if (
        not isinstance(claims["iat"], (int, float))
        or not now_s - FRESH_S <= claims["iat"] <= now_s + LEEWAY_S
    ):
        raise IdTokenRefused(
            "its ID token was not made just now (is the clock of this machine right?)"
        )
    if not isinstance(claims["sub"], str) or not 0 < len(claims["sub"]) <= SUBJECT_MAX:
        raise IdTokenRefused("its ID token names no person (sub)")
    return dict(claims)


def _decoded(token: str, keys: Sequence[Mapping[str, Any]]) -> Any:
    from joserfc import errors, jwt
    from joserfc.jwk import KeySet

    known: Any = {
        "keys": [
            dict(key)
            for key in keys
            if key.get("kty") in ("RSA", "EC", "OKP") and key.get("use", "sig") == "sig"
        ]
    }
    try:
        return jwt.decode(token, KeySet.import_key_set(known), algorithms=list(ALGORITHMS))
    except (
        errors.BadSignatureError,
        errors.InvalidKeyIdError,
        errors.MissingKeyError,
        errors.MissingKeyTypeError,
    ):
        raise UnknownKey("the signature of its ID token is wrong") from None
    except errors.UnsupportedAlgorithmError:
        raise IdTokenRefused(
            f"its ID token must be signed with one of {', '.join(ALGORITHMS)}"
        ) from None
    except (
        errors.JoseError,
        ValueError,
        TypeError,
        KeyError,
        RecursionError,
        UnicodeError,
    ) as error:
        raise IdTokenRefused(f"its ID token cannot be read: {type(error).__name__}") from None


LIMITS = RequestLimits(total_s=6.0, connect_s=3.0, body_max=256 * 1024)
KEEP_MS = 3_600_000

RETRY_MS = 5_000

NEW_KEYS_MS = 30_000

KEYS_MAX = 100
WORDS_MAX = 200
ENDPOINTS = (
    "authorization_endpoint",
    "token_endpoint",
    "jwks_uri",
    "userinfo_endpoint",
    "end_session_endpoint",
)


@dataclass(frozen=True, slots=True)
class _Known:
    document: Mapping[str, Any]
    keys: tuple[Mapping[str, Any], ...]
    at_ms: int


class OidcProvider:
    """Methods raise Refused with words for people. Used from one event loop."""

    def __init__(
        self,
        settings: OidcSettings,
        outbound: Callable[[], OutboundPolicy],
        clock: Clock,
        listening: Listening = tuple,
    ) -> None:
        """`listening`: greenroom's own listeners, which are never called."""
        self.settings = settings
        self._outbound = outbound
        self._clock = clock
        self._listening = listening
        self._known: _Known | None = None
        self._failed = (0, "")
        self._guard = asyncio.Lock()
        self._tls = tls_context(settings.authorities) if settings.authorities else None

    async def begin(self, secret: str, redirect_uri: str) -> str:
        known = await self._documents()
        return await asyncio.to_thread(
            self._authorization_url, known.document["authorization_endpoint"], secret, redirect_uri
        )

    def _authorization_url(self, endpoint: str, secret: str, redirect_uri: str) -> str:
        from authlib.oauth2.rfc6749.parameters import prepare_grant_uri  # type: ignore[import-untyped]
        from authlib.oauth2.rfc7636 import create_s256_code_challenge  # type: ignore[import-untyped]

        entry = self.settings.entry
        challenge = create_s256_code_challenge(derived(secret, "verifier"))
        return str(
            prepare_grant_uri(
                endpoint,
                entry.client_id,
                "code",
                redirect_uri,
                " ".join(entry.scopes),
                derived(secret, "state"),
                nonce=derived(secret, "nonce"),
                code_challenge=challenge,
                code_challenge_method="S256",
            )
        )

    async def finish(self, answer: Mapping[str, str], secret: str, redirect_uri: str) -> OidcPerson:
        """After `check_state`."""
        entry = self.settings.entry
        if answer.get("iss", entry.issuer) != entry.issuer:
            raise _refused("the answer comes from another provider: try again")
        if "error" in answer:
            told = " ".join(filter(None, (answer["error"], answer.get("error_description", ""))))
            raise _refused(f"{self.settings.label} refused: {_plain(told)}")
        if not answer.get("code"):
            raise _refused(f"{self.settings.label} sent no code: try again")
        known = await self._documents()
        tokens = await self._redeem(known.document, answer["code"], secret, redirect_uri)
        access = tokens.get("access_token")
        access = access if isinstance(access, str) else ""
        claims = await self._claims(tokens.get("id_token"), access, derived(secret, "nonce"))
        if (
            claims_wanted(self.settings) - claims.keys()
            and access
            and known.document.get("userinfo_endpoint")
        ):
            claims = {
                **await self._userinfo(known.document["userinfo_endpoint"], access, claims["sub"]),
                **claims,
            }
        return oidc_person(self.settings, claims)

    async def leaving(self, back: str) -> str:
        """The provider's sign-out URL, or empty."""
        known = await self._documents()
        endpoint = known.document.get("end_session_endpoint", "")
        if not endpoint:
            return ""
        query = urlencode(
            {"client_id": self.settings.entry.client_id, "post_logout_redirect_uri": back}
        )
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{query}"

    async def _claims(self, token: Any, access_token: str, nonce: str) -> dict[str, Any]:
        if not isinstance(token, str):
            raise _refused(
                f"{self.settings.label} sent no ID token: does the client have the scope openid?"
            )
        for again in (False, True):
            known = await self._documents(newer_keys=again)
            try:
                return await asyncio.to_thread(
                    verified_claims,
                    token,
                    known.keys,
                    self.settings,
                    nonce=nonce,
                    access_token=access_token,
                    now_ms=self._clock.now_ms(),
                )
            except UnknownKey as error:
                reason: IdTokenRefused = error
            except IdTokenRefused as error:
                reason = error
                break
        raise _refused(f"{self.settings.label} did not prove who you are: {reason}")

    async def _redeem(
        self, document: Mapping[str, Any], code: str, secret: str, redirect_uri: str
    ) -> Mapping[str, Any]:
        entry = self.settings.entry
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": derived(secret, "verifier"),
        }
        headers = [
            ("Content-Type", "application/x-www-form-urlencoded"),
            ("Accept", "application/json"),
        ]
        methods = document.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        if self.settings.secret and "client_secret_basic" in methods:
            pair = f"{quote_plus(entry.client_id)}:{quote_plus(self.settings.secret)}"
            headers.append(("Authorization", f"Basic {_basic(pair)}"))
        else:
            form |= {"client_id": entry.client_id} | (
                {"client_secret": self.settings.secret} if self.settings.secret else {}
            )
        answer = await self._ask_now(
            Request("POST", document["token_endpoint"], tuple(headers), urlencode(form).encode())
        )
        told = _json(answer)
        if answer.status != 200 or not isinstance(told, dict):
            reason = told.get("error") if isinstance(told, dict) else None
            raise _refused(
                f"{self.settings.label} did not accept the sign-in:"
                f" {_plain(str(reason or f'status {answer.status}'))}"
            )
        return told

    async def _userinfo(self, url: str, access_token: str, subject: str) -> dict[str, Any]:
        answer = await self._ask_now(
            Request(
                "GET",
                url,
                (("Authorization", f"Bearer {access_token}"), ("Accept", "application/json")),
            )
        )
        told = _json(answer)
        if answer.status != 200 or not isinstance(told, dict) or told.get("sub") != subject:
            raise _refused(
                f"{self.settings.label} told nothing usable about you (userinfo, status"
                f" {answer.status})"
            )
        return told

    async def _documents(self, *, newer_keys: bool = False) -> _Known:
        """At most KEEP_MS old; `newer_keys`: the present keys did not fit."""
        async with self._guard:
            known, now_ms = self._known, self._clock.now_ms()
            most_ms = NEW_KEYS_MS if newer_keys else KEEP_MS
            if known is not None and now_ms - known.at_ms < most_ms:
                return known
            failed_ms, reason = self._failed
            if not reason or now_ms - failed_ms >= RETRY_MS:
                try:
                    self._known = known = _Known(*await self._fetched(), now_ms)
                    self._failed = (0, "")
                    return known
                except GreenroomError as error:
                    self._failed = (now_ms, reason := str(error))
            raise self._away(reason)

    def _away(self, reason: str) -> Refused:
        words = (
            f"{self.settings.label} cannot be asked at the moment: {reason}. Other ways to sign in"
            " still work."
        )
        return Refused(ApiFault(Code.UNAVAILABLE, words))

    async def _fetched(self) -> tuple[Mapping[str, Any], tuple[Mapping[str, Any], ...]]:
        issuer = self.settings.entry.issuer
        document = await self._json(
            f"{issuer.rstrip('/')}/.well-known/openid-configuration", "its discovery document"
        )
        if document.get("issuer") != issuer:
            raise OutboundFailed(
                f"it names itself {_plain(str(document.get('issuer')))}, the configuration says"
                f" {issuer}"
            )
        missing = [name for name in ENDPOINTS[:3] if not isinstance(document.get(name), str)]
        if missing:
            raise OutboundFailed(f"its discovery document has no {missing[0]}")
        for name in ENDPOINTS:
            if document.get(name):
                self._check(name, document[name])
        keys = (await self._json(document["jwks_uri"], "its keys")).get("keys")
        if not isinstance(keys, list) or not all(isinstance(key, dict) for key in keys):
            raise OutboundFailed("its keys are not a JWKS")
        return document, tuple(keys[:KEYS_MAX])

    def _check(self, name: str, url: Any) -> None:
        target, issuer = read_target(url), read_target(self.settings.entry.issuer)
        if target.scheme != "https" and (target.scheme, target.authority) != (
            issuer.scheme,
            issuer.authority,
        ):
            raise OutboundFailed(f"its {name} does not begin with https://")

    async def _json(self, url: str, what: str) -> Mapping[str, Any]:
        answer = await self._ask(Request("GET", url, (("Accept", "application/json"),)))
        told = _json(answer)
        if answer.status != 200 or not isinstance(told, dict):
            raise OutboundFailed(f"{what} cannot be read (status {answer.status})")
        return told

    async def _ask_now(self, request: Request) -> OutboundAnswer:
        # A person waits for the answer.
        try:
            return await self._ask(request)
        except GreenroomError as error:
            raise self._away(str(error)) from None

    async def _ask(self, request: Request) -> OutboundAnswer:
        target, issuer = read_target(request.url), read_target(self.settings.entry.issuer)
        own = (target.scheme, target.host, target.port) == (issuer.scheme, issuer.host, issuer.port)
        policy = (
            OutboundPolicy(ports=(), allowed=PRIVATE, denied=(*NEVER, *self._outbound().denied))
            if own
            else self._outbound()
        )
        try:
            return await exchange(
                Guard(policy, listening=self._listening), request, LIMITS, self._tls
            )
        except GreenroomError as error:
            raise OutboundFailed(str(error)) from error


def check_state(answer: Mapping[str, str], secret: str) -> None:
    """Raises Refused for an answer to a sign-in that this browser has not begun."""
    sent = answer.get("state", "")
    if not secret or not hmac.compare_digest(
        sent.encode("utf-8", "replace"), derived(secret, "state").encode()
    ):
        raise _refused(
            "this sign-in was begun in another browser, or more than ten minutes ago: try again"
        )


def derived(secret: str, what: str) -> str:
    """43 characters that reveal nothing about the other values."""
    made = hmac.new(
        secret.encode("utf-8", "replace"), f"greenroom oidc {what}".encode(), hashlib.sha256
    ).digest()
    return urlsafe_b64encode(made).rstrip(b"=").decode()


def _json(answer: OutboundAnswer) -> Any:
    try:
        return None if answer.truncated else json.loads(answer.body)
    except (ValueError, RecursionError):
        return None


def _plain(text: str) -> str:
    return "".join(one for one in text if one.isprintable())[:WORDS_MAX]


def _basic(pair: str) -> str:
    from base64 import b64encode

    return b64encode(pair.encode()).decode()


def _refused(reason: str) -> Refused:
    return Refused(ApiFault(Code.DENIED, reason), status=401)


class ConfiguredProvider:
    """The provider of the current settings."""

    def __init__(
        self,
        settings: Callable[[], OidcSettings | None],
        outbound: Callable[[], OutboundPolicy],
        clock: Clock,
        listening: Listening,
    ) -> None:
        self._settings = settings
        self._outbound = outbound
        self._clock = clock
        self._listening = listening
        self._made: OidcProvider | None = None

    def now(self) -> OidcProvider | None:
        settings, made = self._settings(), self._made
        if settings is None:
            self._made = made = None
        elif made is None or made.settings != settings:
            self._made = made = OidcProvider(settings, self._outbound, self._clock, self._listening)
        return made
