"""One dry run, or one example of a wait, in this low-priority process: a JSON request on standard
input, lines of JSON on standard output.
"""

import json
import os
import sys
from collections.abc import Mapping
from random import Random
from typing import Any

from greenroom.errors import InvalidConfig
from greenroom.simulator.chance import Streams
from greenroom.simulator.dry_run import DryRunRequest, dry_run, last_wait

LOW_PRIORITY = 10


def _streams() -> Streams:
    return lambda name: Random(f"1/{name}")  # noqa: S311 - a simulation, not a secret


def _say(news: Mapping[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(news)}\n")
    sys.stdout.flush()


def main() -> None:
    os.nice(LOW_PRIORITY)
    asked = json.load(sys.stdin)
    try:
        if "example" in asked:
            _say(last_wait(asked["example"], _streams)._asdict())
        else:
            _say(
                {
                    "results": dry_run(
                        DryRunRequest(**asked["dry_run"]),
                        _streams,
                        lambda share: _say({"share": share}),
                    )
                }
            )
    except InvalidConfig as error:
        _say({"problem": str(error)})
    except BrokenPipeError:  # the process that asked has ended
        os._exit(1)


if __name__ == "__main__":
    main()
