"""`greenroom account`: accounts and one-time links at the command line, on the store of the data
directory.
"""

from pathlib import Path

from dashboard_rig import PASSWORD, Visitor, dashboard_in
from typer.testing import CliRunner, Result

from greenroom.accounts import people as accounts
from greenroom.cli import app


def run(data: Path, *arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(app, ["account", *arguments, "--data", str(data)], input=typed)


def test_an_account_is_added_listed_changed_and_removed(tmp_path: Path) -> None:
    asked = f"{PASSWORD}\n{PASSWORD}\n"
    assert run(tmp_path, "add", "ada", "--role", "admin", typed=asked).exit_code == 0
    assert (
        run(tmp_path, "add", "bob", "--password-stdin", typed=f"{PASSWORD}\n").output
        == "account bob has been added as viewer\n"
    )
    assert run(tmp_path, "list").output == "ada  admin  all zones\nbob  viewer  all zones\n"
    with dashboard_in(tmp_path) as rig:
        visitor = Visitor(rig)
        assert visitor.sign_in("bob").status_code == 303
        assert (
            run(
                tmp_path, "password", "bob", "--password-stdin", typed="another long password\n"
            ).exit_code
            == 0
        )
        assert visitor.get("/rooms").status_code == 303
        assert Visitor(rig).sign_in("bob", "another long password").status_code == 303
        assert run(tmp_path, "remove", "bob").output == "account bob has been removed\n"
        assert accounts.find(rig.store.read(), "bob") is None
        assert [entry.author.split(" (")[0] for entry in rig.store.audit(9)] == ["command line"] * 4


def test_what_is_wrong_is_said_and_changes_nothing(tmp_path: Path) -> None:
    refused = run(
        tmp_path,
        "add",
        "Ada Lovelace",
        "--role",
        "king",
        "--zone",
        "nowhere",
        "--password-stdin",
        typed="short\n",
    )
    assert refused.exit_code == 1
    for said in (
        "must be at least 12 characters, not 5",
        "there is no zone nowhere",
        "must have only lower-case letters (a to z), digits",
        "must be one of viewer, operator, admin",
    ):
        assert said in refused.output
    run(tmp_path, "add", "ada", "--role", "admin", "--password-stdin", typed=f"{PASSWORD}\n")
    assert "only admin" in run(tmp_path, "remove", "ada").output
    assert (
        "there is an account ada already"
        in run(tmp_path, "add", "ada", "--password-stdin", typed=f"{PASSWORD}\n").output
    )


def test_a_link_signs_in_once(tmp_path: Path) -> None:
    path = run(tmp_path, "link").output.splitlines()[0]
    with dashboard_in(tmp_path) as rig:
        key = path.partition("key=")[2]
        assert Visitor(rig).get(path).status_code == 200
        answers = [
            Visitor(rig).ask("POST", "/sign-in/link", {"key": key}).status_code for _ in range(2)
        ]
        assert answers == [303, 401]


def test_two_step_sign_in_is_listed_and_reset(tmp_path: Path) -> None:
    with dashboard_in(tmp_path) as rig:
        rig.add_account("bob")
        rig.config.change("test", accounts.turn_on_two_step("bob", "GEZDGNBVGY3TQOJQ", ()))
    assert run(tmp_path, "list").output == "bob  viewer  all zones  two-step sign-in\n"
    assert "password alone" in run(tmp_path, "reset-two-step", "bob").output
    assert run(tmp_path, "list").output == "bob  viewer  all zones\n"


def test_a_guess_at_a_password_costs_what_rfc_9106_recommends() -> None:
    costs = accounts._hasher
    assert costs.memory_cost >= 64 * 1024
    assert costs.time_cost >= 3
