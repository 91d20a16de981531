"""`greenroom token`: the secret is shown once, what is kept is shown without it, and what is wrong
is said in one line each.
"""

import re

from api_rig import create_token

from greenroom.configuration.store import SqlStore, default_url


def test_a_token_is_shown_once_and_never_kept(greenroom) -> None:
    greenroom.data.mkdir()
    secret = create_token(
        greenroom.data,
        "deploy",
        "--scope",
        "edit",
        "--scope",
        "analytics",
        "--days",
        "2",
        "--email",
        "a@example.com",
    )
    assert re.fullmatch(r"grt_[A-Za-z0-9_-]{43}", secret)
    listed = greenroom.run("token", "list", "--data", str(greenroom.data))
    assert listed.end() == 0
    assert re.fullmatch(
        r"[0-9a-f]{32}  deploy  edit,analytics  everything  since \S+, until \S+\n", listed.output
    )
    kept = b"".join(path.read_bytes() for path in greenroom.data.glob("config.db*"))
    assert secret.encode() not in kept
    store = SqlStore(default_url(greenroom.data))
    log = store.audit(10)
    store.close()
    assert [(entry.action, entry.kind, entry.name) for entry in log] == [
        ("created", "token", "deploy")
    ]
    assert log[0].author.startswith("command line (")
    assert "secret" not in str(log)


def test_what_cannot_be_a_token_is_refused(greenroom) -> None:
    greenroom.data.mkdir()
    create_token(greenroom.data, "deploy")
    wrong = {
        ("deploy",): "there is a token deploy already",
        (
            "other",
            "--scope",
            "everything",
        ): "scopes: must be different ones of read, edit, analytics",
        ("other", "--zone", "example.com"): "there is no zone example.com",
        ("other", "--days", "0"): "--days",
    }
    for arguments, reason in wrong.items():
        refused = greenroom.run("token", "create", *arguments, "--data", str(greenroom.data))
        assert refused.end() != 0
        assert reason in refused.output
    gone = greenroom.run("token", "revoke", "nobody", "--data", str(greenroom.data))
    assert (gone.end(), gone.output) == (1, "greenroom: there is no token nobody\n")
