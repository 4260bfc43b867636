"""Machine types, regions, zones and limits of the clouds, as data with sources and dates.

One YAML file a cloud beside this one; each is read when something first asks for its cloud. To add an
entry, add it there with its source. What the catalogue lacks, `--allow-unknown` lets through.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from cluster.catalogue.model import Catalogue, Machine
from cluster.document import parse
from cluster.spec import Cloud

__all__ = ["CLOUDS", "Catalogue", "Machine", "file_of", "load", "of"]

CLOUDS = (Cloud.AZURE, Cloud.AWS, Cloud.GCP)
"""Clouds that have a catalogue; a lab has whatever its machine has."""


def file_of(cloud: Cloud) -> Path:
    return Path(__file__).parent / f"{cloud}.yaml"


@cache
def of(cloud: Cloud) -> Catalogue:
    """The catalogue of one of `CLOUDS`."""
    return load(file_of(cloud).read_text(encoding="utf-8"), file_of(cloud).name)


def load(text: str, file: str) -> Catalogue:
    """The catalogue in a text. ValueError for anything that isn't exactly as `cluster.catalogue.model` says."""
    document = parse(text, file)
    if document.problems:
        raise ValueError("\n".join(map(str, document.problems)))
    return Catalogue.model_validate(document.data)
