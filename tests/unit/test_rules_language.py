"""Bypass rules by example: the documented expressions, what each field reads, what each function
gives, and how faults are shown.
"""

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rules_visit import NOW_MS, Looked, arrival, holds, reasons

from greenroom.gateway.wire.head_records import RequestHead
from greenroom.gateway.wire.request_head import Peer, read_head
from greenroom.model.rule import Rule, RuleList
from greenroom.model.visit import Arrival
from greenroom.request.forwarded import ForwardedPolicy
from greenroom.rules import (
    FIELDS,
    FUNCTIONS,
    Place,
    RequestFacts,
    compile_bypass,
    compile_lists,
    compile_rule,
    rule_problems,
)

DOCUMENTED = [
    ('ends_with(http.request.uri.path, "/userverified")', "/shop/userverified", "/userverified/x"),
    (
        'starts_with(http.request.uri.path, "/bypassme") or ends_with(http.request.uri.path, ".js")',
        "/bypassme/x",
        "/x/bypassme",
    ),
    (
        'starts_with(http.request.uri.path, "/bypassme") or ends_with(http.request.uri.path, ".js")',
        "/app.js",
        "/app.jsx",
    ),
    ('http.request.uri.path.extension in {"js" "css" "png"}', "/a/b.CSS", "/a.css/b"),
    ('http.request.uri.path matches "^/api/v[0-9]+/"', "/api/v2/x", "/x/api/v2/"),
    ('http.request.uri.path wildcard "/API/*/ITEMS"', "/api/v2/x/items", "/api/items"),
    ('http.request.uri.path strict wildcard "/API/*"', "/API/x", "/api/x"),
]


@pytest.mark.parametrize(("source", "inside", "outside"), DOCUMENTED)
def test_a_documented_path_rule_holds_where_it_should(
    source: str, inside: str, outside: str
) -> None:
    assert holds(source, arrival(inside))
    assert not holds(source, arrival(outside))


@pytest.mark.parametrize(
    ("source", "clients", "others"),
    [
        ("ip.src in {10.20.30.40}", ["10.20.30.40"], ["10.20.30.41", "unix:"]),
        (
            "ip.src in {198.51.100.1 198.51.100.3..198.51.100.7 192.0.2.0/24 2001:0db8::/32}",
            [
                "198.51.100.1",
                "198.51.100.3",
                "198.51.100.7",
                "192.0.2.255",
                "2001:db8:ffff::",
                "::ffff:192.0.2.1",
            ],
            ["198.51.100.2", "198.51.100.8", "192.0.3.0", "2001:db9::", "::"],
        ),
        ("ip.src == 2001:db8::1", ["2001:DB8:0::1"], ["2001:db8::2", "32.1.13.184"]),
        ("ip.src != 10.0.0.1", ["10.0.0.2"], ["10.0.0.1", "nobody"]),
        (
            "cidr(ip.src, 24, 48) == 192.0.2.0 or cidr6(ip.src, 32) == 2001:db8::",
            ["192.0.2.9", "2001:db8:1::"],
            ["192.0.3.0", "2001:db9::"],
        ),
    ],
)
def test_addresses_are_compared_as_addresses(
    source: str, clients: list[str], others: list[str]
) -> None:
    assert [holds(source, arrival(client=client)) for client in clients] == [True] * len(clients)
    assert [holds(source, arrival(client=client)) for client in others] == [False] * len(others)


TRUE = [
    'http.host in {"example.com" "example.net"}',
    'any(http.request.headers["accept"][*] == "application/json")',
    'not all(http.request.headers["accept"][*] == "application/json")',
    'any(lower(http.request.headers.names[*])[*] == "x-token")',
    'not len(http.request.uri.args["order"]) >= 0',
    'len(http.request.headers["accept"]) == 2 and http.request.headers["accept"][1] == "application/json"',
    'http.request.cookies["a b"][0] == "1" and http.request.cookies["app"][1] == "again" and not has_key(http.request.cookies, "flag")',
    'http.cookie contains "app=test" and http.referer == "" and http.x_forwarded_for == "203.0.113.9, 10.0.0.1"',
    'http.request.accepted_languages[0] == "en" and http.request.accepted_languages[2] == "de" and len(http.request.accepted_languages) == 3',
    "http.request.timestamp.sec == 1484063800 and http.request.timestamp.msec == 123",
    'http.request.full_uri == "https://example.com/" and http.request.uri == "/"',
    "ssl and not http.request.headers.truncated",
    r'http.user_agent == "Probe/1.0 (\xe9)" and len(http.user_agent) == 13',
    r'http.user_agent contains "\351" and upper(http.user_agent) == "PROBE/1.0 (\xe9)"',
    'http.host == r"example.com" and http.host == r##"example.com"##',
    'http.host ge "example" and http.host lt "f" and http.host > "EXAMPLE"',
    "true and not false",
    "http.request.timestamp.msec in {0..99 0x7b}",
    "http.request.timestamp.msec in {0x0000000000000000007b} and http.request.timestamp.msec != 00000000000000000000000017",
    'join(http.request.headers["accept"], "|") == "text/html|application/json"',
    'split(http.host, ".", 2)[1] == "com" and len(split(http.host, "e", 2)) == 2',
    'concat("https://", http.host, "/") == "https://example.com/"',
    'concat(http.request.headers["accept"], http.request.headers["accept"])[3] == "application/json"',
    'lookup_json_string(http.request.headers["x-token"][0], "user", "plan") == "vip"',
    'lookup_json_integer(http.request.headers["x-token"][0], "user", "ids", 1) == 8',
    'not lookup_json_integer(http.request.headers["x-token"][0], "f") >= 0 and not lookup_json_string(http.host, "a") == ""',
    'substring(http.host, 0, 7) == "example" and substring(http.host, -3) == "com" and substring(http.host, -4, -3) == "."',
    'remove_bytes(http.host, ".em") == "xaplco"',
    'to_string(http.request.timestamp.sec) == "1484063800" and to_string(ip.src) == "192.0.2.7" and to_string(ssl) == "true"',
    'any(http.request.headers[*][*] contains "vip") and any(http.request.headers[*][0] == "text/html")',
    'any((http.request.headers.names[*] == "accept" and http.request.headers.values[*] == "application/json"))',
    'not any((http.request.headers.names[*] == "host" and http.request.headers.values[*] == "text/html"))',
    'any(starts_with(http.request.headers.names[*], "x-")) and starts_with(http.request.headers.names[*], "ho")[0]',
    'has_value(http.request.headers.names, "x-token") and has_key(http.request.headers, "accept")',
    'all(http.request.uri.args.values[*] == "nothing")',
    'ip.geoip.country == "" and ip.src.asnum == 0 and not cf.client.bot and cf.verified_bot_category == ""',
]


@given(
    st.lists(
        st.sampled_from(
            ["X-Token", "x-token", "ACCEPT", "Accept-Language", "X_Dropped", "Cookie", "x-q"]
        ),
        max_size=8,
    )
)
def test_names_of_headers_keep_the_case_in_which_they_were_sent(names: list[str]) -> None:
    lines = [
        "GET / HTTP/1.1",
        "HOST: shop.example",
        *[f"{name}:a{place}" for place, name in enumerate(names)],
        "",
        "",
    ]
    head = read_head(
        "\r\n".join(lines).encode(), Peer("192.0.2.1", tls=False, policy=ForwardedPolicy())
    )
    assert isinstance(head, RequestHead)
    facts = RequestFacts(head.arrival, 0)
    found = (
        FIELDS["http.request.headers.names"].read(facts),
        FIELDS["http.request.headers.values"].read(facts),
    )
    sent = [
        ("HOST", "shop.example"),
        *[(name, f"a{place}") for place, name in enumerate(names) if "_" not in name],
    ]
    assert list(zip(*found, strict=True)) == sent


@pytest.mark.parametrize("source", TRUE)
def test_it_holds_for_the_usual_visit(source: str) -> None:
    assert reasons(source) == []
    assert holds(source)


def test_arguments_are_read_as_they_were_sent() -> None:
    visit = arrival("/s", "a=1%2B&b&A=x&a=2&&=n&c=p=q")
    assert holds(
        'http.request.uri.args["a"][0] == "1%2B" and http.request.uri.args["a"][1] == "2" and http.request.uri.args["b"][0] == ""',
        visit,
    )
    assert holds(
        'http.request.uri.args["c"][0] == "p=q" and http.request.uri.args[""][0] == "n" and len(http.request.uri.args.names) == 6',
        visit,
    )
    assert holds('any(url_decode(http.request.uri.args.values[*])[*] == "1+")', visit)
    assert holds('remove_query_args(http.request.uri.query, "a") == "b&A=x&&=n&c=p=q"', visit)


def test_the_raw_fields_read_what_was_sent_before_it_was_made_canonical() -> None:
    visit = arrival("/a/b.TXT", "q=A", target=b"/a/./%62.TXT?q=%41")
    assert holds(
        'http.request.uri.path == "/a/b.TXT" and raw.http.request.uri.path == "/a/./%62.TXT"', visit
    )
    assert holds(
        'raw.http.request.uri.args["q"][0] == "%41" and raw.http.request.full_uri == "https://example.com/a/./%62.TXT?q=%41"',
        visit,
    )
    assert holds(
        'raw.http.request.uri == "/x?y" and raw.http.request.uri.query == "y"',
        arrival(target=b"http://example.com/x?y"),
    )
    assert holds(
        'raw.http.request.uri == "/a?q" and raw.http.request.uri.path.extension == ""',
        arrival("/a", "q"),
    )


@pytest.mark.parametrize(
    ("path", "extension"),
    [
        ("/foo.mp3", "mp3"),
        ("/.mp3", ""),
        ("/foo.", ""),
        ("/foo.tar.bz2", "bz2"),
        ("/foo", ""),
        ("/a.b/c", ""),
        ("/A.JS", "js"),
        ("/", ""),
    ],
)
def test_the_extension_is_the_text_behind_the_last_dot_of_the_last_segment(
    path: str, extension: str
) -> None:
    assert holds(f'http.request.uri.path.extension == "{extension}"', arrival(path))


def test_places_and_crawlers_come_from_lookups_and_are_asked_once() -> None:
    looked = Looked(
        Place(country="DE", continent="EU", city="Köln", in_european_union=True, as_number=64_512),
        "Search Engine Crawler",
    )
    assert holds(
        'ip.src.country in {"DE" "FR"} and ip.src.continent == "EU" and ip.src.city == "Köln"',
        lookups=looked,
    )
    assert looked.asked == ["place of 192.0.2.7"]
    assert holds(
        "ip.src.asnum == 64512 and ip.geoip.is_in_european_union and cf.client.bot", lookups=looked
    )
    assert holds('cf.verified_bot_category == "Search Engine Crawler"', lookups=looked)


def test_a_rule_that_reads_the_path_asks_for_nothing_else() -> None:
    looked = Looked()
    facts = RequestFacts(arrival("/a"), NOW_MS, looked)
    assert compile_rule('http.request.uri.path == "/a" or ip.src.country == "DE"')(facts)
    assert (looked.asked, facts.memo) == ([], {})


def test_a_missing_value_compares_as_false_regardless_of_the_operator() -> None:
    for test in (
        '== "x"',
        '!= "x"',
        'lt "x"',
        'contains ""',
        'matches ""',
        'wildcard "*"',
        'in {"x" ""}',
    ):
        assert not holds(f'http.request.headers["absent"][0] {test}')
        assert holds(f'not http.request.headers["absent"][0] {test}')
        assert not holds(f'any(http.request.headers["absent"][*] {test})')
        assert not holds(f'all(http.request.headers["absent"][*] {test})')
    assert not holds('starts_with(http.request.headers["absent"][0], "")')
    assert not holds('concat(http.host, http.request.headers["accept"][7]) contains "example"')
    assert not holds("cf.edge.server_port != 80 or cf.edge.server_ip != ::1")


@pytest.mark.parametrize(
    ("text", "options", "decoded"),
    [
        ("%41+b", "", "A b"),
        ("%2541", "", "%41"),
        ("%252541", "r", "A"),
        ("%u0041%zz", "u", "A%zz"),
        ("%25u0041", "ru", "A"),
        ("%ud800", "u", "%ud800"),
    ],
)
def test_url_decode_knows_its_options(text: str, options: str, decoded: str) -> None:
    assert holds(
        f'url_decode(http.request.uri.query, "{options}") == "{decoded}"', arrival(query=text)
    )


def signed(
    message: str, issued: int = NOW_MS // 1000, key: str = "secret", url_safe: bool = False
) -> tuple[str, str]:
    mac = hmac.digest(key.encode(), f"{message}{issued}".encode(), hashlib.sha256)
    if url_safe:
        return f"{issued}", base64.urlsafe_b64encode(mac).decode().rstrip("=")
    return f"{issued}", base64.b64encode(mac).decode().replace("+", "%2B").replace(
        "/", "%2F"
    ).replace("=", "%3D")


LINK = 'is_timed_hmac_valid_v0("secret", http.request.uri, 100, http.request.timestamp.sec, 8)'


@pytest.mark.parametrize("index", range(8))
def test_a_signed_link_is_let_by_until_it_expires(index: int) -> None:
    now = NOW_MS // 1000
    path = f"/download/cat-{index}.jpg"
    for age, fine in ((0, True), (99, True), (100, False), (5000, False), (-50, True)):
        issued, mac = signed(path, now - age)
        assert holds(LINK, arrival(path, f"verify={issued}-{mac}")) == fine
        issued, mac = signed(path, now - age, url_safe=True)
        assert holds(LINK.replace("8)", '8, "s")'), arrival(path, f"verify={issued}-{mac}")) == fine


def test_a_changed_link_is_not_let_by() -> None:
    issued, mac = signed("/a")
    assert holds(LINK, arrival("/a", f"verify={issued}-{mac}"))
    later = str(int(issued) + 1)
    for path, query in (
        ("/b", f"verify={issued}-{mac}"),
        ("/a", f"verify={later}-{mac}"),
        ("/a", f"verify={issued}-{mac[:-4]}"),
        ("/a", f"verify={issued}-"),
    ):
        assert not holds(LINK, arrival(path, query))
    for junk in (
        "",
        "-",
        "verify=",
        "verify=1234567890-",
        "x" * 60,
        "verify=²²²²²²²²²²-" + mac,
        f"{issued}-{mac}",
    ):
        assert not holds(LINK, arrival("/a", junk))
    assert not holds(LINK.replace("secret", "other"), arrival("/a", f"verify={issued}-{mac}"))


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_can_be_read_for_a_bare_and_for_a_full_visit(name: str) -> None:
    spec = FIELDS[name]
    bare = Arrival("GET", "http", "a", "/", "", (), "unix")
    full = arrival("/a.b", "c=d", target=b"*", server=("::1", 443), ray=7)
    kinds = {
        "String": str,
        "Integer": int,
        "Boolean": bool,
        "IP address": int,
        "Array": list,
        "Map": dict,
    }
    for visit in (bare, full):
        value = spec.read(RequestFacts(visit, NOW_MS, Looked()))
        assert value is None or type(value) is kinds[spec.kind.name]
        if isinstance(value, str):
            value.encode("latin-1")
    assert spec.help


ODD = ["", "%", "\xff", "{}", "[[", "-", "1234567890-", '{"a": "\\ud800"}', "[" * 100_000]
CALLS = {
    "any": 'any(split({x}, "a", 3)[*] == "")',
    "all": 'all(split({x}, "a", 3)[*] == "")',
    "starts_with": 'starts_with({x}, "a")',
    "ends_with": 'ends_with({x}, "a")',
    "concat": 'concat({x}, "a", {x}) == ""',
    "substring": 'substring({x}, 5, -5) == ""',
    "lookup_json_string": 'lookup_json_string({x}, "a", 0, "\\xff") == ""',
    "lookup_json_integer": 'lookup_json_integer({x}, 0, "a") == 0',
    "has_key": "has_key(http.request.headers, {x})",
    "has_value": "has_value(http.request.headers.names, {x})",
    "remove_bytes": 'remove_bytes({x}, "a%") == ""',
    "is_timed_hmac_valid_v0": 'is_timed_hmac_valid_v0("k", {x}, 9, http.request.timestamp.sec, 3)',
    "cidr": "cidr(ip.src, 0, 128) == ::1",
    "cidr6": "cidr6(ip.src, 0) == ::1",
    "split": 'split({x}, "a", 3)[2] == ""',
    "join": 'join(split({x}, "a", 3), "a") == ""',
    "to_string": 'to_string(len({x})) == ""',
    "remove_query_args": 'remove_query_args({x}, "a") == ""',
    "len": "len({x}) == 0",
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_function_raises_for_any_argument(name: str) -> None:
    call = CALLS.get(name, name + '({x}) == ""')
    for text in ODD:
        holds(call.replace("{x}", "http.request.uri.query"), arrival(query=text))
    assert holds(f"{call.replace('{x}', 'http.referer')} or true")


def test_a_rule_that_fails_is_no_pass_and_does_not_stop_the_others() -> None:
    class Broken(Looked):
        def place(self, client: str) -> Place:
            raise OSError("the file is gone")

    told = []
    rules = [
        Rule(id="bad", expression='ip.src.country == "DE" or true'),
        Rule(id="off", expression="true", enabled=False),
        Rule(id="good", expression='http.request.uri.path == "/in"'),
    ]
    bypass = compile_bypass(rules, failed=lambda rule, error: told.append((rule.id, str(error))))
    found = bypass(arrival("/in"), NOW_MS, Broken())
    assert found is rules[2]
    assert bypass(arrival("/out"), NOW_MS, Broken()) is None
    assert told == [("bad", "the file is gone")] * 2
    assert compile_bypass([])(arrival(), NOW_MS, Looked()) is None


def test_lists_are_reached_by_name() -> None:
    lists = compile_lists(
        [
            RuleList(
                name="offices", kind="ip", items=("192.0.2.0/24", "198.51.100.7", "2001:db8::/32")
            ),
            RuleList(name="hosts", kind="hostname", items=("example.com", "*.example.net")),
            RuleList(name="systems", kind="asn", items=("64512", "13335")),
        ]
    )
    looked = Looked(Place(as_number=13_335))
    cases = [
        ("ip.src in $offices", {}, True),
        ("ip.src in $offices", {"client": "198.51.100.8"}, False),
        ("http.host in $hosts", {}, True),
        ("http.host in $hosts", {"host": "a.b.example.net"}, True),
        ("http.host in $hosts", {"host": "example.net"}, False),
        ("http.host in $hosts", {"host": "badexample.net"}, False),
        ("ip.src.asnum in $systems", {}, True),
        ("any(http.request.headers.values[*] in $hosts)", {}, True),
    ]
    for source, more, expected in cases:
        assert (
            bool(compile_rule(source, lists)(RequestFacts(arrival(**more), NOW_MS, looked)))
            == expected
        )
    assert (
        "holds values of type IP address, not String"
        in rule_problems("http.host in $offices", "x", lists)[0].reason
    )
