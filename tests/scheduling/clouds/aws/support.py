"""Helpers for tests of AWS."""

from __future__ import annotations

import http.client
import re
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cluster.spec import Cluster
from controllers.autoscaler import clouds
from controllers.autoscaler.groups import Groups
from tests.scheduling.clouds.door import Door, Fault, Request, Response, Upstream, once

ROOT = Path(__file__).resolve().parents[4]
REGION = "eu-central-1"
SCALING, STS, SSO = (f"{name}.{REGION}.amazonaws.com" for name in ("autoscaling", "sts", "portal.sso"))


def form_of(request: Request) -> dict[str, str]:
    return dict(urllib.parse.parse_qsl(request.body.decode()))


def action(request: Request) -> str:
    return form_of(request).get("Action", "")


def upon(name: str, result: Response | str) -> Fault:
    """Return a fault for the first request of an action."""
    return once(lambda request: result if action(request) == name else None)


def refusal(status: int, code: str, message: str) -> Response:
    body = (
        '<ErrorResponse xmlns="http://autoscaling.amazonaws.com/doc/2011-01-01/"><Error><Type>Sender</Type>'
        f"<Code>{code}</Code><Message>{message}</Message></Error><RequestId>1</RequestId></ErrorResponse>"
    )
    return Response(status, body)


def relay(at: tuple[str, int]) -> Upstream:
    """Return an upstream that forwards to moto, which finds the service from the request's headers."""

    def ask(request: Request) -> Response:
        assert request.host in (SCALING, STS), request
        connection = http.client.HTTPConnection(*at)
        connection.request(request.method, request.path, request.body, dict(request.headers))
        answer = connection.getresponse()
        response = Response(answer.status, answer.read().decode(), {"Content-Type": "text/xml"})
        connection.close()
        return response

    return ask


def in_pages_of(number: int, upstream: Upstream) -> Fault:
    """Return a fault that limits pages to this size, whatever is requested."""

    def smaller(request: Request) -> Response:
        return upstream(request.with_body(re.sub(rb"MaxRecords=[0-9]+", b"MaxRecords=%d" % number, request.body)))

    return smaller


def groups(cluster: Cluster, nodes: Mapping[str, str] | None = None) -> Groups:
    return clouds.groups_of(cluster, lambda: nodes or {})


def desired(cloud: tuple[Any, ...], name: str) -> int:
    (group,) = cloud[0].describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
    return int(group["DesiredCapacity"])


def alive(cloud: tuple[Any, ...], name: str) -> list[str]:
    (group,) = cloud[0].describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
    return [each["InstanceId"] for each in group["Instances"]]


def changes(door: Door) -> list[str]:
    return [action(request) for request in door.log if not action(request).startswith("Describe")]
