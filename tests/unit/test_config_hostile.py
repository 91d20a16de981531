"""Values that no operator means are problems of their keys: reading a file ends, and never with
another error.
"""

from pathlib import Path

import pytest
from config_texts import GOOD, problems

from greenroom.config_file.load import read_config
from greenroom.configuration.file_tables import WIDE, read_json
from greenroom.model.fields import specs
from greenroom.settings.process import Server

NUL = '"a\\u0000b.svg"'
FILES = {
    "tls.cert": f"[tls]\ncert = {NUL}\nkey = 'k.pem'\n",
    "rooms[0].custom_page_file": f"{GOOD}custom_page_file = {NUL}\n",
    "rooms[0].branding.logo_file": f"{GOOD}branding = {{ logo_file = {NUL} }}\n",
    "native_pass.secret_file": f"[native_pass]\nsecret_file = {NUL}\n",
    "webhooks[0].url_file": f"[[webhooks]]\nname = 'w'\nurl_file = {NUL}\n",
    "pagerduty_services[0].routing_key_file": f"[[pagerduty_services]]\nname = 'p'\nrouting_key_file = {NUL}\n",
    "notifications.smtp_password_file": f"[notifications]\nsmtp_host = 'm'\nsmtp_from = 'a@b.example'\nsmtp_password_file = {NUL}\n",
}


@pytest.mark.parametrize(("key", "text"), FILES.items(), ids=FILES)
def test_a_nul_in_the_name_of_a_file_is_a_problem_of_its_key(
    key: str, text: str, tmp_path: Path
) -> None:
    found = problems(text, tmp_path / "greenroom.toml")
    assert [one for one in found if key in one and "null" in one], found


def test_an_empty_name_of_a_header_is_a_problem_with_a_line(tmp_path: Path) -> None:
    check = "[[health_checks]]\nname = 'h'\naddress = 'a.example'\ntype = 'HTTP'\n"
    (found,) = problems(
        check + "http_config = { header = { '' = ['x'] } }\n", tmp_path / "greenroom.toml"
    )
    assert found.startswith("line 5: health_checks[0].http_config.header")


def test_a_data_center_that_is_a_list_is_one_problem_beside_the_others() -> None:
    found = problems(
        "redis = 'redis://127.0.0.1'\nglobal_redis = 'redis://127.0.0.1'\ndatacenters = [['a'], 'here', 'here']\n"
    )
    assert [one.partition(": ")[2].partition(":")[0] for one in found if "datacenters" in one] == [
        "datacenters[0]",
        "datacenters",
    ]


def test_the_name_of_a_data_center_has_one_longest_length_wherever_it_is_written() -> None:
    def text(length: int) -> str:
        name = "d" * length
        return (
            f"redis = 'redis://127.0.0.1'\ndatacenter = '{name}'\ndatacenters = ['{name}']\n{GOOD}"
        )

    longest = specs(Server)["datacenter"].high
    shared = read_config(text(longest)).shared
    assert shared is not None
    assert shared.data_centers == ("d" * longest,)
    refused = [one.partition(": ")[2].partition(":")[0] for one in problems(text(longest + 1))]
    assert {"datacenter", "datacenters[0]"} <= set(refused)


@pytest.mark.parametrize("number", ["9" * 5_000, "-" + "9" * 400, "0x" + "f" * 17, str(1 << 63)])
@pytest.mark.parametrize(
    "text",
    [
        "drain_seconds = {}",
        "trusted_proxies = [{}]",
        "[[rooms]]\nname = {}",
        "[limits]\nhead_s = {}",
    ],
)
def test_a_number_that_no_program_can_keep_is_a_problem(
    tmp_path: Path, text: str, number: str
) -> None:
    (found,) = problems(text.format(number), tmp_path / "greenroom.toml")
    assert found.endswith("is not TOML: an integer has more than 64 bits")
    with pytest.raises(ValueError, match=WIDE):
        read_json(f'{{"a": [{number if number[1:].isdecimal() else 1 << 70}]}}')


def test_a_time_that_no_clock_reaches_is_a_problem_of_its_key(tmp_path: Path) -> None:
    (found,) = problems(f"[limits]\nhead_s = {1 << 60}\n", tmp_path / "greenroom.toml")
    assert found.startswith("line 2: limits.head_s: must be at most 9007199254740991 seconds")
