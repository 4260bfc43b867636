"""What a cloud's provider finds of credentials, before anything asks the cloud."""

from __future__ import annotations

from collections.abc import Mapping

from cluster.spec import Cloud


def with_project(environment: Mapping[str, str], project: str | None) -> Mapping[str, str]:
    """The environment, with the project that a stack's configuration names for Google Cloud (gcp:project)."""
    return {**environment, "GOOGLE_PROJECT": project} if project else environment


def missing(cloud: Cloud, environment: Mapping[str, str]) -> list[str]:
    """What is missing, each with the way to get it; nothing for a lab. Only the cloud's own module is imported."""
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
