"""What bypass rules cost: evaluation of one rule, compilation, many rooms. Run: python
tests/bench/bench_rules.py

Every figure is the best of many short rounds: the least disturbed one. `whole` is what a visit pays
(facts are made for it), `rule` the closure alone. The aim is 1 us for a rule of five terms.
"""

import time
import timeit

from greenroom.model.rule import Rule
from greenroom.model.visit import Arrival
from greenroom.rules import (
    NOTHING_KNOWN,
    RequestFacts,
    compile_bypass,
    compile_rule,
)

NOW_MS = 1_700_000_000_000
BROWSER = (
    (b"host", b"shop.example.com"),
    (
        b"user-agent",
        b"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
    ),
    (b"accept", b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    (b"accept-language", b"de,en-US;q=0.7,en;q=0.3"),
    (b"cookie", b"session=0123456789abcdef; theme=dark; consent=all"),
    *((b"x-filler-%d" % index, b"value") for index in range(10)),
)
VISIT = Arrival(
    "GET",
    "https",
    "shop.example.com",
    "/api/v2/orders/4711",
    "page=2&sort=name",
    BROWSER,
    "192.0.2.7",
)

FIVE = [
    'http.host == "shop.example.com"',
    'starts_with(http.request.uri.path, "/api/")',
    'not http.request.uri.query contains "debug"',
    'http.request.method in {"GET" "HEAD"}',
    "ip.src in {10.0.0.0/8 192.0.2.0/24}",
]
RULES = {
    "one term": FIVE[0],
    "five terms, all evaluated": " and ".join(FIVE),
    "five terms, the first decides": " and ".join(['http.host == "other.example.com"', *FIVE[1:]]),
    "five terms, the last of any": " or ".join(
        ["not " + term if "not" not in term else term[4:] for term in FIVE[:4]] + FIVE[4:]
    ),
    "a regular expression": 'http.request.uri.path matches "^/api/v[0-9]+/"',
    "a header": 'any(http.request.headers["accept"][*] contains "json")',
    "a cookie": 'http.request.cookies["session"][0] == "x"',
    "an argument": 'http.request.uri.args["page"][0] == "2"',
}


def best_ns(run: object, number: int = 2_000, rounds: int = 100) -> float:
    return min(timeit.repeat(run, number=number, repeat=rounds)) / number * 1e9  # type: ignore[arg-type]


def main() -> None:
    nothing = best_ns(lambda: None)
    print(f"{'':34}{'rule':>8}{'whole':>8}  (ns, an empty call of {nothing:.0f} taken off)")
    for name, source in RULES.items():
        holds, bypass = compile_rule(source), compile_bypass([Rule(expression=source)])
        facts = RequestFacts(VISIT, NOW_MS)
        alone = best_ns(lambda holds=holds, facts=facts: holds(facts)) - nothing
        whole = best_ns(lambda bypass=bypass: bypass(VISIT, NOW_MS, NOTHING_KNOWN)) - nothing
        print(f"{name:34}{alone:8.0f}{whole:8.0f}")
    ten = compile_bypass(
        [Rule(expression=f'http.request.uri.path == "/static/{index}"') for index in range(10)]
    )
    print(
        f"{'ten rules of one term, none holds':34}{'':8}{best_ns(lambda: ten(VISIT, NOW_MS, NOTHING_KNOWN)) - nothing:8.0f}"
    )
    sources = [
        " and ".join([*FIVE, f'http.request.uri.path != "/{index}"']) for index in range(2_000)
    ]
    compile_rule(sources[0])
    begun = time.perf_counter()
    for source in sources:
        compile_rule(source)
    print(f"compiling 2,000 rules of six terms: {time.perf_counter() - begun:.2f} s")


if __name__ == "__main__":
    main()
