"""The few actions of the Auto Scaling API that the autoscaler needs, by boto3.

Who it is, boto3 finds as the AWS CLI does: the environment, a profile with its SSO session, a pod's web identity (IRSA) or Pod
Identity, the machine's role. AWS_ENDPOINT_URL_AUTO_SCALING and the other settings of the SDKs hold as everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    NoCredentialsError,
    PaginationError,
    PartialCredentialsError,
)
from botocore.exceptions import ConnectionError as NoConnectionError
from botocore.parsers import ResponseParserError

from controllers.autoscaler.clouds import common
from controllers.autoscaler.clouds.common import TRIES, LostError, one_line, throttled
from controllers.autoscaler.groups import GroupError

_THROTTLED = frozenset({"Throttling", "ThrottlingException", "RequestLimitExceeded", "ResourceContention"})
""""Common Error Types"; ResourceContention is another update of the group that is under way."""
_STALE = frozenset({"ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "RequestExpired"})
_ADVICE = (
    "in a pod, give its service account a role (AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE, or EKS's Pod Identity); "
    "elsewhere run `aws configure sso` and set AWS_PROFILE, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; the rights "
    "are in docs/aws-policy-autoscaler.json"
)
_BY_CODE = {
    "AccessDenied": "; the rights are in docs/aws-policy-autoscaler.json",
    "ExpiredToken": "; log in again",
    "InvalidClientTokenId": "; these credentials belong to nobody, or to another partition of AWS",
    "SignatureDoesNotMatch": "; the secret key is wrong, or this machine's clock is off",
    "ScalingActivityInProgress": "; the next pass asks again",
}
_SERVICES = {"AssumeRole": "sts", "AssumeRoleWithWebIdentity": "sts", "GetRoleCredentials": "sso"}
"""Of what boto3 asks for credentials."""
_PAGE = 100
""""DescribeAutoScalingGroups": MaxRecords is 100 at most."""
T = TypeVar("T")


class AwsRefusedError(GroupError):
    """word: AWS's, for why."""

    def __init__(self, action: str, word: str, message: str) -> None:
        self.word = word
        service, advice = _SERVICES.get(action, "autoscaling"), _BY_CODE.get(word, "")
        if service == "sts":
            advice = (
                "; compare the role's trust policy with who asks: the issuer and the service account of a pod's token"
            )
        super().__init__(f"AWS refuses {service}:{action}: {word}: {message}{advice}")


@dataclass(frozen=True)
class Instance:
    """state: LifecycleState."""

    id: str
    zone: str
    state: str


@dataclass(frozen=True)
class ScalingGroup:
    name: str
    desired: int
    least: int
    most: int
    tags: Mapping[str, str]
    instances: tuple[Instance, ...]


class AutoScaling:
    """GroupError of every method: the cloud's words, and what to do. Looks for credentials with the first request."""

    def __init__(self, region: str) -> None:
        self._region = region
        self._clients: dict[int, Any] = {}

    def groups(self, tags: Mapping[str, str]) -> list[ScalingGroup]:
        """All groups with these tags; all pages, or GroupError."""
        filters = [{"Name": f"tag:{key}", "Values": [value]} for key, value in sorted(tags.items())]

        def every(client: Any) -> list[ScalingGroup]:
            pages = client.get_paginator("describe_auto_scaling_groups").paginate(
                Filters=filters, PaginationConfig={"PageSize": _PAGE}
            )
            return [_group(each) for page in pages for each in page["AutoScalingGroups"]]

        return self._ask(every)

    def why_no_launch(self, name: str) -> str:
        """Why a group's newest attempt to launch failed, in AWS's words; "" where it did not, or is under way."""
        page = self._ask(lambda client: client.describe_scaling_activities(AutoScalingGroupName=name, MaxRecords=20))
        for each in page["Activities"]:
            description = each.get("Description", "")
            if description.startswith("Launching"):
                failed = each["StatusCode"] in ("Failed", "Cancelled")
                return (each.get("StatusMessage") or description) if failed else ""
        return ""

    def set_desired(self, name: str, size: int) -> None:
        self._ask(
            lambda client: client.set_desired_capacity(
                AutoScalingGroupName=name, DesiredCapacity=size, HonorCooldown=False
            )
        )

    def terminate(self, instance: str) -> None:
        """And want one fewer. Never repeated here: a second one might count twice. LostError where nobody knows."""
        self._ask(
            lambda client: client.terminate_instance_in_auto_scaling_group(
                InstanceId=instance, ShouldDecrementDesiredCapacity=True
            ),
            tries=1,
        )

    def _ask(self, call: Callable[[Any], T], tries: int = TRIES) -> T:
        """Credentials that AWS calls stale are looked for again, once: a refused request did nothing."""
        try:
            return self._once(call, tries)
        except AwsRefusedError as error:
            if error.word not in _STALE:
                raise
        self._clients.clear()
        return self._once(call, tries)

    def _once(self, call: Callable[[Any], T], tries: int) -> T:
        try:
            return call(self._client(tries))
        except ClientError as error:
            raise _read(error) from None
        except NoCredentialsError:
            raise GroupError(f"there are no credentials for AWS: {_ADVICE}") from None
        except PartialCredentialsError:
            raise GroupError(
                "one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set; set the other too, or none"
            ) from None
        except (HTTPClientError, NoConnectionError, ResponseParserError) as error:
            raise LostError("AWS", error) from None
        except PaginationError as error:
            raise GroupError(f"AWS gives one page of groups again and again; none is believed: {error}") from None
        except (BotoCoreError, OSError, RuntimeError) as error:
            # A profile or a token's file that is not there, an SSO session that ended.
            raise GroupError(f"AWS: {one_line(error)}; {_ADVICE}") from None

    def _client(self, tries: int) -> Any:
        """Both clients have the credentials of one session, which keeps and renews them. Limits hold for STS and SSO too."""
        if not self._clients:
            core = botocore.session.get_session()
            core.set_default_client_config(_config(TRIES))
            session = boto3.Session(botocore_session=core, region_name=self._region)
            self._clients = {number: session.client("autoscaling", config=_config(number)) for number in (1, TRIES)}
        return self._clients[tries]


def _config(tries: int) -> Config:
    return Config(
        connect_timeout=common.CONNECT_S,
        read_timeout=common.READ_S,
        retries={"mode": "standard", "total_max_attempts": tries},
    )


def _read(error: ClientError) -> GroupError:
    code, message = error.response["Error"].get("Code", ""), error.response["Error"].get("Message", "")
    if code in _THROTTLED:
        return throttled("AWS", f"{code}: {message}")
    if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= 500:
        return LostError("AWS", error)
    return AwsRefusedError(error.operation_name, code, message)


def _group(told: Mapping[str, Any]) -> ScalingGroup:
    return ScalingGroup(
        told["AutoScalingGroupName"],
        told["DesiredCapacity"],
        told["MinSize"],
        told["MaxSize"],
        {each["Key"]: each["Value"] for each in told.get("Tags", ())},
        tuple(
            Instance(each["InstanceId"], each["AvailabilityZone"], each["LifecycleState"])
            for each in told.get("Instances", ())
        ),
    )
