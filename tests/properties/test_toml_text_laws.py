"""Everything written as TOML is read back as it was, by the parser of the standard library."""

import tomllib

from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from greenroom.transfer.export_import import toml_text

TEXTS = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=12),
    st.sampled_from(['"""', 'a\nb"', "\n", '\\\n"', "\r\n", "\x7f\n\x00", "a" * 70, '""""\n""""']),
)
SCALARS = st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(TEXTS, inner, max_size=6),
        st.lists(st.dictionaries(TEXTS, inner, max_size=6), max_size=3),
    ),
    max_leaves=12,
)


@settings(max_examples=examples(300), deadline=None)
@given(st.dictionaries(TEXTS, VALUES, max_size=5))
def test_what_is_written_is_read_back(document: dict) -> None:
    assert tomllib.loads(toml_text(document)) == document


def test_a_null_is_left_out() -> None:
    assert toml_text({"a": None, "b": {"c": None, "d": 1}}) == "[b]\nd = 1\n"


def test_it_looks_as_someone_would_write_it() -> None:
    written = toml_text(
        {
            "zones": [
                {
                    "name": "example.com",
                    "greenroom": {"origin": "http://127.0.0.1:3000"},
                    "waiting_rooms": [
                        {
                            "name": "shop",
                            "host": "shop.example.com",
                            "page": "<h1>\n  wait\n</h1>",
                            "queue_all": True,
                            "limit": 200,
                        }
                    ],
                }
            ],
        }
    )
    assert written == (
        "[[zones]]\n"
        'name = "example.com"\n'
        "\n"
        "[zones.greenroom]\n"
        'origin = "http://127.0.0.1:3000"\n'
        "\n"
        "[[zones.waiting_rooms]]\n"
        'name = "shop"\n'
        'host = "shop.example.com"\n'
        'page = """\n<h1>\n  wait\n</h1>"""\n'
        "queue_all = true\n"
        "limit = 200\n"
    )
