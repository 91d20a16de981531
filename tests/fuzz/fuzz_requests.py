"""A long hunt for bytes that break a law of reading requests, guided by coverage.

    uv pip install --target /tmp/atheris atheris
    PYTHONPATH=/tmp/atheris .venv/bin/python tests/fuzz/fuzz_requests.py heads -max_total_time=600
    corpus/

The first argument is `heads`, `bodies` or `cookies`; what follows is libFuzzer's. A finding is
written to `crash-*` and can be tried again by naming the file instead of the corpus. The same laws
run over generated material without atheris: `./test -m campaign
tests/properties/test_request_head_laws.py`.
"""

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

with atheris.instrument_imports(include=["greenroom"]):
    from body_and_cookie_laws import NAME, SEALED, check_body, check_cookies
    from request_laws import check_head

LAWS = {"heads": check_head, "bodies": check_body, "cookies": check_cookies}
WORDS = {
    "heads": [
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.0", b"\r\nContent-Length: ", b"\r\nTransfer-Encoding: chunked", b"\r\nConnection: ",
        b"\r\nUpgrade: websocket", b"\r\nExpect: 100-continue", b"\r\nCookie: ", b"\r\nX-Forwarded-For: 1.2.3.4", b"\r\nForwarded: for=", b"%2e%2e", b"%25",
    ],
    "bodies": [b"5\r\nhello\r\n0\r\n\r\n", b";ext=1\r\n", b"X: y\r\n"],
    "cookies": [NAME + b"=" + SEALED, b"; ", NAME],
}  # fmt: skip


def main() -> None:
    """Runs until libFuzzer is told to stop or a law breaks."""
    kind = sys.argv.pop(1) if len(sys.argv) > 1 else ""
    if kind not in LAWS:
        sys.exit(f"say what to fuzz: {', '.join(LAWS)}")
    law, words = LAWS[kind], WORDS[kind]

    def one(data: bytes) -> None:
        """The bytes as they are, and spliced into something that is nearly right."""
        law(data)
        if data:
            word = words[data[0] % len(words)]
            at = data[-1] % (len(word) + 1)
            law(word[:at] + data[1:] + word[at:])

    atheris.Setup(sys.argv, one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
