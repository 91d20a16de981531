"""What recording costs the gateway: the same requests through two greenrooms, one of which keeps
analytics.

    python bench/analytics_gateway.py [--rounds 20] [--seconds 1]

Both run on CPU 0, client and origin on CPU 1 (`awake.py`); all requests have a valid ticket. Rounds
are short and alternate, so that a slow moment of the machine hits both; what is compared is each
round with the one next to it. The processor time of the process is the figure that other programs
disturb least.
"""

import argparse
import contextlib
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from awake import Client, request
from gateway import GREENROOM_CONF, cpu_seconds, running, visit

ORIGIN, PORTS = 9150, {"recording": 9151, "off": 9152}
AIM = 0.02


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=1)
    asked = parser.parse_args()
    greenroom = shutil.which("greenroom") or str(Path(sys.executable).with_name("greenroom"))
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        path = Path(folder)
        client = stack.enter_context(Client(ORIGIN))
        servers = {}
        for name, port in PORTS.items():
            text = GREENROOM_CONF.format(
                origin=ORIGIN, port=port, control=port + 100, data=path / name, limit=100_000
            )
            (path / f"{name}.toml").write_text(
                ("" if name == "recording" else 'analytics = "off"') + text
            )
            servers[name] = stack.enter_context(
                running([greenroom, "serve", "--config", str(path / f"{name}.toml")], port, 0)
            )
        tickets = {name: visit(port)[0] for name, port in PORTS.items()}
        rates: dict[str, list[float]] = {name: [] for name in PORTS}
        spent: dict[str, list[float]] = {name: [] for name in PORTS}
        for number in range(asked.rounds + 1):
            for name in sorted(PORTS, reverse=number % 2 == 1):
                before = cpu_seconds(servers[name].pid)
                load = client.load(PORTS[name], asked.seconds, request("/", tickets[name]))
                if number:  # the first round warms up
                    rates[name].append(load.answered / load.seconds)
                    spent[name].append(
                        (cpu_seconds(servers[name].pid) - before) / load.answered * 1e6
                    )
        print(f"{asked.rounds} rounds of {asked.seconds} s; load {os.getloadavg()[0]:.1f}")
        for name in PORTS:
            rate, cpu_us = statistics.median(rates[name]), statistics.median(spent[name])
            print(f"{name:10} {rate:8.0f} req/s   {cpu_us:6.1f} us of the processor a request")
        for what, found, better in (("throughput", rates, 1), ("processor time", spent, -1)):
            ratios = [
                one / other for one, other in zip(found["recording"], found["off"], strict=True)
            ]
            off = (statistics.median(ratios) - 1) * better
            low, _, high = statistics.quantiles(ratios, n=4)
            aim = (
                f"aim {1 - better * AIM:.2f} or"
                f" {'more' if better > 0 else 'less'}{'' if off >= -AIM else '   MISSED'}"
            )
            print(
                f"{what:15} with / without: median {statistics.median(ratios):.3f}, half of them"
                f" from {low:.3f} to {high:.3f}, {aim}"
            )


if __name__ == "__main__":
    main()
