"""This host's region, zone, machine type and provider id from its cloud's metadata service, in Kubernetes' terms.

Sources, by page title: "Instance identity documents for Amazon EC2 instances"; "View and query VM metadata" and
"Predefined metadata keys" of Compute Engine; "Azure Instance Metadata Service for virtual machines". Provider ids have
the form of the clouds' own controller managers, by which autoscalers find machines.
"""

from __future__ import annotations

import http.client
import json
from typing import Any, NamedTuple

METADATA = "169.254.169.254"


class Facts(NamedTuple):
    provider_id: str
    region: str
    zone: str
    machine: str

    def labels(self) -> dict[str, str]:
        """Return labels that a kubelet may give itself (kubernetes.io, "Well-Known Labels")."""
        return {
            "node.kubernetes.io/instance-type": self.machine,
            "topology.kubernetes.io/region": self.region,
            "topology.kubernetes.io/zone": self.zone,
        }


def gather(cloud: str, metadata: str = METADATA) -> Facts | None:
    """Return the facts; None if the cloud has no metadata service. OSError if it does not answer."""
    ask = {"aws": _aws, "azure": _azure, "gcp": _gcp}.get(cloud)
    return ask(metadata) if ask else None


def _aws(metadata: str) -> Facts:
    token = _get(metadata, "/latest/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "60"}, "PUT")
    document = json.loads(
        _get(metadata, "/latest/dynamic/instance-identity/document", {"X-aws-ec2-metadata-token": token})
    )
    zone, instance = document["availabilityZone"], document["instanceId"]
    return Facts(f"aws:///{zone}/{instance}", document["region"], zone, document["instanceType"])


def _gcp(metadata: str) -> Facts:
    def value(key: str) -> str:
        return _get(metadata, "/computeMetadata/v1/" + key, {"Metadata-Flavor": "Google"}).rpartition("/")[2]

    zone, name = value("instance/zone"), value("instance/name")
    provider_id = f"gce://{value('project/project-id')}/{zone}/{name}"
    return Facts(provider_id, zone.rpartition("-")[0], zone, value("instance/machine-type"))


def _azure(metadata: str) -> Facts:
    compute: dict[str, Any] = json.loads(
        _get(metadata, "/metadata/instance/compute?api-version=2021-02-01", {"Metadata": "true"})
    )
    # Azure's controller manager takes a machine without a zone as in fault domain 0 of its region.
    zone = f"{compute['location']}-{compute['zone']}" if compute["zone"] else "0"
    return Facts("azure://" + compute["resourceId"], compute["location"], zone, compute["vmSize"])


def _get(metadata: str, path: str, headers: dict[str, str], method: str = "GET") -> str:
    connection = http.client.HTTPConnection(metadata, timeout=5)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        if answer.status != 200:
            raise OSError(f"metadata at {metadata}{path}: HTTP {answer.status} {answer.reason}")
        return text
    except http.client.HTTPException as error:
        raise OSError(f"metadata at {metadata}{path}: {error!r}") from None
    finally:
        connection.close()
