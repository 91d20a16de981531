"""The list of data centers changes while a process runs, and what the coordinator knows is told to
operators.
"""

from redis_world import RedisServer

FILE = """
origin = "{origin}"
redis = "{redis}"
global_redis = "{redis}"
datacenter = "fra"
datacenters = [{names}]
[[rooms]]
name = "main"
host = "*"
total_active_users = 100
new_users_per_minute = 100
"""


def test_no_visitor_is_let_in_before_all_on_the_list_are_heard_and_the_list_may_change(
    greenroom, origin, server: RedisServer
) -> None:
    written = greenroom.folder / "greenroom.toml"
    text = FILE.format(origin=origin.url, redis=server.url, names='"fra", "nyc"')
    running = greenroom.config(text)
    greenroom.eventually(
        lambda: running.metric("greenroom_sync_leader") == 1, "the only process is the coordinator"
    )
    greenroom.eventually(
        lambda: running.metric("greenroom_sync_answers_total") >= 3, "it answers its own batches"
    )
    assert (
        running.metric("greenroom_sync_lock_held"),
        running.metric("greenroom_sync_cut_off"),
    ) == (1, 0)
    assert running.metric('greenroom_sync_data_center_silent_seconds{data_center="nyc"}') > 0
    assert running.visitor().get().waiting, "what nyc holds is not known"
    written.write_text(FILE.format(origin=origin.url, redis=server.url, names='"fra"'))
    visitor = running.visitor()
    greenroom.eventually(lambda: not visitor.get().waiting, "nyc is not there any more")
    assert running.status()["config"]["needs_restart"] == []
    assert running.status()["sync"]["silent_s"].keys() == {"fra"}
    written.write_text(FILE.format(origin=origin.url, redis=server.url, names='"fra", "sin"'))
    greenroom.eventually(
        lambda: running.status()["sync"]["silent_s"].keys() == {"fra", "sin"}, "sin is new"
    )
    assert not running.visitor().get().waiting, "a new one holds nobody up"
    written.write_text(FILE.format(origin=origin.url, redis=server.url, names='"sin"'))
    greenroom.eventually(
        lambda: running.status()["config"]["problems"], "this one must be on the list"
    )
    assert not running.visitor().get().waiting, "the last good list goes on"


def test_what_is_wrong_with_a_list_is_said_before_anything_begins(greenroom, origin) -> None:
    text = FILE.format(origin=origin.url, redis="redis://127.0.0.1", names='"nyc", "n y c", "nyc"')
    running = greenroom.config(text.replace("global_redis", "#"), ready=False)
    assert running.end() == 1
    for reason in (
        "datacenters[1]",
        "must include this data center",
        "must not contain duplicates",
        "global_redis",
    ):
        assert reason in running.output


def test_a_global_redis_without_the_list_is_refused(greenroom, origin) -> None:
    """Every data center would take itself for the only one."""
    text = FILE.format(origin=origin.url, redis="redis://127.0.0.1", names="")
    running = greenroom.config(text, ready=False)
    assert running.end() == 1
    assert "datacenters: is required with global_redis" in running.output
