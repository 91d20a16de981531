"""charts/greenroom, rendered by Helm: fields that exist, names that refer to something, times that
leave room to drain.
"""

import functools
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from greenroom.config_file.source import FileSource

CHART = Path(__file__).resolve().parents[2] / "charts" / "greenroom"
HELM = Path(sys.executable).with_name("helm")
EVERYTHING = {
    "imagePullSecrets": [{"name": "registry"}],
    "storeSecret": "greenroom-store",
    "analyticsSecret": "greenroom-analytics",
    "service": {"annotations": {"example.com/team": "shop"}},
    "ingress": {"enabled": True, "tls": [{"secretName": "shop", "hosts": ["shop.example.com"]}]},
    "httpRoute": {"enabled": True, "parentRefs": [{"name": "shop"}]},
    "autoscaling": {"enabled": True},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "podAnnotations": {"example.com/team": "shop"},
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "shop", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
}
EXTENSIONS = {
    "HTTPRoute": {"parentRefs", "hostnames", "rules"},
    "ServiceMonitor": {"selector", "endpoints"},
}
"""Kinds without a schema in Kubernetes itself, with the fields that we use of Gateway API 1.0 and
the Prometheus Operator.
"""


def helm(*arguments: str, values: dict[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
    told = json.dumps(values or {})
    command = [str(HELM), *arguments, "--values", "-"]
    return subprocess.run(command, input=told, text=True, capture_output=True)


@functools.cache
def _rendered(values: str) -> dict[str, Any]:
    done = helm("template", "shop", str(CHART), values=json.loads(values))
    assert done.returncode == 0, done.stderr
    manifests = [one for one in yaml.safe_load_all(done.stdout) if one]
    return {one["kind"]: one for one in manifests}


def rendered(values: dict[str, Any]) -> dict[str, Any]:
    """The manifests by their kind."""
    return _rendered(json.dumps(values))


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["as it comes", "everything"])
@pytest.mark.parametrize("version", ["1.27", "1.37"])
def test_the_schemas_of_kubernetes_take_what_is_rendered(
    values: dict[str, Any], version: str
) -> None:
    import kubernetes_validate  # a second, which every worker would wait for

    manifests = rendered(values)
    assert len(manifests) == (9 if values else 5)
    for kind, one in manifests.items():
        if kind in EXTENSIONS:
            assert set(one["spec"]) == EXTENSIONS[kind]
        else:
            assert kubernetes_validate.validate(one, version, strict=True) == version
    deployment = manifests["Deployment"]
    for wrong in ({"replica": 2}, {"replicas": "two"}):
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(
                {**deployment, "spec": {**deployment["spec"], **wrong}}, version, strict=True
            )


def test_helm_itself_finds_nothing_to_say() -> None:
    done = helm("lint", "--strict", str(CHART), values=EVERYTHING)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"replica": 3}, "replica"),
        ({"replicas": "3"}, "replicas"),
        ({"redisSecret": ""}, "redisSecret"),
        ({"httpRoute": {"enabled": True}}, "httpRoute.parentRefs"),
        ({"ingress": {"enabled": True, "hosts": [""]}}, "ingress.hosts.0"),
    ],
)
def test_a_wrong_value_is_named(values: dict[str, Any], named: str) -> None:
    done = helm("template", "shop", str(CHART), values=values)
    assert done.returncode != 0
    assert named in done.stderr


def test_every_name_refers_to_something() -> None:
    by_kind = rendered(EVERYTHING)
    pod = by_kind["Deployment"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    labels = pod["metadata"]["labels"]
    ports = {port["name"] for port in container["ports"]}
    for kind in ("Deployment", "PodDisruptionBudget", "ServiceMonitor"):
        assert by_kind[kind]["spec"]["selector"]["matchLabels"] == labels, kind
    service = by_kind["Service"]
    assert by_kind["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == labels
    assert service["spec"]["selector"] == labels
    assert {port["targetPort"] for port in service["spec"]["ports"]} == ports
    rules = by_kind["NetworkPolicy"]["spec"]["ingress"]
    assert {port["port"] for rule in rules for port in rule["ports"]} == ports
    probes = ("startupProbe", "livenessProbe", "readinessProbe")
    assert {container[probe]["httpGet"]["port"] for probe in probes} == {"control"}
    scaled = by_kind["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]["name"]
    assert scaled == by_kind["Deployment"]["metadata"]["name"]
    backend = by_kind["Ingress"]["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]
    visitors, control = service["spec"]["ports"]
    assert backend == {"name": service["metadata"]["name"], "port": {"name": visitors["name"]}}
    (route,) = by_kind["HTTPRoute"]["spec"]["rules"]
    assert route["backendRefs"] == [{"name": service["metadata"]["name"], "port": visitors["port"]}]
    assert by_kind["ServiceMonitor"]["spec"]["endpoints"][0]["port"] == control["name"]
    volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    secrets = {one["name"]: one["valueFrom"]["secretKeyRef"]["name"] for one in container["env"]}
    assert secrets == {
        "GREENROOM_REDIS": "greenroom-redis",
        "GREENROOM_STORE": "greenroom-store",
        "GREENROOM_ANALYTICS": "greenroom-analytics",
    }


@pytest.mark.parametrize("drain_s", [30, 300])
def test_the_configuration_is_valid_and_fits_the_pod(tmp_path: Path, drain_s: int) -> None:
    by_kind = rendered({"drainSeconds": drain_s})
    path = tmp_path / "greenroom.toml"
    path.write_text(by_kind["ConfigMap"]["data"]["greenroom.toml"])
    config = FileSource(path).load()
    assert config.drain_seconds == drain_s
    pod = by_kind["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    told = dict(zip(*[iter(container["args"][1:])] * 2, strict=True))
    assert told["--listen"] == f"0.0.0.0:{ports['visitors']}"
    assert told["--control"] == f"0.0.0.0:{ports['control']}"
    writable = {one["mountPath"] for one in container["volumeMounts"] if not one.get("readOnly")}
    assert told["--data"] in writable
    pause_s = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pause_s + config.drain_seconds + 15 <= pod["terminationGracePeriodSeconds"]


def test_a_changed_configuration_replaces_the_pods() -> None:
    def checksum(values: dict[str, Any]) -> str:
        template = rendered(values)["Deployment"]["spec"]["template"]
        return str(template["metadata"]["annotations"]["checksum/config"])

    assert len({checksum(one) for one in ({}, {"config": "x"}, {"drainSeconds": 9})}) == 3
    assert checksum({}) == checksum({"replicas": 5})


def test_the_chart_has_the_version_of_the_program() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = (CHART.parents[1] / "pyproject.toml").read_text()
    found = re.search(r'^version = "([^"]+)"', project, re.MULTILINE)
    assert found
    assert chart["version"] == chart["appVersion"] == found[1]
