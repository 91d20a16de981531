"""Web push (RFC 8030): encryption for one browser (RFC 8291), and the sender's identity (RFC 8292)."""

import json
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from greenroom.model.call import VisitorCall
from greenroom.outbound import Request

CURVE = ec.SECP256R1()
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551

RECORD_SIZE = 4_096
"""Push services need take no more than 4,096 bytes in all."""

MESSAGE_MAX = RECORD_SIZE - 16 - 4 - 1 - 65 - 1 - 16
"""Bytes, without salt, size, length and key before, and delimiter and tag after."""

TOKEN_S = 12 * 3_600
"""At most a day (RFC 8292)."""


def vapid_key(secret: bytes) -> ec.EllipticCurvePrivateKey:
    """Deterministic for a secret of 32 bytes."""
    return ec.derive_private_key(int.from_bytes(secret, "big") % (_ORDER - 1) + 1, CURVE)


def public_bytes(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def text_of(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def bytes_of(text: str) -> bytes:
    """Raises ValueError."""
    return urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))


def encrypted(
    message: bytes,
    p256dh: bytes,
    auth: bytes,
    sender: ec.EllipticCurvePrivateKey | None = None,
    salt: bytes = b"",
) -> bytes:
    """The body (aes128gcm, one record). `sender`, `salt`: for tests; else new for each message. Raises
    ValueError for a key that is no point of the curve.
    """
    sender, salt = sender or ec.generate_private_key(CURVE), salt or os.urandom(16)
    theirs = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, p256dh)
    ours = public_bytes(sender)
    shared = sender.exchange(ec.ECDH(), theirs)
    secret = _derived(shared, auth, b"WebPush: info\0" + p256dh + ours, 32)
    key = _derived(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derived(secret, salt, b"Content-Encoding: nonce\0", 12)
    head = salt + RECORD_SIZE.to_bytes(4, "big") + bytes((len(ours),)) + ours
    return head + AESGCM(key).encrypt(nonce, message + b"\x02", None)


def authorization(key: ec.EllipticCurvePrivateKey, endpoint: str, contact: str, now_ms: int) -> str:
    """`contact`: an address for the push service's operators."""
    parts = urlsplit(endpoint)
    claims = {
        "aud": f"{parts.scheme}://{parts.netloc}",
        "exp": now_ms // 1000 + TOKEN_S,
        "sub": contact,
    }
    signed = ".".join(
        text_of(json.dumps(part, separators=(",", ":")).encode())
        for part in ({"typ": "JWT", "alg": "ES256"}, claims)
    )
    r, s = utils.decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(SHA256())))
    signature = r.to_bytes(32, "big") + s.to_bytes(32, "big")
    return f"vapid t={signed}.{text_of(signature)}, k={text_of(public_bytes(key))}"


def push_request(
    call: VisitorCall,
    message: bytes,
    key: ec.EllipticCurvePrivateKey,
    contact: str,
    lasts_s: int,
    now_ms: int,
) -> Request:
    """`lasts_s`: how long the push service keeps it. Raises ValueError."""
    headers = (
        ("Authorization", authorization(key, call.to, contact, now_ms)),
        ("Content-Encoding", "aes128gcm"),
        ("Content-Type", "application/octet-stream"),
        ("TTL", str(lasts_s)),
        ("Topic", "greenroom"),
        ("Urgency", "high"),
    )
    body = encrypted(message, bytes_of(call.p256dh), bytes_of(call.auth))
    return Request("POST", call.to, headers, body)


def _derived(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length, salt, info).derive(secret)
