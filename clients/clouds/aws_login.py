"""A session of boto3 for AWS, with limits for every request.

boto3 finds credentials as the AWS CLI does: the environment, a profile with its SSO session, a pod's web identity (IRSA)
or Pod Identity, the machine's role.
"""

from __future__ import annotations

from typing import Any

import boto3
import botocore.session
from botocore.config import Config

from clients import clouds


def session(region: str) -> Any:
    """Return a session. Clients made of it share its credentials, which it renews. The limits apply to STS and SSO too."""
    core = botocore.session.get_session()
    core.set_default_client_config(limits(clouds.TRIES))
    return boto3.Session(botocore_session=core, region_name=region)


def limits(tries: int) -> Config:
    """Return the configuration of a client that sends a request at most so many times."""
    return Config(
        connect_timeout=clouds.CONNECT_S,
        read_timeout=clouds.READ_S,
        retries={"mode": "standard", "total_max_attempts": tries},
    )
