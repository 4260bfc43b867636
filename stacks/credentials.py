"""Checks of a cloud provider's credentials before the first request to the cloud."""

from __future__ import annotations

from collections.abc import Mapping

from cluster.spec import Cloud


def with_project(environment: Mapping[str, str], project: str | None) -> Mapping[str, str]:
    """Return the environment with the Google Cloud project that a stack's configuration names (gcp:project)."""
    return {**environment, "GOOGLE_PROJECT": project} if project else environment


def missing(cloud: Cloud, environment: Mapping[str, str]) -> list[str]:
    """Return what is missing, each with the way to get it; nothing for a lab. Imports only the cloud's own module."""
    if cloud is Cloud.AWS:
        from stacks.aws import credentials as aws

        return aws.missing(environment)
    if cloud is Cloud.AZURE:
        from stacks.azure import credentials as azure

        return azure.missing(environment)
    if cloud is Cloud.GCP:
        from stacks.gcp import credentials as gcp

        return gcp.missing(environment)
    return []
