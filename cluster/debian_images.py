"""What Debian's own images for clouds contain, from debian_images.yaml. They are the default of every stack.

`python -m tools.debian_images` writes the file from the recipes that build the images. Custom images start from these too.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from cluster.document import parse
from cluster.provisioning import Release
from cluster.spec import Cloud

_FILE = Path(__file__).with_name("debian_images.yaml")
CLOUDS = (Cloud.AWS, Cloud.AZURE, Cloud.GCP)


@cache
def packages(cloud: Cloud, release: Release) -> frozenset[str]:
    """Return the names of all packages of an image. Raises KeyError for the lab, which makes its own."""
    lists = parse(_FILE.read_text(encoding="utf-8"), _FILE.name).data["releases"][release]
    return frozenset(f"{lists['everywhere']} {lists[cloud]}".split())
