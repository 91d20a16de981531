"""Types for a client's program, made by GraphQL Code Generator from npm: the commands of the guide,
word by word, and a program that uses them.

It fetches some hundred packages from npm, so it is a campaign.
"""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from api_rig import create_token

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "query-analytics.md"
QUERY = """query PerHour($zone: string!, $since: Time!, $rooms: [string!]) { viewer { zones(filter: {zoneTag: $zone}) { zoneTag
  perHour: waitingRoomAnalyticsAdaptiveGroups(limit: 24, filter: {datetime_geq: $since, waitingRoomId_in: $rooms}, orderBy: [datetimeHour_ASC])
    { count max { totalActiveUsers } percentile { totalTimeWaitedP95 } dimensions { datetimeHour waitingRoomId } }
  checks: healthCheckEventsAdaptiveGroups(limit: 10, filter: {datetime_geq: $since}, orderBy: [count_DESC])
    { count avg { rttMs } dimensions { region healthStatus } } } } }
"""
PROGRAM = """import type { PerHourQuery, PerHourQueryVariables } from "./types";
const variables: PerHourQueryVariables = { zone: "z", since: "2030-01-01T00:00:00Z" };
export function longest(answer: PerHourQuery): number {
  const zone = answer.viewer.zones[0];
  const waits: number[] = zone.perHour.map((row) => row.percentile.totalTimeWaitedP95);
  const texts: string[] = zone.checks.map((row) => `${row.dimensions.region}: ${row.count.toFixed(0)} of ${variables.zone}`);
  return Math.max(texts.length, ...waits);
}
"""
WRONG = PROGRAM.replace("totalTimeWaitedP95", "totalTimeWaitedP42")


@pytest.mark.campaign
def test_the_guide_makes_types_that_a_program_compiles_with(
    greenroom: Any, origin: Any, tmp_path: Path
) -> None:
    running = greenroom.room(origin.url)
    token = create_token(greenroom.data, "generator", "--scope", "analytics")
    (commands,) = (
        block
        for block in re.findall(r"^```\n(.*?)^```", GUIDE.read_text(), re.M | re.S)
        if "graphql-codegen" in block
    )
    commands = commands.replace("127.0.0.1:8081", f"{running.control[0]}:{running.control[1]}")
    (tmp_path / "query.graphql").write_text(QUERY)
    env = {
        **os.environ,
        "GREENROOM_TOKEN": token,
        "npm_config_ignore_scripts": "true",
        "npm_config_audit": "false",
        "CI": "true",
    }

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=900
        )

    done = run("bash", "-ec", commands)
    assert done.returncode == 0, done.stdout + done.stderr
    for text, fits in ((PROGRAM, True), (WRONG, False)):
        (tmp_path / "program.ts").write_text(text)
        checked = run("npx", "tsc", "--noEmit", "--strict", "--skipLibCheck", "program.ts")
        assert (checked.returncode == 0) is fits, checked.stdout
        assert fits or "totalTimeWaitedP42" in checked.stdout
