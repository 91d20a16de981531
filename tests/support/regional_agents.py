"""Probe agents as processes of their own, small ones: the program is loaded once, and each agent is
a fork of it.

Every agent has its own connections, names, clock and end; only the look-up of names is replaced, so
that the checked host has another address in each region, as behind a geographic DNS. Run as a
program this is the parent: it forks an agent for each line of its standard input, prints `name
pid`, and ends all of them when its input ends.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence


class AgentProcesses:
    """The agents of one test, by name."""

    def __init__(self, token: str) -> None:
        self.pids: dict[str, int] = {}
        self._parent = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "GREENROOM_PROBE_TOKEN": token},
        )

    def start(self, name: str, region: str, join: str, address: str) -> None:
        """An agent that finds the checked host at this address."""
        assert self._parent.stdin
        assert self._parent.stdout
        self._parent.stdin.write(json.dumps([name, region, join, address]) + "\n")
        self._parent.stdin.flush()
        line = self._parent.stdout.readline()
        assert line, f"the parent of the agents has ended with {self._parent.wait()}"
        said, pid = line.split()
        assert said == name
        self.pids[name] = int(pid)

    def kill(self, name: str) -> None:
        """kill -9."""
        os.kill(self.pids.pop(name), signal.SIGKILL)

    def close(self) -> None:
        """Ends all of them without a goodbye."""
        assert self._parent.stdin
        self._parent.stdin.close()
        self._parent.wait(30)


def _agent(name: str, region: str, join: str, address: str) -> None:
    from greenroom.runtime import probe_agent

    async def resolve(_host: str, _port: int) -> Sequence[str]:
        return [address]

    probe_agent.threaded_resolver = lambda: resolve
    probe_agent.run_agent(
        [join], os.environ["GREENROOM_PROBE_TOKEN"], region, name, "", True, lambda _text: None
    )


def main() -> None:
    import greenroom.runtime.probe_agent  # loaded before the first fork

    assert greenroom.runtime.probe_agent
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    children = []
    for line in sys.stdin:
        name, region, join, address = json.loads(line)
        pid = os.fork()
        if not pid:
            os.dup2(os.open(os.devnull, os.O_RDWR), 0)
            os.dup2(2, 1)  # logs do not go where names and numbers are read
            try:
                _agent(name, region, join, address)
            finally:
                os._exit(0)
        children.append(pid)
        print(name, pid, flush=True)
    for pid in children:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


if __name__ == "__main__":
    main()
