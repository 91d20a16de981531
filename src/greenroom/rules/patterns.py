"""Regular expressions and wildcards, linear in the text. The published dialect is Rust's `regex` on
bytes without Unicode; the engine is RE2 on Latin-1. `translated` says in RE2's words what the
dialect means and refuses what RE2 has not (verbose mode, class set operations).
"""

import re
from collections.abc import Callable

import re2  # type: ignore[import-untyped]

REGEX_MEMORY_MAX = 1 << 20
"""Bytes for one pattern and its automaton; what does not fit is refused when saved."""

REGEXES_MAX = 64

REPEAT_MAX = 1000

Search = Callable[[str], bool]


class PatternRefused(ValueError): ...


def search(pattern: str) -> Search:
    """Raises PatternRefused."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.never_capture = True
    options.log_errors = False
    options.max_mem = REGEX_MEMORY_MAX
    try:
        compiled = re2.compile(translated(pattern).encode("latin-1"), options)
    except re2.error as error:
        reason = error.args[0]
        raise PatternRefused(
            reason.decode("latin-1") if isinstance(reason, bytes) else str(reason)
        ) from None
    program = getattr(compiled, "_regexp", None)
    if program is None:
        return lambda text: compiled.search(text.encode("latin-1")) is not None
    match, anywhere, nothing = program.Match, type(program).Anchor.UNANCHORED, (-1, -1)

    def found(
        text: str,
    ) -> bool:  # the wrapper around the engine costs 1 us a search, the engine itself 0.4
        data = text.encode("latin-1")
        return match(anywhere, data, 0, len(data))[0] != nothing  # type: ignore[no-any-return]

    return found


def translated(pattern: str) -> str:
    """Raises PatternRefused with the reason."""
    out: list[str] = []
    at, repeatable, repeated = 0, False, False
    while at < len(pattern):
        char = pattern[at]
        if char in "*+?{":
            if not repeatable:
                raise PatternRefused("repetition operator missing expression")
            if repeated:
                raise PatternRefused(
                    "a repetition of a repetition must be written with a group: (?:a*)+"
                )
            piece, at = _repetition(pattern, at)
            out.append(piece)
            repeated = True
            continue
        read = _READERS.get(char, _plain)
        piece, at = read(pattern, at)
        out.append(piece)
        repeatable, repeated = not _opens(char, piece), False
    return "".join(out)


def _opens(char: str, piece: str) -> bool:
    return char == "|" or (char == "(" and not piece.endswith(")"))


def _repetition(pattern: str, at: int) -> tuple[str, int]:
    if pattern[at] == "{":
        found = re.compile(r"\{ *([0-9]+) *(?:(,) *([0-9]*) *)?\}").match(pattern, at)
        if not found:
            closed = "}" in pattern[at:]
            raise PatternRefused(
                "repetition quantifier expects a valid decimal"
                if closed
                else "unclosed counted repetition"
            )
        low, comma, high = found.groups()
        if max(int(low[:9]), int((high or "0")[:9])) > REPEAT_MAX:
            raise PatternRefused(f"a repetition count must not exceed {REPEAT_MAX}")
        if high and int(low) > int(high):
            raise PatternRefused("invalid repetition count range, the start must be <= the end")
        piece, at = f"{{{int(low)}{comma or ''}{high or ''}}}", found.end()
    else:
        piece, at = pattern[at], at + 1
    lazy = pattern[at : at + 1] == "?"
    return (f"{piece}?", at + 1) if lazy else (piece, at)


def _plain(pattern: str, at: int) -> tuple[str, int]:
    char = pattern[at]
    return (char if char.isascii() else _bytes_of(char)), at + 1


def _bytes_of(char: str) -> str:
    return "(?:" + "".join(f"\\x{byte:02x}" for byte in char.encode()) + ")"


_FLAGS = re.compile(r"\(\?([a-zA-Z]*)(?:(-)([a-zA-Z]*))?([:)])")
_NAMED = re.compile(r"\(\?P?<([A-Za-z_][A-Za-z0-9_.\[\]]*)>")


def _group(pattern: str, at: int) -> tuple[str, int]:
    if not pattern.startswith("(?", at):
        return "(", at + 1
    if pattern.startswith(("(?=", "(?!", "(?<=", "(?<!"), at):
        raise PatternRefused("look-around, including look-ahead and look-behind, is not supported")
    named = _NAMED.match(pattern, at)
    if named:
        return "(", named.end()
    found = _FLAGS.match(pattern, at)
    if not found:
        raise PatternRefused("unrecognized flag")
    on, minus, off, closing = found.groups()
    _check_flags(on, off or "", bool(minus), closing)
    kept_on, kept_off = on, (off or "").replace("u", "")
    flags = kept_on + (f"-{kept_off}" if kept_off else "")
    if closing == ")":
        return (f"(?{flags})" if flags else "(?:)"), found.end()
    return f"(?{flags}:", found.end()


def _check_flags(on: str, off: str, negated: bool, closing: str) -> None:
    for flag in on + off:
        if flag not in "imsUu":
            reason = {
                "x": "verbose mode (flag x) is not supported",
                "R": "CRLF mode (flag R) is not supported",
            }
            raise PatternRefused(reason.get(flag, "unrecognized flag"))
    if len(set(on + off)) != len(on + off):
        raise PatternRefused("duplicate flag")
    if negated and not off:
        raise PatternRefused("dangling flag negation operator")
    if not on and not negated and closing == ")":
        raise PatternRefused("repetition operator missing expression")
    if "u" in on:
        raise PatternRefused("Unicode not allowed here")


_CLASSES = {
    "d": ("0-9", "\\x00-/:-\\xff"),
    "s": ("\\t-\\r\\x20", "\\x00-\\x08\\x0e-\\x1f!-\\xff"),
    "w": ("0-9A-Za-z_", "\\x00-/:-@\\[-\\^`{-\\xff"),
}
"""Perl classes as ranges: (the class, its complement)."""

_CODE = re.compile(
    r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|[xuU]\{([0-9A-Fa-f]{1,8})\})"
)
_CONTROLS = "aftnrv"


def _escape(pattern: str, at: int) -> tuple[str, int]:
    char = pattern[at + 1 : at + 2]
    if char and char in "dDsSwW":
        return f"[{_CLASSES[char.lower()][char.isupper()]}]", at + 2
    if char in ("A", "b", "B", "z"):
        if pattern.startswith("{", at + 2) and char == "b":
            raise PatternRefused("special word boundaries are not supported")
        return f"\\{char}", at + 2
    return _escaped_character(pattern, at)


def _escaped_character(pattern: str, at: int) -> tuple[str, int]:
    """Inside a class or outside."""
    char = pattern[at + 1 : at + 2]
    if not char:
        raise PatternRefused("incomplete escape sequence, reached end of pattern prematurely")
    if char in _CONTROLS:
        return f"\\{char}", at + 2
    if char in "xuU":
        found = _CODE.match(pattern, at)
        if not found:
            raise PatternRefused("invalid hexadecimal escape")
        code = int(next(group for group in found.groups() if group), 16)
        if code > 0xFF:
            if code > 0x10FFFF or 0xD800 <= code < 0xE000:
                raise PatternRefused("invalid Unicode scalar value in an escape")
            return _bytes_of(chr(code)), found.end()
        return f"\\x{code:02x}", found.end()
    if char in "pP":
        raise PatternRefused("Unicode not allowed here")
    if char.isdigit():
        raise PatternRefused("backreferences are not supported")
    if char in "<>":
        raise PatternRefused("special word boundaries are not supported")
    if char.isascii() and not char.isalnum() and 0x20 <= ord(char) < 0x7F:
        return (char if char == "_" else f"\\{char}"), at + 2
    raise PatternRefused("unrecognized escape sequence")


_POSIX = re.compile(
    r"\[:\^?(alnum|alpha|ascii|blank|cntrl|digit|graph|lower|print|punct|space|upper|word|xdigit):\]"
)


def _class(pattern: str, at: int) -> tuple[str, int]:
    out, at = ["["], at + 1
    if pattern.startswith("^", at):
        out.append("^")
        at += 1
    start = at
    while at < len(pattern):
        if pattern[at] == "]" and at > start:
            return "".join(out) + "]", at + 1
        piece, at, single = _class_item(pattern, at)
        if (
            pattern.startswith("-", at)
            and not pattern.startswith(("-]", "--"), at)
            and at + 1 < len(pattern)
        ):
            last, at, last_single = _class_item(pattern, at + 1)
            if not (single and last_single):
                raise PatternRefused("invalid range boundary, must be a literal")
            piece = f"{piece}-{last}"
        out.append(piece)
    raise PatternRefused("unclosed character class")


def _class_item(pattern: str, at: int) -> tuple[str, int, bool]:
    """Returns text, where the next item begins, and whether it is a single character."""
    char = pattern[at]
    posix = _POSIX.match(pattern, at) if char == "[" else None
    if posix:
        return posix[0], posix.end(), False
    if char == "[":
        raise PatternRefused("nested character classes are not supported")
    if pattern.startswith(("&&", "--", "~~"), at):
        raise PatternRefused("set operations in character classes are not supported")
    if char == "\\":
        return _class_escape(pattern, at)
    if not char.isascii():
        raise PatternRefused("Unicode not allowed here")
    return (f"\\{char}" if char in "]-^" else char), at + 1, True


def _class_escape(pattern: str, at: int) -> tuple[str, int, bool]:
    char = pattern[at + 1 : at + 2]
    if char and char in "dDsSwW":
        return _CLASSES[char.lower()][char.isupper()], at + 2, False
    if char and char in "AbBz":
        raise PatternRefused("invalid escape sequence found in character class")
    piece, end = _escaped_character(pattern, at)
    if piece.startswith("(?:"):
        raise PatternRefused("Unicode not allowed here")
    return piece, end, True


_READERS: dict[str, Callable[[str, int], tuple[str, int]]] = {
    "\\": _escape,
    "[": _class,
    "(": _group,
}


def wildcard(pattern: str, strict: bool) -> Search:
    r"""Matches the WHOLE string: `*` is any run of characters, `\*` a star, `\\` a backslash. Not
    strict: ignores ASCII case.

    Raises PatternRefused for two stars in a row and for other escapes.
    """
    parts = _wildcard_parts(pattern)
    fold = (lambda text: text) if strict else lower
    first, *middle = [fold(part) for part in parts]
    if not middle:
        return lambda text: fold(text) == first
    *between, last = middle

    def fits(text: str) -> bool:
        text = fold(text)
        at, end = len(first), len(text) - len(last)
        if at > end or not text.startswith(first) or not text.endswith(last):
            return False
        for part in between:
            at = text.find(part, at, end)
            if at < 0:
                return False
            at += len(part)
        return True

    return fits


def _wildcard_parts(pattern: str) -> list[str]:
    parts, at = [""], 0
    while at < len(pattern):
        if pattern.startswith("**", at):
            raise PatternRefused("wildcard contains a double star")
        if pattern[at] == "*":
            parts.append("")
        elif pattern[at] == "\\":
            at += 1
            if at == len(pattern):
                raise PatternRefused(
                    "invalid wildcard: incomplete escape sequence at the end of the wildcard"
                )
            if pattern[at] not in "*\\":
                raise PatternRefused("invalid wildcard: only \\* and \\\\ are escapes")
            parts[-1] += pattern[at]
        else:
            parts[-1] += pattern[at]
        at += 1
    return parts


_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}


def lower(text: str) -> str:
    """ASCII only."""
    return text.lower() if text.isascii() else text.translate(_LOWER)


def upper(text: str) -> str:
    """ASCII only."""
    return text.upper() if text.isascii() else text.translate(_UPPER)
