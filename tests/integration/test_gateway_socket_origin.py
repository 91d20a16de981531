"""An application that listens on a Unix socket."""

import pytest

from greenroom.gateway.origin.address import Origin, OriginGuard


async def test_requests_and_answers_go_through_and_connections_are_kept(rig, tmp_path) -> None:
    body = b"x" * 500_000
    async with rig.running(file=tmp_path / "a"), rig.visitor() as talk:
        assert (await talk.get("/one")).body == b"hello from /one"
        assert (await talk.get("/two", method="POST", body=body)).status == 200
    assert [(request.target, request.header("Host")) for request in rig.requests] == [
        ("/one", "shop.example"),
        ("/two", "shop.example"),
    ]
    assert rig.requests[1].body == body
    assert rig.origin_connections == 1


async def test_an_application_that_is_not_there_is_a_502_and_is_found_when_it_is(
    rig, tmp_path
) -> None:
    path = tmp_path / "a"
    async with rig.running(file=path):
        path.rename(tmp_path / "away")
        assert (await rig.get()).status == 502
        (tmp_path / "away").rename(path)
        assert (await rig.get()).status == 200


@pytest.mark.parametrize("linked", [False, True])
async def test_a_request_never_goes_to_a_socket_of_greenroom_itself(rig, tmp_path, linked) -> None:
    path = tmp_path / "a"
    own = tmp_path / "own" if linked else path
    async with rig.running(file=path):
        if linked:
            own.symlink_to(path)
        rig.gateway.state.guard = OriginGuard(lambda: [("127.0.0.1", 8080), (str(own), 0)])
        assert (await rig.get()).status == 502
        assert rig.counts.origin_connects_refused == 1
    assert rig.requests == []


def test_the_origin_of_a_zone_is_never_a_file() -> None:
    with pytest.raises(ValueError, match="cannot be a Unix socket"):
        Origin.of("unix:/run/app.sock", of_zone=True)
