"""Machine types, regions, zones and limits of clouds, as data with sources and dates.

There is one YAML file per cloud in this folder, which is read when its cloud is first needed. To add an
entry, add it there with its source. `--allow-unknown` accepts what the catalogue lacks.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from cluster.catalogue.model import Catalogue, Machine
from cluster.document import parse
from cluster.spec import Cloud

__all__ = ["CLOUDS", "Catalogue", "Machine", "file_of", "load", "of"]

CLOUDS = (Cloud.AZURE, Cloud.AWS, Cloud.GCP)
"""Clouds with a catalogue. A lab has the resources of its machine."""


def file_of(cloud: Cloud) -> Path:
    return Path(__file__).parent / f"{cloud}.yaml"


@cache
def of(cloud: Cloud) -> Catalogue:
    """Return the catalogue of one of `CLOUDS`."""
    return load(file_of(cloud).read_text(encoding="utf-8"), file_of(cloud).name)


def load(text: str, file: str) -> Catalogue:
    """Parse a catalogue. Raises ValueError for anything that doesn't fit `cluster.catalogue.model`."""
    document = parse(text, file)
    if document.problems:
        raise ValueError("\n".join(map(str, document.problems)))
    return Catalogue.model_validate(document.data)
