"""An account of AWS: moto, and in front of it what moto lacks, as AWS documents it.

moto has no "SimulatePrincipalPolicy", and neither Service Quotas of EC2 nor Debian's public parameter.
"""

from __future__ import annotations

import http.client
import json
import urllib.parse
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from xml.sax.saxutils import escape

import boto3
from botocore.config import Config

from operations.doctor.aws.account import SERVICE_ROLES
from stacks.aws import permissions
from tests.scheduling.clouds.door import Request, Response, json_response

REGION, ACCOUNT = "eu-central-1", "123456789012"
DEBIAN = "ami-12c6146b"
"""An image for x86 that moto has."""
_IAM = "https://iam.amazonaws.com/doc/2010-05-08/"


@cache
def _client(at: tuple[str, int], service: str) -> Any:
    patient = Config(read_timeout=100, retries={"total_max_attempts": 1})
    keys = {"aws_access_key_id": "a-key", "aws_secret_access_key": "a-secret", "region_name": REGION}
    return boto3.client(service, endpoint_url=f"http://{at[0]}:{at[1]}", config=patient, **keys)


def form_of(request: Request) -> dict[str, str]:
    return dict(urllib.parse.parse_qsl(request.body.decode()))


def target(request: Request) -> str:
    """Return the operation of a request in JSON, such as GetServiceQuota."""
    return request.headers.get("x-amz-target", "").rpartition(".")[2]


def action(request: Request) -> str:
    """Return the operation of any request; for S3 its method."""
    return target(request) or form_of(request).get("Action", "") or request.method


def numbered(form: dict[str, str], name: str) -> list[str]:
    """Return a list of the query protocol: name.member.1, name.member.2, ..."""
    keys = [key for key in form if key.startswith(f"{name}.member.") and key.count(".") == 2]
    return [form[key] for key in sorted(keys, key=lambda key: int(key.rpartition(".")[2]))]


@dataclass
class Amazon:
    """The account. quotas: code -> value; others have the default. denied: actions that a simulation denies.

    page: results in one page of a simulation.
    """

    at: tuple[str, int]
    quotas: dict[str, float] = field(default_factory=dict)
    default: float = 500.0
    denied: frozenset[str] = frozenset()
    by_organisation: bool = False
    debian: str = DEBIAN
    page: int = 40
    simulated: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._reset()
        iam = self.client("iam")
        for service, role in SERVICE_ROLES.items():
            iam.create_role(RoleName=role, Path=f"/aws-service-role/{service}/", AssumeRolePolicyDocument="{}")
        iam.create_policy(PolicyName="menagerie-hosts", Path="/menagerie/", PolicyDocument=permissions.boundary())

    def client(self, service: str) -> Any:
        return _client(self.at, service)

    def answer(self, request: Request) -> Response:
        operation = action(request)
        if operation == "SimulatePrincipalPolicy":
            return self._simulate(form_of(request))
        if operation == "GetServiceQuota":
            return self._quota(json.loads(request.body))
        if operation == "GetAWSDefaultServiceQuota":
            asked = json.loads(request.body)
            return json_response(200, {"Quota": {**asked, "Value": self.default}})
        if operation == "GetParameter":
            name = json.loads(request.body)["Name"]
            return json_response(200, {"Parameter": {"Name": name, "Type": "String", "Value": self.debian}})
        return self._relayed(request)

    def _reset(self) -> None:
        connection = http.client.HTTPConnection(*self.at)
        connection.request("POST", "/moto-api/reset")
        connection.getresponse().read()
        connection.close()

    def _relayed(self, request: Request) -> Response:
        connection = http.client.HTTPConnection(*self.at)
        connection.request(request.method, request.path, request.body, dict(request.headers))
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        return Response(answer.status, body, {"Content-Type": answer.headers.get("Content-Type", "text/xml")})

    def _quota(self, asked: dict[str, str]) -> Response:
        if asked["QuotaCode"] not in self.quotas:
            error = {"__type": "NoSuchResourceException", "Message": "The request failed because the quota is not set."}
            return json_response(400, error)
        return json_response(200, {"Quota": {**asked, "Value": self.quotas[asked["QuotaCode"]]}})

    def _simulate(self, form: dict[str, str]) -> Response:
        self.simulated.append(form)
        actions, first = numbered(form, "ActionNames"), int(form.get("Marker", 0))
        shown, after = actions[first : first + self.page], first + self.page
        marker = f"<IsTruncated>true</IsTruncated><Marker>{after}</Marker>" if after < len(actions) else ""
        return _xml("SimulatePrincipalPolicy", f"<EvaluationResults>{self._results(shown)}</EvaluationResults>{marker}")

    def _results(self, actions: Iterable[str]) -> str:
        detail = "<AllowedByOrganizations>false</AllowedByOrganizations>" if self.by_organisation else ""
        denied = f"<OrganizationsDecisionDetail>{detail}</OrganizationsDecisionDetail>" if detail else ""
        return "".join(
            f"<member><EvalActionName>{escape(each)}</EvalActionName><EvalResourceName>*</EvalResourceName><EvalDecision>"
            f"{'implicitDeny' if each in self.denied else 'allowed'}</EvalDecision>"
            f"{denied if each in self.denied else ''}</member>"
            for each in actions
        )


def _xml(operation: str, result: str) -> Response:
    body = (
        f'<{operation}Response xmlns="{_IAM}"><{operation}Result>{result}</{operation}Result>'
        f"<ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></{operation}Response>"
    )
    return Response(200, body, {"Content-Type": "text/xml"})


def refusal(status: int, code: str, message: str = "denied") -> Response:
    """Return an error that both of EC2's and the other services' parsers of XML read."""
    body = (
        f"<ErrorResponse><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors>"
        f"<Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"
    )
    return Response(status, body, {"Content-Type": "text/xml"})
