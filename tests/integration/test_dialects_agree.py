"""The same requests through every dialect as through a front end without HTTP: the same decisions, the same answers."""

from pathlib import Path

import pytest
from admission_world import small_room
from front_end_stories import STORIES, Step, check, origin, prepared, told
from plain_front_end import PlainFrontEnd
from proxy_questions import SPEAKING, Asking, AskingProxy
from visitors import Site

from greenroom.decision.observer import Decided
from greenroom.dialects.table import DIALECTS

REFUSED_HERE = {"a session that the origin ends"}
"""Stories that another proxy cannot play: it does not read the commands of the origin."""


def test_every_dialect_is_played() -> None:
    assert [*[dialect.name for dialect in DIALECTS], "spoe"] == list(SPEAKING)


@pytest.mark.parametrize("name", SPEAKING)
@pytest.mark.parametrize("story", [story for story in STORIES if story not in REFUSED_HERE])
def test_a_dialect_and_a_front_end_without_http_say_the_same(name: str, story: str, tmp_path: Path) -> None:
    here, there = (Site(tmp_path / side, small_room(total_active_users=1)) for side in ("here", "there"))
    asking = Asking(there.decisions)
    fronts = PlainFrontEnd(here.decisions, origin), AskingProxy(asking, SPEAKING[name], origin)
    jars: tuple[dict[str, bytes], dict[str, bytes]] = {}, {}
    steps: list[Step] = STORIES[story]
    for number, step in enumerate(steps):
        given = []
        for site, front, jar in zip((here, there), fronts, jars, strict=True):
            given.append(front.request(step.method, step.target, prepared(step, site, jar)))
            check(step, site, jar, given[-1], f"step {number}")
        if step.decided is None:
            assert 400 <= given[1].status < 500
        else:
            assert told(here, given[0], step.decided) == told(there, given[1], step.decided), f"step {number}"
    assert asking.errors == []
    assert len(asking.store) == 0, "every page was fetched"
    assert Decided.FAILED in {step.decided for step in steps} or not here.errors
