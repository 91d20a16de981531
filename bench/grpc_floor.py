"""What gRPC would cost in the place of HTTP between Envoy and greenroom (ext_authz): the least
server that can answer each of them.

    python -m venv /tmp/grpc && /tmp/grpc/bin/pip install grpcio grpclib uvloop
    python bench/grpc_floor.py --python /tmp/grpc/bin/python [--rounds 3] [--seconds 2]

Neither library is among greenroom's dependencies, so they are in an environment of their own. Each
server says yes to every question and reads nothing of it (yes_servers.py). The rest is that of
proxies.py: Envoy and the server share CPU 0, client and origin have CPU 1; "asked us" is the
server's CPU time for a request.
"""

import argparse
import contextlib
import os
import sys
import tempfile
from pathlib import Path

from awake import Client
from proxies import COMMANDS, ORIGIN, Bench, configure, free_port, measure
from yes_servers import SERVERS


def over_grpc(text: str) -> str:
    """The example's configuration, asking over gRPC instead of HTTP."""
    begin, end = (
        text.index("                      http_service:"),
        text.index("                  - name: envoy.filters.http.router"),
    )
    asked = (
        "grpc_service: { envoy_grpc: { cluster_name: greenroom }, timeout: 12s }",
        "transport_api_version: V3",
    )
    asks = "".join(f"{' ' * 22}{line}\n" for line in asked)
    options = (
        "      typed_extension_protocol_options: {"
        ' envoy.extensions.upstreams.http.v3.HttpProtocolOptions: { "@type":'
        " type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions,"
        " explicit_http_config: { http2_protocol_options: {} } } }\n"
    )
    cluster = "    - name: greenroom\n"
    return (text[:begin] + asks + text[end:]).replace(cluster, cluster + options, 1)


def floor(bench: Bench, kind: str, python: str) -> None:
    """Envoy that asks this server."""
    proxy, asked, folder = free_port(), free_port(), bench.folder / kind
    folder.mkdir()
    configure("envoy", folder, proxy, asked, 1)
    file = folder / "envoy.yaml"
    if kind != "http":
        file.write_text(over_grpc(file.read_text()))
    server = bench.start(
        [
            sys.executable if kind == "http" else python,
            str(Path(__file__).with_name("yes_servers.py")),
            kind,
            str(asked),
        ],
        asked,
    )
    envoy = bench.start(
        [part.format(folder=folder, file=file) for part in COMMANDS["envoy"]], proxy
    )
    told = f"envoy, floor of ext_authz, {kind}"
    bench.pids[told] = envoy, server
    bench.contestants[told] = (proxy, "", "envoy, plain")


def main() -> None:
    """Starts everything, lets the client go round, prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--python", required=True, help="a Python that has grpcio, grpclib and uvloop"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        os.chdir(name)
        client = stack.enter_context(Client(ORIGIN))
        bench = Bench(Path(name), stack)
        bench.plain("envoy")
        bench.example("envoy", "ext_authz")
        for kind in SERVERS:
            floor(bench, kind, options.python)
        measure(client, bench, options.rounds, options.seconds, "chrome")


if __name__ == "__main__":
    main()
