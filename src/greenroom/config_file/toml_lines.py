"""The line of each key in a TOML or JSON file, because the standard parsers do not report it.

The parser has already read the text, so this scanner only follows keys, skips values and counts
lines. Pointers name places: `rooms[1].path`, `origins."shop.example.com"`.
"""

import json
import re
import tomllib
from bisect import bisect_right

from greenroom.configuration.file_tables import BARE_KEY, step

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_PLAIN_VALUE = re.compile(r"[^,\]}\n#]*")
_STRINGS = (
    re.compile(r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}', re.DOTALL),
    re.compile(r"'''(?:[^']|'{1,2}(?!'))*'{3,5}", re.DOTALL),
    re.compile(r'"(?:[^"\\\n]|\\.)*"'),
    re.compile(r"'[^'\n]*'"),
)
_LAST_STEP = re.compile(r'(?:\[\d+\]|\.?(?:"(?:[^"\\]|\\.)*"|[^.\["\]]+))$')


class KeyLines:
    """The text must be well-formed."""

    def __init__(self, text: str, *, is_json: bool = False) -> None:
        scanner = _Scanner(text, is_json)
        scanner.document()
        self._keys, self._strings = scanner.keys, scanner.strings

    def line(self, pointer: str) -> int:
        """1-based line of the key, or of the nearest table around it; 0 when nothing around it is
        written.
        """
        while pointer:
            if pointer in self._keys:
                return self._keys[pointer]
            around = _LAST_STEP.sub("", pointer, count=1)
            pointer = (
                around if len(around) < len(pointer) else pointer[:-1]
            )  # a name that cannot be a step, such as an empty one
        return 0

    def text_line(self, pointer: str) -> int:
        """1-based line on which the text inside a string value begins; 0 for anything else."""
        return self._strings.get(pointer, 0)


class _Scanner:
    def __init__(self, text: str, is_json: bool) -> None:
        self._is_json = is_json
        self._space = _BLANK if is_json else _SPACE
        self.keys: dict[str, int] = {}
        self.strings: dict[str, int] = {}
        self._text = text
        self._at = 0
        self._newlines = [match.start() for match in re.finditer("\n", text)]
        self._newest: dict[str, int] = {}  # array of tables -> index of its last entry

    def document(self) -> None:
        if self._is_json:
            self._skip(_BLANK)
            self._value("")
            return
        table = ""
        while self._skip(_BLANK) < len(self._text):
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)

    def _skip(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._at

    def _line(self, at: int) -> int:
        return bisect_right(self._newlines, at - 1) + 1

    def _header(self) -> str:
        line = self._line(self._at)
        is_array = self._text.startswith("[[", self._at)
        self._at += 2 if is_array else 1
        *parents, last = self._key()
        self._at += 2 if is_array else 1
        pointer = ""
        for name in parents:
            pointer = self._into(step(pointer, name))
        pointer = step(pointer, last)
        self.keys.setdefault(pointer, line)
        if is_array:
            self._newest[pointer] = self._newest.get(pointer, -1) + 1
            pointer = step(pointer, self._newest[pointer])
            self.keys[pointer] = line
        return pointer

    def _into(self, pointer: str) -> str:
        """A name in a header means the newest entry of an array of tables."""
        return step(pointer, self._newest[pointer]) if pointer in self._newest else pointer

    def _key(self) -> list[str]:
        names = []
        while True:
            self._skip(self._space)
            start = self._at
            if self._text[start] in "\"'":
                self._string()
                written = self._text[start : self._at]
                names.append(
                    json.loads(written) if self._is_json else tomllib.loads("k=" + written)["k"]
                )
            else:
                names.append(self._text[start : self._skip(BARE_KEY)])
            if self._text[self._skip(self._space)] != ".":
                return names
            self._at += 1

    def _pair(self, table: str) -> None:
        line = self._line(self._at)
        pointer = table
        for name in self._key():
            pointer = step(pointer, name)
            self.keys.setdefault(pointer, line)
        self._at += 1  # the equals sign, in JSON the colon
        self._skip(self._space)
        self._value(pointer)

    def _value(self, pointer: str) -> None:
        first = self._text[self._at]
        if first in "\"'":
            self._string(pointer)
        elif first == "[":
            self._entries(pointer, "]")
        elif first == "{":
            self._entries(pointer, "}")
        else:
            self._skip(_PLAIN_VALUE)

    def _entries(self, pointer: str, closing: str) -> None:
        self._at += 1
        index = 0
        while self._text[self._skip(_BLANK)] != closing:
            if closing == "}":
                self._pair(pointer)
            else:
                entry = step(pointer, index)
                self.keys[entry] = self._line(self._at)
                self._value(entry)
                index += 1
            if self._text[self._skip(_BLANK)] == ",":
                self._at += 1
        self._at += 1

    def _string(self, pointer: str = "") -> None:
        start = self._at
        for kind in _STRINGS:
            if self._skip(kind) > start:
                break
        quote = self._text[start]
        skipped = (
            re.compile(r"\r?\n").match(self._text, start + 3)
            if self._text.startswith(quote * 3, start)
            else None
        )
        if pointer:
            self.strings[pointer] = self._line(skipped.end() if skipped else start)
