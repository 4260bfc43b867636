"""Checks of a cloud provider's credentials before the first request to the cloud."""

from __future__ import annotations

from collections.abc import Mapping

from cluster.spec import Cloud
from stacks.aws import credentials as aws
from stacks.azure import credentials as azure
from stacks.gcp import credentials as gcp


def with_project(environment: Mapping[str, str], project: str | None) -> Mapping[str, str]:
    """Return the environment with the Google Cloud project that a stack's configuration names (gcp:project)."""
    return {**environment, "GOOGLE_PROJECT": project} if project else environment


def missing(cloud: Cloud, environment: Mapping[str, str]) -> list[str]:
    """Return what is missing, each with the way to get it; nothing for a lab."""
    if cloud is Cloud.AWS:
        return aws.missing(environment)
    if cloud is Cloud.AZURE:
        return azure.missing(environment)
    if cloud is Cloud.GCP:
        return gcp.missing(environment)
    return []


def login(cloud: Cloud) -> tuple[str, ...]:
    """Return the commands with which a person logs in; none for a lab."""
    commands = {Cloud.AWS: aws.LOGIN, Cloud.AZURE: azure.LOGIN, Cloud.GCP: gcp.LOGIN}
    return commands.get(cloud, ())
