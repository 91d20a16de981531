import asyncio
import signal
import ssl
from collections.abc import Callable, Sequence
from functools import partial

from greenroom.health.agent import ProbeAgent
from greenroom.health.agent_link import AgentLink
from greenroom.health.network import probe_policy, threaded_resolver
from greenroom.health.probes import Equipment, probe
from greenroom.health.tls import TlsContexts
from greenroom.outbound import Guard
from greenroom.runtime.clock import MonotonicClock


def run_agent(
    join: Sequence[str],
    token: str,
    region: str,
    name: str,
    ca_file: str,
    private: bool,
    say: Callable[[str], None],
) -> None:
    """Until SIGTERM or SIGINT. Raises ReportFailed when greenroom refuses this agent, OSError when
    `ca_file` cannot be read.
    """
    tls = ssl.create_default_context(cafile=ca_file or None)
    asyncio.run(_run(AgentLink(join, token, name, tls), region, name, private, say))


async def _run(
    link: AgentLink, region: str, name: str, private: bool, say: Callable[[str], None]
) -> None:
    equipment = Equipment(Guard(probe_policy(private=private), threaded_resolver()), TlsContexts())
    agent = ProbeAgent(
        name, region, link.send, partial(probe, equipment=equipment), MonotonicClock().now_ms
    )
    working = asyncio.create_task(agent.run())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, working.cancel)
    say(f"agent {name} in {region}")
    try:
        await working
    except asyncio.CancelledError:
        say("stopped")
    finally:
        await link.goodbye()
