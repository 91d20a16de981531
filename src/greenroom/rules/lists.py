"""Named lists (`$name`) compiled for membership: IP addresses and networks, host names, ASNs."""

from collections.abc import Callable, Iterable, Mapping

from greenroom.errors import InvalidConfig, Problem
from greenroom.model.fields import field_problems, vars_of
from greenroom.model.rule import RuleList
from greenroom.rules.addresses import address_range
from greenroom.rules.compare import ListMembership, in_ranges
from greenroom.rules.syntax import INTEGER, IP, STRING

NO_LISTS: Mapping[str, ListMembership] = {}


def compile_lists(lists: Iterable[RuleList]) -> dict[str, ListMembership]:
    """Raises InvalidConfig with every problem."""
    compiled: dict[str, ListMembership] = {}
    problems: list[Problem] = []
    for index, named in enumerate(lists):
        at = f"lists[{index}]"
        found = field_problems(RuleList, vars_of(named), f"{at}.")
        for place, item in enumerate(named.items):
            reason = item_problem(named.kind, item)
            if reason:
                found.append(Problem(f"{at}.items[{place}]", reason))
        if named.name in compiled:
            found.append(Problem(f"{at}.name", f"duplicate list name {named.name}"))
        if not found:
            compiled[named.name] = _COMPILERS[named.kind](named.items)
        problems += found
    if problems:
        raise InvalidConfig(problems)
    return compiled


IPV4_PREFIX_MIN, IPV6_PREFIX_MIN = 2, 4
"""As published."""


def item_problem(kind: str, item: str) -> str | None:
    if kind == "asn":
        return (
            None
            if item.isascii() and item.isdigit() and int(item[:11]) < 2**32
            else "must be an autonomous system number"
        )
    if kind == "hostname":
        name = item.removeprefix("*.")
        fine = (
            name
            and name.isascii()
            and name == name.lower()
            and not set(name) & set("*/: ")
            and len(name) <= 253
        )
        return None if fine else "must be a lower-case host name, `*.` in front for its subdomains"
    try:
        if ".." in item:
            raise ValueError("must be an IP address or a network, not a range")
        address_range(item)
    except ValueError as error:
        return str(error)
    prefix = item.partition("/")[2]
    least = IPV6_PREFIX_MIN if ":" in item else IPV4_PREFIX_MIN
    return f"the network is wider than /{least}" if prefix and int(prefix) < least else None


def _hosts(items: Iterable[str]) -> ListMembership:
    exact = frozenset(item for item in items if not item.startswith("*."))
    below = frozenset(item[2:] for item in items if item.startswith("*."))

    def contains(host: str) -> bool:
        if host in exact:
            return True
        dot = host.find(".")
        while dot >= 0:
            if host[dot + 1 :] in below:
                return True
            dot = host.find(".", dot + 1)
        return False

    return ListMembership(STRING, contains)


def _addresses(items: Iterable[str]) -> ListMembership:
    return ListMembership(IP, in_ranges(address_range(item) for item in items))


def _systems(items: Iterable[str]) -> ListMembership:
    return ListMembership(INTEGER, frozenset(int(item) for item in items))


_COMPILERS: Mapping[str, Callable[[Iterable[str]], ListMembership]] = {
    "ip": _addresses,
    "hostname": _hosts,
    "asn": _systems,
}
