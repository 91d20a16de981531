"""Literals of the rules language. A String is bytes, held as one character per byte (latin-1)."""

import re

from greenroom.rules.faults import RuleFault, RuleRefused

INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1

_ESCAPE = re.compile(r'\\(?:x([0-9a-fA-F]{2})|([0-3][0-7]{2})|(["\\]))')


def as_bytes_text(text: str) -> str:
    return text if text.isascii() else text.encode().decode("latin-1")


def unescaped(body: str, offset: int) -> str:
    r"""Only `\"`, `\\`, `\xHH` and three octal digits are escapes. `offset` is where the body
    begins.
    """
    if "\\" not in body:
        return as_bytes_text(body)
    parts, at = [], 0
    while (found := body.find("\\", at)) >= 0:
        escape = _ESCAPE.match(body, found)
        if not escape:
            raise RuleRefused(
                RuleFault(
                    offset + found,
                    offset + found + 2,
                    'expected ", \\, xHH or three octal digits after \\',
                )
            )
        byte, octal, plain = escape.groups()
        parts += [
            as_bytes_text(body[at:found]),
            plain or chr(int(byte, 16) if byte else int(octal, 8)),
        ]
        at = escape.end()
    return "".join(parts) + as_bytes_text(body[at:])


def pattern_body(body: str) -> str:
    r"""Backslashes belong to the regular expression; only `\"` outside a class becomes a quote."""
    out, inside, at = [], False, 0
    while at < len(body):
        if body[at] == "\\":
            out.append('"' if body[at + 1] == '"' and not inside else body[at : at + 2])
            at += 2
            continue
        inside = body[at] == "[" or (inside and body[at] != "]")
        out.append(body[at])
        at += 1
    return "".join(out)


def quoted(value: str) -> str:
    return '"' + "".join(_SHOWN[ord(char)] for char in value) + '"'


_SHOWN = [chr(code) if 0x20 <= code < 0x7F else f"\\x{code:02x}" for code in range(256)]
_SHOWN[ord('"')], _SHOWN[ord("\\")] = '\\"', "\\\\"


def raw_quoted(text: str) -> str:
    longest = max((len(run) - 1 for run in re.findall(r'"#*', text)), default=-1)
    hashes = "#" * (longest + 1)
    return f'r{hashes}"{text}"{hashes}'


def integer(text: str) -> int | None:
    """64 bits: decimal, `0x`, or octal with a leading 0 (as published)."""
    if re.fullmatch(r"0x[0-9a-fA-F]+", text):
        value = int(text, 16)
    elif re.fullmatch(r"0[0-7]+", text):
        value = int(text, 8)
    elif re.fullmatch(r"-[0-9]{1,20}|[1-9][0-9]{0,19}|0", text):
        value = int(text)
    else:
        return None
    return value if INTEGER_MIN <= value <= INTEGER_MAX else None
