"""What tests of AWS ask, and what they spoil on its way."""

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
from tests.scheduling.clouds.door import Asked, Door, Fault, Told, Upstream, once

ROOT = Path(__file__).resolve().parents[4]
REGION = "eu-central-1"
SCALING, STS, SSO = (f"{name}.{REGION}.amazonaws.com" for name in ("autoscaling", "sts", "portal.sso"))


def form_of(asked: Asked) -> dict[str, str]:
    return dict(urllib.parse.parse_qsl(asked.body.decode()))


def action(asked: Asked) -> str:
    return form_of(asked).get("Action", "")


def upon(name: str, made: Told | str) -> Fault:
    """The first time that the action is asked for."""
    return once(lambda asked: made if action(asked) == name else None)


def refusal(status: int, code: str, message: str) -> Told:
    body = (
        '<ErrorResponse xmlns="http://autoscaling.amazonaws.com/doc/2011-01-01/"><Error><Type>Sender</Type>'
        f"<Code>{code}</Code><Message>{message}</Message></Error><RequestId>1</RequestId></ErrorResponse>"
    )
    return Told(status, body)


def relay(at: tuple[str, int]) -> Upstream:
    """To moto, which knows from the request's headers which service it is for."""

    def ask(asked: Asked) -> Told:
        assert asked.host in (SCALING, STS), asked
        connection = http.client.HTTPConnection(*at)
        connection.request(asked.method, asked.path, asked.body, dict(asked.headers))
        answer = connection.getresponse()
        made = Told(answer.status, answer.read().decode(), {"Content-Type": "text/xml"})
        connection.close()
        return made

    return ask


def in_pages_of(number: int, upstream: Upstream) -> Fault:
    """Pages as small as that, whatever is asked for."""

    def smaller(asked: Asked) -> Told:
        return upstream(asked.saying(re.sub(rb"MaxRecords=[0-9]+", b"MaxRecords=%d" % number, asked.body)))

    return smaller


def groups(cluster: Cluster, nodes: Mapping[str, str] | None = None) -> Groups:
    return clouds.groups_of(cluster, lambda: nodes or {})


def desired(cloud: tuple[Any, ...], name: str) -> int:
    (found,) = cloud[0].describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
    return int(found["DesiredCapacity"])


def alive(cloud: tuple[Any, ...], name: str) -> list[str]:
    (found,) = cloud[0].describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
    return [each["InstanceId"] for each in found["Instances"]]


def changes(door: Door) -> list[str]:
    return [action(asked) for asked in door.log if not action(asked).startswith("Describe")]
