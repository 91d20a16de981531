"""The scanner finds the line of every key, for any TOML text that the standard parser accepts."""

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.config_file.toml_lines import KeyLines
from greenroom.configuration.file_tables import step

TEXT = '''# a comment
listen = "127.0.0.1:8080"   # [not a table]
a.b . "c d" = 1

[origins]
"shop.example.com" = "http://a"
'x.y' = { url = "http://b", verify = true }

[[rooms]]
name = "one"
page = """
first
"quoted" \\""" still inside
"""
next = \'\'\'it''s\'\'\'

[rooms.cookie_attributes]
samesite = "lax"

[[rooms]]
routes = [
  { host = "a", path = "/" },  # one
  { host = "b" },

  [ 1,
    2 ],
]
[[rooms.inner]]
deep = 1
[[rooms.inner]]
deep = 2979-05-27 07:32:00
'''

EXPECTED = {
    "listen": 2,
    "a": 3,
    'a.b."c d"': 3,
    "origins": 5,
    'origins."shop.example.com"': 6,
    'origins."x.y".verify': 7,
    "rooms": 9,
    "rooms[0]": 9,
    "rooms[0].page": 11,
    "rooms[0].next": 15,
    "rooms[0].cookie_attributes.samesite": 18,
    "rooms[1]": 20,
    "rooms[1].routes[0].path": 22,
    "rooms[1].routes[1].host": 23,
    "rooms[1].routes[2][1]": 26,
    "rooms[1].inner[0].deep": 29,
    "rooms[1].inner[1].deep": 31,
}


@pytest.mark.parametrize(("pointer", "line"), EXPECTED.items())
def test_each_key_is_found_on_its_line(pointer: str, line: int) -> None:
    tomllib.loads(TEXT)
    assert KeyLines(TEXT).line(pointer) == line


@pytest.mark.parametrize(
    ("pointer", "line"),
    [
        ("rooms[1].name", 20),
        ("rooms[0].cookie_attributes.secure", 17),
        ('origins."x.y".ca_file', 7),
        ("rooms[1].routes[1].pat", 23),
        ("tls.key", 0),
    ],
)
def test_a_missing_key_is_placed_at_the_table_around_it(pointer: str, line: int) -> None:
    assert KeyLines(TEXT).line(pointer) == line


def test_keys_of_json_have_lines_too() -> None:
    text = '{\n "a\\/b": [{"c": "\\"]", "d": {}},\n  {"c":\n 1, "e": [\n[]]}]}\n'
    json.loads(text)
    lines = KeyLines(text, is_json=True)
    pointers = ('"a/b"', '"a/b"[0].c', '"a/b"[1].c', '"a/b"[1].e', '"a/b"[1].e[0]', "f")
    assert [lines.line(pointer) for pointer in pointers] == [2, 2, 3, 4, 5, 0]


def test_the_text_inside_a_string_begins_behind_the_quotes_or_on_the_next_line() -> None:
    lines = KeyLines(TEXT)
    assert lines.text_line("rooms[0].page") == 12
    assert lines.text_line("rooms[0].next") == 15
    assert lines.text_line("rooms[1].routes") == 0


names = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1, max_size=6
) | st.from_regex(r"\A[A-Za-z0-9_-]{1,6}\Z")
scalars = (
    st.integers(-9, 9)
    | st.booleans()
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
tables = st.dictionaries(names, values, max_size=5)


def quoted(text: str, multiline: bool) -> str:
    escaped = "".join(c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" for c in text)
    return f'"""\n{escaped}"""' if multiline else f'"{escaped}"'


class Writer:
    """Writes a table in a random style and notes where each key went."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.lines: dict[str, int] = {}
        self.text = ""

    def put(self, text: str) -> None:
        self.text += text

    def here(self, pointer: str) -> None:
        self.lines[pointer] = self.text.count("\n") + 1

    def blank(self) -> None:
        self.put(self.draw(st.sampled_from(["", "\n", '# c = [ "\n', "  \n\n", "\t# ''' \n"])))

    def key(self, name: str) -> str:
        bare = step("", name) == name
        return name if bare and self.draw(st.booleans()) else quoted(name, multiline=False)

    def value(self, pointer: str, value: Any) -> None:
        if isinstance(value, str):
            self.put(quoted(value, self.draw(st.booleans())))
        elif isinstance(value, dict):
            self.put("{ ")
            for index, (name, inner) in enumerate(value.items()):
                self.put(", " if index else "")
                self.here(step(pointer, name))
                self.put(f"{self.key(name)} = ")
                self.value(step(pointer, name), inner)
            self.put(" }")
        elif isinstance(value, list):
            self.put("[")
            for index, inner in enumerate(value):
                self.blank()
                self.here(step(pointer, index))
                self.value(step(pointer, index), inner)
                self.put(" ,")
            self.blank()
            self.put("]")
        else:
            self.put(str(value).lower())

    def table(self, pointer: str, table: dict[str, Any]) -> None:
        for name, value in table.items():
            self.blank()
            self.here(step(pointer, name))
            self.put(f"{self.key(name)} = ")
            self.value(step(pointer, name), value)
            self.put("\n")


@given(st.data())
def test_every_key_of_any_text_is_found_where_it_was_written(data: st.DataObject) -> None:
    writer = Writer(data.draw)
    writer.table("", data.draw(tables))
    for index, table in enumerate(data.draw(st.lists(tables, max_size=3))):
        writer.blank()
        pointer = step(step("", "the rooms"), index)
        writer.here(pointer)
        writer.put('[[ "the rooms" ]]\n')
        writer.table(pointer, table)
    if '"the rooms"' in writer.lines:
        return
    tomllib.loads(writer.text)
    lines = KeyLines(writer.text)
    assert {pointer: lines.line(pointer) for pointer in writer.lines} == writer.lines


@pytest.mark.parametrize("name", ["", ".", "[", "]", '"', 'a"b', "a\n", "[0]"])
def test_a_pointer_that_no_text_can_have_is_placed_at_what_is_around_it(name: str) -> None:
    lines = KeyLines("[[rooms]]\nname = 'x'\nlimits = { a = 1 }\n")
    assert lines.line(f"rooms[0].limits.{name}") in (1, 3)
    assert lines.line(name) == 0
