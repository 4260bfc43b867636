"""The few actions of the Auto Scaling API that the autoscaler needs, through boto3.

boto3 finds credentials as the AWS CLI does: the environment, a profile with its SSO session, a pod's web identity (IRSA) or Pod
Identity, the machine's role. AWS_ENDPOINT_URL_AUTO_SCALING and the other settings of the SDKs apply as usual.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

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

from clients.clouds import TRIES, one_line
from clients.clouds.aws_login import limits, session
from controllers.autoscaler.clouds.common import LostError, throttled
from controllers.autoscaler.groups import GroupError

_THROTTLED = frozenset({"Throttling", "ThrottlingException", "RequestLimitExceeded", "ResourceContention"})
"""Error codes from "Common Error Types". ResourceContention: another update of the group is in progress."""
_STALE = frozenset({"ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "RequestExpired"})
_ADVICE = (
    "in a pod, give its service account a role (AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE, or EKS's Pod Identity); "
    "elsewhere run `aws configure sso` and set AWS_PROFILE, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; the rights "
    "are in docs/aws-policy-autoscaler.json"
)
_BY_CODE = {
    "AccessDenied": "; the rights are in docs/aws-policy-autoscaler.json",
    "ExpiredToken": "; log in again",
    "InvalidClientTokenId": "; these credentials do not exist, or belong to another partition of AWS",
    "SignatureDoesNotMatch": "; the secret key is wrong, or this machine's clock is off",
    "ScalingActivityInProgress": "; the next pass tries again",
}
_SERVICES = {"AssumeRole": "sts", "AssumeRoleWithWebIdentity": "sts", "GetRoleCredentials": "sso"}
"""The service of each action that boto3 uses to get credentials."""
_PAGE = 100
"""Largest MaxRecords of "DescribeAutoScalingGroups"."""
T = TypeVar("T")


class AwsRefusedError(GroupError):
    """AWS refused a request. word: AWS's error code."""

    def __init__(self, action: str, word: str, message: str) -> None:
        self.word = word
        service, advice = _SERVICES.get(action, "autoscaling"), _BY_CODE.get(word, "")
        if service == "sts":
            advice = "; compare the role's trust policy with the issuer and the service account of the pod's token"
        super().__init__(f"AWS refuses {service}:{action}: {word}: {message}{advice}")


@dataclass(frozen=True)
class Instance:
    """An instance of a group. state: its LifecycleState."""

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
    """Client of Auto Scaling. Looks for credentials at the first request.

    Errors: every method raises GroupError with AWS's message and what to do.
    """

    def __init__(self, region: str) -> None:
        self._region = region
        self._clients: dict[int, Any] = {}

    def groups(self, tags: Mapping[str, str]) -> list[ScalingGroup]:
        """Return all groups with these tags."""
        filters = [{"Name": f"tag:{key}", "Values": [value]} for key, value in sorted(tags.items())]

        def every(client: Any) -> list[ScalingGroup]:
            pages = client.get_paginator("describe_auto_scaling_groups").paginate(
                Filters=filters, PaginationConfig={"PageSize": _PAGE}
            )
            return [_group(each) for page in pages for each in page["AutoScalingGroups"]]

        return self._ask(every)

    def why_no_launch(self, name: str) -> str:
        """Return why a group's newest launch failed, in AWS's words; "" if it succeeded or is in progress."""
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
        """Terminate an instance, and lower the group's size by one. Never retried here: a retry might count twice.

        Errors: raises LostError if the result is unknown.
        """
        self._ask(
            lambda client: client.terminate_instance_in_auto_scaling_group(
                InstanceId=instance, ShouldDecrementDesiredCapacity=True
            ),
            tries=1,
        )

    def _ask(self, call: Callable[[Any], T], tries: int = TRIES) -> T:
        """Send a request. If AWS reports stale credentials, look for new ones and retry once: a refused request did nothing."""
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
                "only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set; set both or neither"
            ) from None
        except (HTTPClientError, NoConnectionError, ResponseParserError) as error:
            raise LostError("AWS", error) from None
        except PaginationError as error:
            raise GroupError(f"AWS returns the same page of groups repeatedly; the list is not used: {error}") from None
        except (BotoCoreError, OSError, RuntimeError) as error:
            # A missing profile or token file, an expired SSO session.
            raise GroupError(f"AWS: {one_line(error)}; {_ADVICE}") from None

    def _client(self, tries: int) -> Any:
        """Return the client for so many attempts. Both clients share one session's credentials, which it renews."""
        if not self._clients:
            own = session(self._region)
            self._clients = {number: own.client("autoscaling", config=limits(number)) for number in (1, TRIES)}
        return self._clients[tries]


def _read(error: ClientError) -> GroupError:
    code, message = error.response["Error"].get("Code", ""), error.response["Error"].get("Message", "")
    if code in _THROTTLED:
        return throttled("AWS", f"{code}: {message}")
    if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= 500:
        return LostError("AWS", error)
    return AwsRefusedError(error.operation_name, code, message)


def _group(document: Mapping[str, Any]) -> ScalingGroup:
    return ScalingGroup(
        document["AutoScalingGroupName"],
        document["DesiredCapacity"],
        document["MinSize"],
        document["MaxSize"],
        {each["Key"]: each["Value"] for each in document.get("Tags", ())},
        tuple(
            Instance(each["InstanceId"], each["AvailabilityZone"], each["LifecycleState"])
            for each in document.get("Instances", ())
        ),
    )
