"""A configuration is read as a whole: every setting arrives, every mistake is named with its key
and line, all at once.
"""

from pathlib import Path

import pytest
from config_material import ALONE, other_values
from config_texts import GOOD, only_problem, problems, with_room

from greenroom.config_file.load import Overrides, config_of, default_data, load_config, read_config
from greenroom.config_file.source import FileSource, load_stamped
from greenroom.errors import InvalidConfig
from greenroom.gateway.origin.address import Origin
from greenroom.model.fields import specs
from greenroom.model.room import Room
from greenroom.model.route import CookieAttributes, Route
from greenroom.runtime.assemble import forwarded_policy
from greenroom.runtime.data_dir import CannotStart, DataDir
from greenroom.settings.limits import Limits
from greenroom.settings.process import Address, Log
from greenroom.transfer.export_import import toml_text


def test_a_small_file_gets_the_documented_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    config = read_config(GOOD)
    assert config.listen == Address("127.0.0.1", 8080)
    assert config.control == Address("127.0.0.1", 8081)
    assert config.data == Path("/state/greenroom")
    assert config.origin == Origin("http", "127.0.0.1", 3000)
    assert (config.limits, config.log, config.tls) == (Limits(), Log(), None)
    (room,) = config.rooms
    assert (room.session_duration, room.queueing_method, room.path) == (5, "fifo", "/")


def test_every_field_of_a_room_can_be_written() -> None:
    written = {
        "id": '"abc"',
        "name": '"all"',
        "host": '"a.example.com"',
        "additional_routes": '[{ host = "b.example.com" }, { host = "c.example.com", path = "/y" }]',
        "total_active_users": "10",
        "new_users_per_minute": "9",
        "queueing_method": '"Random"',
        "custom_page_html": '"<p>{{waitTime}}</p>"',
        "cookie_attributes": '{ samesite = "none", secure = "always" }',
        "enabled_origin_commands": '["revoke"]',
        "branding": '{ site_name = "Shop" }',
        "branding_messages": '[{ language = "de-DE", text = "Hallo" }]',
        "cors_origins": '["https://www.example.com"]',
        "priority_paths": '["/checkout"]',
    }
    others = other_values(Room, *written, *ALONE) | {"path": "/x"}
    text = 'origin = "http://o"\n[[rooms]]\n' + "".join(
        f"{key} = {value}\n" for key, value in written.items()
    )
    (room,) = read_config(text + toml_text(others)).rooms
    plain = Room(name="p", host="*", total_active_users=1, new_users_per_minute=1)
    assert {key for key in specs(Room) if getattr(room, key) == getattr(plain, key)} == ALONE
    assert {name: getattr(room, name) for name in others} == others
    assert room.queueing_method == "random"
    assert room.additional_routes == (Route("b.example.com", "/"), Route("c.example.com", "/y"))
    assert room.cookie_attributes == CookieAttributes("none", "always")


def test_every_limit_of_the_gateway_can_be_written() -> None:
    high = {name: rule.high or 12_345 for name, rule in specs(Limits).items()}
    text = with_room("[limits]\n" + "".join(f"{name} = {value}\n" for name, value in high.items()))
    assert {name: getattr(read_config(text).limits, name) for name in high} == high


def test_the_rest_of_the_file_arrives(tmp_path: Path) -> None:
    text = (
        'listen = ":80"\ncontrol = "[::1]:81"\ndata = "state"\nalways_use_https = true\ntrusted_proxies = ["10.0.0.0/8", "::1"]\n'
        'trust_forwarded_host = true\norigin = { url = "https://o", host_header = "h", verify = false }\n'
        '[origins]\n"a.example.com" = "http://127.0.0.1:1"\n[log]\nformat = "json"\nlevel = "debug"\naccess = true\n'
        + GOOD.split("\n", 2)[2]
    )
    config = read_config(text, tmp_path / "greenroom.toml")
    assert config.listen == Address("0.0.0.0", 80)
    assert config.control == Address("::1", 81)
    assert config.data == tmp_path / "state"
    assert config.always_use_https
    assert config.trust_forwarded_host
    assert config.trusted_proxies == ("10.0.0.0/8", "::1")
    assert config.origin == Origin("https", "o", 443, "h", verify=False)
    assert config.origins == {"a.example.com": Origin("http", "127.0.0.1", 1)}
    assert config.log == Log(format="json", level="debug", access="json")


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ('trusted_headers = ["X-Forwarded-Prefix", "X-Client-Cert"]', []), ('default_host = "shop.example.com:81"', []), ("trusted_headers = []", []),
        ('trusted_headers = ["X-Forwarded-For"]', ["trusted_headers[0]: must not be X-Forwarded-For"]),
        ('trusted_headers = ["a b"]', ["trusted_headers[0]: must be a header name"]),
        ('trusted_headers = ["X-A", "Host"]', ["trusted_headers[1]: must not be Host"]),
        ('default_host = "http://shop"', ["default_host: must be a host name with an optional port"]),
    ],
)  # fmt: skip
def test_what_trusted_proxies_say_and_where_requests_without_a_host_go_is_checked(
    line: str, wrong: list[str]
) -> None:
    found = problems(
        f'{line}\ncolour = 3\norigin = "http://127.0.0.1:1"\n[[rooms]]\nname = "a"\nhost = "*"\ntotal_active_users = 1\nnew_users_per_minute = 1\n'
    )
    assert len(found) == len(wrong) + 1, "the colour is wrong too"
    assert all(text in said for text, said in zip(wrong, found, strict=False))


def test_everything_wrong_is_said_at_once_in_the_order_of_the_file() -> None:
    text = (
        'listen = "nowhere"\norigin = "ftp://x"\ntrusted_proxies = ["10.0.0.0/8", "nix"]\ncolour = 3\n'
        '[limits]\nhead_bytes = 1\n[log]\nformat = "xml"\n'
        '[[rooms]]\nname = "a b"\nhost = "sh op"\npath = "x"\ntotal_active_users = 0\nnew_users_per_minut = 3\n'
    )
    found = problems(text)
    assert [line.split(":")[0] for line in found] == [
        f"line {n}" for n in (1, 2, 3, 4, 6, 8, 9, 10, 11, 12, 13, 14)
    ]
    assert found[2].startswith("line 3: trusted_proxies[1]: must be an address or a network")
    assert (
        found[6]
        == "line 9: rooms[0].new_users_per_minute: is required: how many visitors may be let in during any 60 seconds"
    )
    assert (
        found[-1]
        == "line 14: rooms[0].new_users_per_minut: unknown field; did you mean new_users_per_minute?"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[[rooms]\n",
            "line 1: file: is not TOML: expected ']]' at the end of an array declaration",
        ),
        ("a = 1\nb = \n", "line 2: file: is not TOML: invalid value"),
        ("a = 1\na = 2", "line 2: file: is not TOML: cannot overwrite a value"),
        ('\n\na = "', "line 3: file: is not TOML: unterminated string"),
    ],
)
def test_broken_toml_is_one_problem_with_its_line(text: str, said: str) -> None:
    assert problems(text) == [said]


@pytest.mark.parametrize("text", ["rooms = 3\n", "rooms = [3]\n", "[rooms]\nname = 1\n"])
def test_rooms_that_are_not_written_as_tables_are_refused(text: str) -> None:
    assert any("rooms" in problem for problem in problems('origin = "http://o"\n' + text))


@pytest.mark.parametrize("text", ["", 'origin = "http://o"\n', "rooms = []\n"])
def test_a_file_may_leave_all_rooms_to_the_api(text: str) -> None:
    assert read_config(text, Path("/etc/greenroom.toml")).rooms == ()


def test_rooms_in_a_file_need_an_origin() -> None:
    assert problems(GOOD.replace('origin = "http://127.0.0.1:3000"', ""))[0].startswith(
        "origin: is required"
    )


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("sqlite:///rooms.db", "sqlite:////etc/greenroom/rooms.db"),
        ("sqlite:////var/rooms.db", "sqlite:////var/rooms.db"),
        (
            "postgresql://greenroom:secret@db/greenroom",
            "postgresql://greenroom:secret@db/greenroom",
        ),
        ("", ""),
    ],
)
def test_a_store_is_found_from_the_directory_of_the_file(written: str, found: str) -> None:
    assert read_config(f'store = "{written}"', Path("/etc/greenroom/greenroom.toml")).store == found


@pytest.mark.parametrize(
    "written", ["rooms.db", "sqlite://", "sqlite:///", "postgresql://host", "mysql://a/b"]
)
def test_a_store_of_another_kind_is_refused(written: str) -> None:
    assert problems(f'store = "{written}"') == [
        "line 1: store: must be sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE"
    ]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('additional_routes = "x"\n', "rooms[0].additional_routes: must be a list"),
        (
            "additional_routes = [4]\ncookie_suffix = 's'\n",
            "rooms[0].additional_routes[0]: must be an object with host and path, not 4",
        ),
        (
            "additional_routes = [{ path = '/' }]\ncookie_suffix = 's'\n",
            "rooms[0].additional_routes[0].host: is required: host name",
        ),
        (
            "additional_routes = [{ host = 'b', path = 7 }]\ncookie_suffix = 's'\n",
            "rooms[0].additional_routes[0].path: must be a string, not 7",
        ),
        ("additional_routes = [{ host = 'b' }]\n", "rooms[0].cookie_suffix: is required"),
        (
            "additional_routes = [{ host = 'shop.example.com' }]\ncookie_suffix = 's'\n",
            "shop.example.com/ already belongs to another route of this room",
        ),
        (
            "enabled_origin_commands = ['stop']\n",
            "rooms[0].enabled_origin_commands: may only contain revoke",
        ),
        (
            "cookie_attributes = { samesite = 'none', secure = 'never' }\n",
            "rooms[0].cookie_attributes.secure: must not be never",
        ),
        ("cookie_attributes = { same_site = 'lax' }\n", "did you mean samesite?"),
        (
            "cookie_attributes = 'lax'\n",
            "rooms[0].cookie_attributes: must be an object with samesite and secure, not",
        ),
        ("queueing_method = 'lifo'\n", "must be one of fifo, random, passthrough, reject"),
        ("id = '../x'\n", "rooms[0].id: must have only letters"),
        ("id = 4\n", "rooms[0].id: must be a string"),
        ("session_duration = 2.5\n", "rooms[0].session_duration: must be a whole number"),
        ("custom_page_file = 'x.html'\ncustom_page_html = 'y'\n", "cannot be used together"),
    ],
)
def test_one_mistake_in_a_room_is_one_problem(lines: str, said: str) -> None:
    assert said in only_problem(with_room(lines))


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('listen = "127.0.0.1:99999"\n', "line 1: listen: must be address:port"),
        ("listen = 3\n", "line 1: listen: must be a string"),
        ('control = "127.0.0.1:8080"\n', "line 1: control: must not be the address for visitors"),
        ('listen = "0.0.0.0:8081"\n', "control: must not be the address for visitors"),
        ("[log]\nacess = true\n", "line 4: log.acess: unknown field; did you mean access?"),
        ("session_duration = 9\n", "line 1: session_duration: belongs below [[rooms]]"),
        (
            "[[zones]]\n",
            "line 3: zones: is for `greenroom apply`; rooms of this file are [[rooms]]",
        ),
        ("log = 3\n", "line 1: log: must be an object, not 3"),
        (
            '[origins]\n"Shop" = "http://a"\n',
            "line 4: origins.Shop: must be a host name in lower case",
        ),
        ('[origins]\n"a.b" = "http://a/path"\n', 'line 4: origins."a.b": must end after the port'),
        (
            '[origins]\n"a.b" = { url = "http://u:p@a" }\n',
            'line 4: origins."a.b".url: must not contain a user name',
        ),
        ('[origins]\n"a.b" = { url = "https://a", ca_file = "/none" }\n', "No such file"),
        ('[tls]\ncert = "/none"\n', "line 3: tls.key: is required"),
    ],
)
def test_one_mistake_outside_the_rooms_is_one_problem(lines: str, said: str) -> None:
    top, rooms = GOOD.split("[[", 1)
    assert said in only_problem(f"{top}{lines}[[{rooms}" if lines.startswith("[") else lines + GOOD)


@pytest.mark.parametrize(
    "origin",
    [
        "http://127.0.0.1:8080",
        "http://localhost:8080",
        "http://[::1]:8080",
        "http://127.0.0.1:8081",
    ],
)
def test_an_origin_that_is_greenroom_itself_is_refused(origin: str) -> None:
    text = GOOD.replace("http://127.0.0.1:3000", origin)
    assert "requests would loop" in only_problem('listen = "0.0.0.0:8080"\n' + text)


def test_an_origin_on_the_same_port_of_another_machine_is_fine() -> None:
    assert read_config(GOOD.replace("127.0.0.1:3000", "10.0.0.7:8080")).origin == Origin(
        "http", "10.0.0.7", 8080
    )


def test_a_file_that_cannot_be_read_is_a_problem_like_any_other(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "none.toml", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(InvalidConfig, match=reason):
            load_config(path)


def test_options_count_more_than_the_file_and_are_named_in_problems(tmp_path: Path) -> None:
    path = tmp_path / "greenroom.toml"
    path.write_text('listen = "127.0.0.1:1"\n' + GOOD)
    assert load_config(path, Overrides({"listen": "127.0.0.1:2"})).listen == Address("127.0.0.1", 2)
    with pytest.raises(InvalidConfig, match=r"^--listen: must be address:port"):
        load_config(path, Overrides({"listen": "x"}))


def test_plain_values_are_checked_like_a_file() -> None:
    raw = {"origin": "http://o", "rooms": [{"name": "main", "host": "*", "total_active_users": 0}]}
    options = {
        "rooms[0].total_active_users": "--total-active-users",
        "rooms[0].new_users_per_minute": "--new-users-per-minute",
    }
    with pytest.raises(InvalidConfig) as caught:
        config_of(raw, options=options)
    assert {problem.pointer for problem in caught.value.problems} == set(options.values())


def test_without_a_home_the_data_directory_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("no home")

    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert "data: is required, because" in only_problem(GOOD)
    monkeypatch.setenv("XDG_STATE_HOME", "relative/is/ignored")
    with pytest.raises(RuntimeError):
        default_data()


def test_the_example_is_good() -> None:
    example = Path(__file__).parents[2] / "examples" / "greenroom.toml"
    assert [room.name for room in load_config(example).rooms] == ["sale", "concerts", "preview"]


@pytest.mark.parametrize(
    "path", ["/a%2fb", "/%2e%2e/d", "/%00", "/%ff", "/a%zz", "/a%3Bb", "/a%252e"]
)
def test_a_path_that_no_request_can_have_is_refused_because_it_protects_nothing(path: str) -> None:
    first, second = problems(
        with_room(
            f'path = "{path}"\ncookie_suffix = "a"\nadditional_routes = [{{ host = "b.example.com", path = "{path}" }}]\n'
        )
    )
    assert "rooms[0].path: covers nothing" in first
    assert "rooms[0].additional_routes[0].path: covers nothing" in second


def test_a_home_of_no_one_and_a_mark_of_the_byte_order_break_nothing(tmp_path: Path) -> None:
    assert "data: starts with the home directory of an unknown user" in only_problem(
        GOOD.replace("[[", 'data = "~nosuchuser/x"\n[[', 1)
    )
    file = tmp_path / "greenroom.toml"
    file.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert [room.name for room in load_config(file).rooms] == ["shop"]


def test_a_setting_of_the_wrong_type_hides_no_other_mistake() -> None:
    found = problems(
        'drain_seconds = "30"\ntrusted_proxies = ["nowhere"]\nstore = "mysql://x"\ngeo_database = "none.mmdb"\n'
        + GOOD
        + 'cookie_attributes = { samesite = "none", secure = "never", color = "red" }\n'
    )
    for pointer in (
        "drain_seconds",
        "trusted_proxies[0]",
        "store",
        "geo_database",
        "cookie_attributes.color",
        "cookie_attributes.secure",
    ):
        assert any(pointer in problem for problem in found), (pointer, found)


def test_a_data_directory_with_a_name_that_no_file_can_have_is_a_reason_and_not_a_traceback() -> (
    None
):
    with pytest.raises(CannotStart, match="cannot use the data directory"):
        DataDir(Path("a\0b"))


def test_a_data_directory_that_is_a_file_is_refused_as_one(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    with pytest.raises(CannotStart, match="/data: it is a file"):
        DataDir(tmp_path / "data")


def test_files_that_are_named_for_the_first_time_are_no_change(tmp_path: Path) -> None:
    file, page = tmp_path / "greenroom.toml", tmp_path / "page.html"
    file.write_text(GOOD + 'custom_page_file = "page.html"\n')
    page.write_text("<p>first")
    source = FileSource(file)
    _, stamp = load_stamped(source)
    assert stamp == source.stamp()
    page.write_text("<p>a second one")
    assert stamp != source.stamp()
    changed = source.stamp()
    assert load_stamped(source)[1] == changed


@pytest.mark.parametrize(
    ("hosts", "host"),
    [
        (["shop.example.com", "shop.example.com"], "shop.example.com"),
        (["a.example", "b.example"], ""),
        (["*"], ""),
        (["*.a.example"], ""),
    ],
)
def test_the_only_host_of_all_rooms_is_that_of_requests_without_one(
    hosts: list[str], host: str
) -> None:
    rooms = "".join(
        f'[[rooms]]\nname = "r{n}"\nhost = "{name}"\npath = "/{n}"\ntotal_active_users = 1\nnew_users_per_minute = 1\ncookie_suffix = "s{n}"\n'
        for n, name in enumerate(hosts)
    )
    text = f'origin = "http://127.0.0.1:1"\n{rooms}'
    assert forwarded_policy(read_config(text)).default_host == host
    assert (
        forwarded_policy(read_config(f'default_host = "x.example"\n{text}')).default_host
        == "x.example"
    )
