"""TLS contexts for visitors and for origins: HTTP/1.1 only, TLS 1.2 or newer."""

import ssl

ALPN = ["http/1.1"]


def server_context(certificate: str, key: str) -> ssl.SSLContext:
    """From PEM files (certificate with chain). Raises OSError or ssl.SSLError. `load_cert_chain` on
    the result renews the certificate for new connections.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(ALPN)
    context.load_cert_chain(certificate, key)
    return context


def origin_context(verify: bool, ca_file: str) -> ssl.SSLContext:
    """`ca_file` empty: the system's authorities."""
    context = ssl.create_default_context(cafile=ca_file or None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(ALPN)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
