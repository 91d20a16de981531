"""Probe agents as processes of their own, small ones: the program is loaded once, and each agent is
a fork of it.

Every agent has its own connections, names, clock and end; only the look-up of names is replaced, so
that the checked host has another address in each region, as behind a geographic DNS. Run as a
program this is the parent: it forks an agent for each line of its standard input, prints `name
pid`, and ends all of them when its input ends.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from typing import Any

from ok_page import OkPage


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


@dataclass
class RegionalOrigin:
    """One origin with an address of its own for each region, all on one port; it can die for some
    of them.
    """

    regions: Sequence[str]
    port: int = 0
    _servers: dict[str, ThreadingHTTPServer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        while not self._servers:
            try:
                for region in self.regions:
                    self.up(region)
            except OSError:  # the port that was free at one address is taken at another
                self.close()
                self.port = 0

    def address(self, region: str) -> str:
        return f"127.0.1.{1 + self.regions.index(region)}"

    def up(self, *regions: str) -> None:
        for region in regions:
            server = ThreadingHTTPServer((self.address(region), self.port), OkPage)
            self.port = server.server_port
            self._servers[region] = server
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()

    def down(self, *regions: str) -> None:
        """From now on connections from there are refused."""
        for region in regions:
            server = self._servers.pop(region)
            server.shutdown()
            server.server_close()

    def close(self) -> None:
        self.down(*list(self._servers))


class Road:
    """The way of some agents to greenroom: a TCP relay that can be cut, which ends every connection
    and refuses new ones.
    """

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._loop = asyncio.new_event_loop()
        self._open: set[asyncio.StreamWriter] = set()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.port = 0
        self.open()

    def open(self) -> None:
        self._server = self._call(asyncio.start_server(self._connected, "127.0.0.1", self.port))
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        async def close() -> None:
            self._server.close()
            for writer in list(self._open):
                writer.transport.abort()

        self._call(close())

    def close(self) -> None:
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _call(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(*self._target)
        ends = {writer, far_writer}
        self._open |= ends
        await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer))
        self._open -= ends

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65_536):
                sink.write(data)
                await sink.drain()
        except OSError:
            pass
        finally:
            sink.transport.abort()


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
