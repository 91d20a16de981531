"""`[[health_checks]]` of a configuration file: every field arrives, every mistake is named with its
line.
"""

import pytest

from greenroom.config_file.load import read_config
from greenroom.config_file.served import served
from greenroom.configuration.file_tables import FILE_ZONE_ID
from greenroom.configuration.layers import layered
from greenroom.errors import InvalidConfig
from greenroom.model.change import Put, applied
from greenroom.model.configuration import Configuration
from greenroom.model.health_check import HealthCheck, HttpCheck, TcpCheck
from greenroom.model.zone import Zone

START = 'data = "."\n'


def checks(text: str) -> tuple[HealthCheck, ...]:
    return tuple(read_config(START + text).documents.health_checks.records())


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidConfig) as caught:
        read_config(START + text)
    return [str(problem) for problem in caught.value.problems]


def test_every_field_can_be_written() -> None:
    (check,) = checks(
        """
        [[health_checks]]
        id = "shop-1"
        name = "shop"
        address = "10.0.0.1"
        type = "https"
        interval = 10
        check_regions = ["WEU", "ENAM"]
        [health_checks.http_config]
        path = "/health"
        expected_codes = ["2xx"]
        header = { Host = ["shop.example.com"] }
        """
    )
    assert check == HealthCheck(
        id="shop-1",
        name="shop",
        address="10.0.0.1",
        type="HTTPS",
        interval=10,
        check_regions=("WEU", "ENAM"),
        http_config=HttpCheck(
            path="/health",
            port=443,
            expected_codes=("2xx",),
            header={"Host": ("shop.example.com",)},
        ),
    )
    (tcp,) = checks(
        '[[health_checks]]\nname = "db"\naddress = "db"\ntype = "TCP"\ntcp_config = { port = 5432 }\n'
    )
    assert tcp.tcp_config == TcpCheck(port=5432)
    assert tcp.http_config is None


def test_an_id_depends_on_the_name_alone() -> None:
    one, two = (
        checks(f'[[health_checks]]\nname = "a"\naddress = "{address}"\n')[0]
        for address in ("x", "y")
    )
    assert one.id == two.id
    assert len(one.id) == 32


def test_mistakes_are_named_with_their_lines_all_at_once() -> None:
    found = problems(
        """[[health_checks]]
name = "a"
adress = "x"
interval = "often"
[health_checks.http_config]
expected_codes = ["ok"]
method = "POST"
[[health_checks]]
name = "a"
address = "y"
http_config = { pfad = "/" }
"""
    )
    assert [line.split(":")[:2] for line in found] == [
        ["line 2", " health_checks[0].address"],
        ["line 4", " health_checks[0].adress"],
        ["line 5", " health_checks[0].interval"],
        ["line 7", " health_checks[0].http_config.expected_codes[0]"],
        ["line 8", " health_checks[0].http_config.method"],
        ["line 10", " health_checks[1].name"],
        ["line 12", " health_checks[1].http_config.pfad"],
    ]


@pytest.mark.parametrize(
    "text",
    [
        "health_checks = 1",
        "health_checks = [1]",
        "[health_checks]",
        '[[health_checks]]\nname="a"\naddress="b"\nhttp_config = 1',
    ],
)
def test_what_is_no_table_is_refused(text: str) -> None:
    assert len(problems(text)) == 1


def test_a_check_of_the_file_is_in_the_zone_that_covers_what_it_serves() -> None:
    file = read_config(
        START
        + """
        [[health_checks]]
        name = "behind"
        address = "10.0.0.1"
        http_config = { header = { Host = ["www.example.com:8080"] } }
        [[health_checks]]
        name = "elsewhere"
        address = "elsewhere.org"
        """
    )
    stored, _ = applied(
        Configuration(),
        [
            Put(Zone(id="z", name="example.com")),
            Put(HealthCheck(id="h", name="h", address="h"), "z"),
        ],
        1,
    )
    homes = {
        entry.record.name: entry.parent
        for entry in layered(file.documents, stored).health_checks.values()
        if entry.read_only
    }
    assert homes == {"behind": "z", "elsewhere": FILE_ZONE_ID}


def test_a_check_of_the_store_with_the_id_of_one_in_the_file_is_left_out_and_named() -> None:
    file = read_config(START + '[[health_checks]]\nid = "h"\nname = "a"\naddress = "x"\n')
    stored, _ = applied(
        Configuration(),
        [
            Put(Zone(id="z", name="example.com")),
            Put(HealthCheck(id="h", name="h", address="h"), "z"),
        ],
        1,
    )
    both = served(file, stored)
    assert [check.name for check in both.documents.health_checks.records()] == ["a"]
    assert [fault.unit for fault in both.faults] == ["health check h (h)"]
