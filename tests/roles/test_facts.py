"""Facts about a host from its cloud's metadata."""

from __future__ import annotations

import http.server
import json
from contextlib import ExitStack

import pytest

from tests.roles.serving import serving

AWS = {
    "/latest/api/token": ("PUT", {"X-aws-ec2-metadata-token-ttl-seconds": "60"}, "session"),
    "/latest/dynamic/instance-identity/document": (
        "GET",
        {"X-aws-ec2-metadata-token": "session"},
        json.dumps(
            {"availabilityZone": "us-east-1a", "instanceId": "i-1", "region": "us-east-1", "instanceType": "c5"}
        ),
    ),
}
FLAVOR = {"Metadata-Flavor": "Google"}
GCP = {
    "/computeMetadata/v1/instance/zone": ("GET", FLAVOR, "projects/123/zones/us-central1-a"),
    "/computeMetadata/v1/instance/name": ("GET", FLAVOR, "cpu-x7"),
    "/computeMetadata/v1/instance/machine-type": ("GET", FLAVOR, "projects/123/machineTypes/n2-standard-8"),
    "/computeMetadata/v1/project/project-id": ("GET", FLAVOR, "a-project"),
}
VMSS = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/cpu/virtualMachines/0"


def azure(zone):
    content = {"location": "eastus2", "zone": zone, "resourceId": VMSS, "vmSize": "Standard_D8s_v5"}
    path = "/metadata/instance/compute?api-version=2021-02-01"
    return {path: ("GET", {"Metadata": "true"}, json.dumps(content))}


@pytest.fixture
def metadata():
    """Provide a function that starts a metadata service with the documented answers, and returns its address."""
    with ExitStack() as stops:

        def served(pages):
            class Handler(http.server.BaseHTTPRequestHandler):
                def answer(self):
                    method, headers, body = pages.get(self.path, ("", {}, ""))
                    is_right = method == self.command and all(self.headers.get(key) == headers[key] for key in headers)
                    self.send_response(200 if is_right else 404)
                    self.end_headers()
                    self.wfile.write(body.encode() if is_right else b"")

                do_GET = do_PUT = answer

                def log_message(self, *_):
                    pass

            return stops.enter_context(serving(Handler))

        yield served


@pytest.mark.parametrize(
    ("cloud", "pages", "facts"),
    [
        ("aws", AWS, ("aws:///us-east-1a/i-1", "us-east-1", "us-east-1a", "c5")),
        ("gcp", GCP, ("gce://a-project/us-central1-a/cpu-x7", "us-central1", "us-central1-a", "n2-standard-8")),
        ("azure", azure("2"), ("azure://" + VMSS, "eastus2", "eastus2-2", "Standard_D8s_v5")),
        ("azure", azure(""), ("azure://" + VMSS, "eastus2", "0", "Standard_D8s_v5")),
    ],
)
def test_each_clouds_metadata_is_read_in_kubernetes_terms(host, metadata, cloud, pages, facts):
    assert tuple(host("facts").gather(cloud, metadata(pages))) == facts


def test_the_lab_has_no_metadata_and_a_missing_answer_is_reported_with_its_path(host, metadata):
    facts = host("facts")
    assert facts.gather("lab") is None
    with pytest.raises(OSError, match="instance-identity/document: HTTP 404"):
        facts.gather("aws", metadata({"/latest/api/token": AWS["/latest/api/token"]}))
    with pytest.raises(OSError, match="refused"):
        facts.gather("gcp", "127.0.0.1:1")
