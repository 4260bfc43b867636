"""Provider plugins of Pulumi's engine: programs that have a cloud's credentials while a stack is built.

This checkout has no checksums of them: `bundle --fetch` takes the digests that GitHub publishes, or a spec has them in
artefacts.sha256.
"""

from __future__ import annotations

import platform

from cluster import versions
from cluster.artefacts import Artefact
from cluster.spec import Cloud

_PACKAGES = {
    Cloud.AWS: ("aws", versions.PULUMI_AWS),
    Cloud.AZURE: ("azure-native", versions.PULUMI_AZURE_NATIVE),
    Cloud.GCP: ("gcp", versions.PULUMI_GCP),
}
SYSTEMS = ("linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64")
"""Systems of operators' machines, as GOOS-GOARCH."""
_GOARCH = {"x86_64": "amd64", "aarch64": "arm64"}


def this_system() -> str:
    """Return the system of this machine, in the form of `SYSTEMS`."""
    machine = platform.machine().lower()
    return f"{platform.system().lower()}-{_GOARCH.get(machine, machine)}"


def plugin_of(cloud: Cloud, system: str) -> Artefact | None:
    """Return the archive of the cloud's plugin, named like Pulumi's package; None for a lab."""
    if cloud not in _PACKAGES:
        return None
    name, version = _PACKAGES[cloud]
    repository = f"github.com/pulumi/pulumi-{name}"
    file = f"pulumi-resource-{name}-v{version}-{system}.tar.gz"
    return Artefact(name, version, f"{repository}/releases/download/v{version}/{file}")
