"""The manifests of examples/kubernetes: fields that exist, names that refer to something, times
that leave room to drain.
"""

import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from greenroom.config.source import FileSource

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "kubernetes"
META = {"name": str, "labels?": {"*": str}, "annotations?": {"*": str}}
SELECTOR = {"matchLabels": {"*": str}}
HTTP_GET = {"path": str, "port": (str, int)}
PROBE = {
    "httpGet": HTTP_GET,
    "periodSeconds?": int,
    "timeoutSeconds?": int,
    "failureThreshold?": int,
}
CONTAINER = {
    "name": str,
    "image": str,
    "args": [str],
    "env": [{"name": str, "valueFrom": {"secretKeyRef": {"name": str, "key": str}}}],
    "ports": [{"name": str, "containerPort": int}],
    "startupProbe": PROBE,
    "livenessProbe": PROBE,
    "readinessProbe": PROBE,
    "lifecycle": {"preStop": {"exec": {"command": [str]}}},
    "resources": {"requests": {"*": str}, "limits": {"*": str}},
    "securityContext": {
        "allowPrivilegeEscalation": bool,
        "readOnlyRootFilesystem": bool,
        "capabilities": {"drop": [str]},
    },
    "volumeMounts": [{"name": str, "mountPath": str, "readOnly?": bool}],
}
POD = {
    "automountServiceAccountToken": bool,
    "terminationGracePeriodSeconds": int,
    "topologySpreadConstraints": [
        {"maxSkew": int, "topologyKey": str, "whenUnsatisfiable": str, "labelSelector": SELECTOR}
    ],
    "securityContext": {
        "runAsNonRoot": bool,
        "runAsUser": int,
        "fsGroup": int,
        "seccompProfile": {"type": str},
    },
    "containers": [CONTAINER],
    "volumes": [{"name": str, "configMap?": {"name": str}, "emptyDir?": {"sizeLimit": str}}],
}
DEPLOYMENT = {
    "replicas": int,
    "selector": SELECTOR,
    "strategy": {"type": str, "rollingUpdate": {"maxUnavailable": int, "maxSurge": int}},
    "template": {"metadata": {"labels": {"*": str}}, "spec": POD},
}
PEER = {"namespaceSelector": SELECTOR}
POLICY = {
    "podSelector": SELECTOR,
    "policyTypes": [str],
    "ingress": [{"from": [PEER], "ports": [{"port": (str, int)}]}],
}
TARGET = {"type": str, "averageUtilization": int}
AUTOSCALER = {
    "scaleTargetRef": {"apiVersion": str, "kind": str, "name": str},
    "minReplicas": int,
    "maxReplicas": int,
    "metrics": [{"type": str, "resource": {"name": str, "target": TARGET}}],
    "behavior": {"scaleDown": {"stabilizationWindowSeconds": int}},
}
BACKEND = {"service": {"name": str, "port": {"name": str}}}
INGRESS_PATHS = {"paths": [{"path": str, "pathType": str, "backend": BACKEND}]}
ROUTE_RULE = {
    "matches": [{"path": {"type": str, "value": str}}],
    "backendRefs": [{"name": str, "port": int}],
}
SPECS: dict[tuple[str, str], Any] = {
    ("apps/v1", "Deployment"): DEPLOYMENT,
    ("v1", "Service"): {
        "selector": {"*": str},
        "ports": [{"name": str, "port": int, "targetPort": (str, int)}],
    },
    ("policy/v1", "PodDisruptionBudget"): {"maxUnavailable": int, "selector": SELECTOR},
    ("autoscaling/v2", "HorizontalPodAutoscaler"): AUTOSCALER,
    ("networking.k8s.io/v1", "NetworkPolicy"): POLICY,
    ("networking.k8s.io/v1", "Ingress"): {
        "ingressClassName": str,
        "rules": [{"host": str, "http": INGRESS_PATHS}],
    },
    ("gateway.networking.k8s.io/v1", "Gateway"): {
        "gatewayClassName": str,
        "listeners": [{"name": str, "protocol": str, "port": int, "hostname": str}],
    },
    ("gateway.networking.k8s.io/v1", "HTTPRoute"): {
        "parentRefs": [{"name": str}],
        "hostnames": [str],
        "rules": [ROUTE_RULE],
    },
}
"""The fields that the manifests use, as the reference of Kubernetes 1.29 and of Gateway API 1.0 has
them; `?` may be missing.
"""


def problems(value: Any, wanted: Any, at: str) -> list[str]:
    """What does not fit."""
    if isinstance(wanted, dict):
        if not isinstance(value, dict):
            return [f"{at} is no mapping"]
        if "*" in wanted:
            return [
                one
                for key, item in value.items()
                for one in problems(item, wanted["*"], f"{at}.{key}")
            ]
        known = {key.rstrip("?"): inner for key, inner in wanted.items()}
        missing = [
            f"{at}.{key} is missing" for key in wanted if not key.endswith("?") and key not in value
        ]
        unknown = [f"{at}.{key} is unknown" for key in value if key not in known]
        return (
            missing
            + unknown
            + [
                one
                for key in known
                if key in value
                for one in problems(value[key], known[key], f"{at}.{key}")
            ]
        )
    if isinstance(wanted, list):
        if not isinstance(value, list) or not value:
            return [f"{at} is no list, or empty"]
        return [
            one
            for index, item in enumerate(value)
            for one in problems(item, wanted[0], f"{at}[{index}]")
        ]
    fits = isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))
    return [] if fits else [f"{at} is {value!r}"]


MANIFESTS = [
    one for path in sorted(FOLDER.glob("*.yaml")) for one in yaml.safe_load_all(path.read_text())
]
BY_KIND = {manifest["kind"]: manifest for manifest in MANIFESTS}
CONTAINER_SPEC = BY_KIND["Deployment"]["spec"]["template"]["spec"]["containers"][0]
CONFIG = BY_KIND["ConfigMap"]["data"]["greenroom.toml"]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda manifest: manifest["kind"])
def test_every_field_exists_and_has_its_type(manifest: dict[str, Any]) -> None:
    assert problems(manifest["metadata"], META, "metadata") == []
    if manifest["kind"] == "ConfigMap":
        assert set(manifest) == {"apiVersion", "kind", "metadata", "data"}
    else:
        assert (
            problems(manifest["spec"], SPECS[manifest["apiVersion"], manifest["kind"]], "spec")
            == []
        )


def test_the_check_finds_what_is_wrong() -> None:
    assert problems({"a": 1, "b": True}, {"a": str, "c": int}, "x") == [
        "x.c is missing",
        "x.b is unknown",
        "x.a is 1",
    ]
    assert problems({"replicas": True}, {"replicas": int}, "x") == ["x.replicas is True"]


@pytest.mark.parametrize("version", ["1.27", "1.37"])
def test_the_schemas_of_kubernetes_itself_take_the_manifests(version: str) -> None:
    own = [
        one for one in MANIFESTS if "gateway.networking" not in one["apiVersion"]
    ]  # which is an extension, without a schema there
    assert len(own) > 5
    for one in own:
        assert kubernetes_validate.validate(one, version, strict=True) == version
    deployment = next(one for one in own if one["kind"] == "Deployment")
    for wrong in ({"replica": 2}, {"replicas": "two"}):
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(
                {**deployment, "spec": {**deployment["spec"], **wrong}}, version, strict=True
            )


def test_every_name_refers_to_something() -> None:
    labels = BY_KIND["Deployment"]["spec"]["template"]["metadata"]["labels"]
    ports = {port["name"]: port["containerPort"] for port in CONTAINER_SPEC["ports"]}
    for kind in ("Deployment", "PodDisruptionBudget"):
        assert BY_KIND[kind]["spec"]["selector"]["matchLabels"] == labels
    assert (
        BY_KIND["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"]
        == BY_KIND["Service"]["spec"]["selector"]
        == labels
    )
    assert {port["targetPort"] for port in BY_KIND["Service"]["spec"]["ports"]} == {"visitors"}
    assert {
        port["port"]
        for rule in BY_KIND["NetworkPolicy"]["spec"]["ingress"]
        for port in rule["ports"]
    } == set(ports)
    assert {
        CONTAINER_SPEC[probe]["httpGet"]["port"]
        for probe in ("startupProbe", "livenessProbe", "readinessProbe")
    } == {"control"}
    assert (
        BY_KIND["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]["name"]
        == BY_KIND["Deployment"]["metadata"]["name"]
    )
    service = BY_KIND["Service"]
    backend = BY_KIND["Ingress"]["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]
    assert (backend["name"], backend["port"]["name"]) == (
        service["metadata"]["name"],
        service["spec"]["ports"][0]["name"],
    )
    route = BY_KIND["HTTPRoute"]["spec"]
    assert route["rules"][0]["backendRefs"] == [
        {"name": service["metadata"]["name"], "port": service["spec"]["ports"][0]["port"]}
    ]
    assert route["parentRefs"][0]["name"] == BY_KIND["Gateway"]["metadata"]["name"]
    volumes = {
        volume["name"] for volume in BY_KIND["Deployment"]["spec"]["template"]["spec"]["volumes"]
    }
    assert {mount["name"] for mount in CONTAINER_SPEC["volumeMounts"]} == volumes


def test_the_configuration_is_valid_and_fits_the_pod(tmp_path: Path) -> None:
    path = tmp_path / "greenroom.toml"
    path.write_text(CONFIG)
    config = FileSource(path).load()
    ports = {port["name"]: port["containerPort"] for port in CONTAINER_SPEC["ports"]}
    assert {"visitors": config.listen.port, "control": config.control.port} == ports
    assert str(config.data) in {
        mount["mountPath"] for mount in CONTAINER_SPEC["volumeMounts"] if not mount.get("readOnly")
    }
    command, grace_s = (
        CONTAINER_SPEC["lifecycle"]["preStop"]["exec"]["command"],
        BY_KIND["Deployment"]["spec"]["template"]["spec"],
    )
    assert int(command[1]) + config.drain_seconds + 15 <= grace_s["terminationGracePeriodSeconds"]
    assert (
        tomllib.loads(CONFIG)["rooms"][0]["host"] == BY_KIND["Ingress"]["spec"]["rules"][0]["host"]
    )
