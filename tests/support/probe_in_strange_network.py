"""Run inside a network namespace of its own: sets a route up, probes 192.0.2.1 and prints the
reason as JSON.
"""

import asyncio
import json
import subprocess
import sys

from failing_origins import check, equipment

from greenroom.health.network import OutboundPolicy
from greenroom.health.probes import probe

ROUTES = {
    "unreachable": ["unreachable", "192.0.2.0/24"],
    "prohibit": ["prohibit", "192.0.2.0/24"],
    "none": None,
}


async def reason() -> str:
    tools = equipment()
    tools.guard.policy = OutboundPolicy(ports=(), allowed=("192.0.2.0/24",))
    return (await probe(check("TCP", 80, address="192.0.2.1"), tools)).reason


route = ROUTES[sys.argv[1]]
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
if route:
    subprocess.run(["ip", "route", "add", *route], check=True)
print(json.dumps(asyncio.run(reason())))
