"""The same requests through every dialect as through a front end without HTTP: the same decisions,
the same answers.
"""

from pathlib import Path

import pytest
from front_end_stories import STORIES, origin, play_both
from proxy_questions import SPEAKING, Asking, AskingProxy

from greenroom.decision.service import DecisionService
from greenroom.proxies.dialect import DIALECTS

REFUSED_HERE = {"a session that the origin ends"}
"""Stories that another proxy cannot play: it does not read the commands of the origin."""


def test_every_dialect_is_played() -> None:
    assert [*[dialect.name for dialect in DIALECTS], "spoe"] == list(SPEAKING)


@pytest.mark.parametrize("name", SPEAKING)
@pytest.mark.parametrize("story", [story for story in STORIES if story not in REFUSED_HERE])
def test_a_dialect_and_a_front_end_without_http_say_the_same(
    name: str, story: str, tmp_path: Path
) -> None:
    made: list[Asking] = []

    def proxy(decisions: DecisionService) -> AskingProxy:
        made.append(Asking(decisions))
        return AskingProxy(made[0], SPEAKING[name], origin)

    play_both(story, tmp_path, proxy)
    assert made[0].errors == []
    assert len(made[0].store) == 0, "every page was fetched"
