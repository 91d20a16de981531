"""A data center dies, and an operator says so to another process: its units are on their way back,
and it may come back itself.
"""

from api_rig import Api, create_token
from redis_world import RedisServer

from greenroom.model.zone import ACCOUNT_ID

FILE = """
origin = "{origin}"
redis = "{redis}"
global_redis = "{redis}"
datacenter = "{name}"
datacenters = ["fra", "nyc"]
datacenter_fence_seconds = 600
[[rooms]]
name = "main"
host = "*"
total_active_users = 100
new_users_per_minute = 100
"""


def test_the_units_of_a_dead_data_center_come_back_by_an_operators_word(
    greenroom, origin, server: RedisServer
) -> None:
    def started(name: str):
        file = greenroom.folder / f"{name}.toml"
        file.write_text(FILE.format(origin=origin.url, redis=server.url, name=name))
        return greenroom.serve("--config", str(file), "--data", str(greenroom.folder / name))

    fra = started("fra")
    greenroom.eventually(lambda: fra.metric("greenroom_sync_leader") == 1, "fra is the coordinator")
    nyc = started("nyc")
    visitors = [nyc.visitor() for _ in range(3)]
    for visitor in visitors:
        greenroom.eventually(lambda one=visitor: not one.get().waiting, "there is room")
    nyc.kill()

    def lost() -> dict:
        return fra.status()["sync"]["lost"].get("nyc", {"held": 0, "returning": 0})

    greenroom.eventually(lambda: lost()["held"] >= 3, "nyc is silent")
    held = lost()["held"]
    api = Api(fra.control, create_token(greenroom.folder / "fra", "rig", "--scope", "edit"))
    path = f"/accounts/{ACCOUNT_ID}/data_centers"
    listed = api.ask("GET", path).result
    assert {one["name"]: one["units_held"] for one in listed} == {"fra": None, "nyc": held}
    refused = api.ask("POST", f"{path}/fra/give_up")
    assert (refused.status, "which runs" in refused.body["errors"][0]["message"]) == (400, True)
    assert api.ask("POST", f"{path}/sin/give_up").status == 404
    assert api.ask("POST", f"{path}/nyc/give_up").result["units_held"] == held
    greenroom.eventually(lambda: lost()["returning"] == held, "the coordinator has heard it")
    assert 60 <= lost()["free_s"] <= 430
    again = started("nyc")
    greenroom.eventually(lambda: not again.visitor().get().waiting, "it takes part again")
    greenroom.eventually(lambda: "nyc" not in fra.status()["sync"]["lost"], "it is heard")
