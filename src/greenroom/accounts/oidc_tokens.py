"""Verifies ID tokens. Only asymmetric signatures count, whatever the header says."""

import hmac
from collections.abc import Mapping, Sequence
from typing import Any

from greenroom.errors import GreenroomError
from greenroom.model.oidc import OidcSettings

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
