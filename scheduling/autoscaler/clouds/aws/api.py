"""The few actions of the Auto Scaling API that the autoscaler needs (API version 2011-01-01: forms in, XML out)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from xml.etree import ElementTree

from scheduling.autoscaler.clouds.aws.identity import Identity
from scheduling.autoscaler.clouds.aws.signing import signed
from scheduling.autoscaler.clouds.http import Answer, Http
from scheduling.autoscaler.groups import GroupError

_NAMESPACE = "{http://autoscaling.amazonaws.com/doc/2011-01-01/}"
_THROTTLED = frozenset({"Throttling", "ThrottlingException", "RequestLimitExceeded", "ResourceContention"})
""""Common Error Types"; ResourceContention is another update of the group that is under way."""
_STALE = frozenset({"ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "RequestExpired"})
_MOST_PAGES = 1000
PAGE = 100
""""DescribeAutoScalingGroups": MaxRecords is 100 at most."""


class RefusedError(GroupError):
    """code: AWS's word for why."""

    def __init__(self, action: str, code: str, message: str) -> None:
        self.code = code
        self.message = message
        advice = {
            "AccessDenied": "; the rights are in docs/aws-policy-autoscaler.json",
            "ExpiredToken": "; log in again",
            "InvalidClientTokenId": "; these credentials are of nobody, or of another partition of AWS",
            "SignatureDoesNotMatch": "; the secret key is wrong, or this machine's clock is off",
            "ScalingActivityInProgress": "; asked again with the next pass",
        }
        super().__init__(f"AWS refuses autoscaling:{action}: {code}: {message}{advice.get(code, '')}")


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


@dataclass(frozen=True)
class Activity:
    """begun: as AWS writes times. message: why it came to its status, "" where AWS says nothing."""

    status: str
    description: str
    message: str
    begun: str


class AutoScaling:
    """GroupError of every method: the cloud's words, and what to do."""

    def __init__(self, http: Http, identity: Identity, region: str, url: str = "", page: int = PAGE) -> None:
        self._http = http
        self._identity = identity
        self._region = region
        self._url = (url or f"https://autoscaling.{region}.amazonaws.com").rstrip("/")
        self._page = page

    def groups(self, tags: Mapping[str, str]) -> list[ScalingGroup]:
        """All groups with these tags; all pages, or GroupError."""
        form = {"MaxRecords": str(self._page)}
        for number, (key, value) in enumerate(sorted(tags.items()), 1):
            form |= {f"Filters.member.{number}.Name": f"tag:{key}", f"Filters.member.{number}.Values.member.1": value}
        found: list[ScalingGroup] = []
        token = ""
        for _ in range(_MOST_PAGES):
            page = self._call("DescribeAutoScalingGroups", {**form, **({"NextToken": token} if token else {})})
            found += [_group(element) for element in _members(page, "AutoScalingGroups")]
            before, token = token, _text(page, "NextToken")
            if not token:
                return found
            if token == before:
                break
        raise GroupError("AWS gives one page of groups again and again; none is believed")

    def newest_activities(self, name: str) -> list[Activity]:
        """Of a group, the newest first; one page."""
        page = self._call("DescribeScalingActivities", {"AutoScalingGroupName": name, "MaxRecords": "20"})
        return [
            Activity(*(_text(each, key) for key in ("StatusCode", "Description", "StatusMessage", "StartTime")))
            for each in _members(page, "Activities")
        ]

    def set_desired(self, name: str, size: int) -> None:
        form = {"AutoScalingGroupName": name, "DesiredCapacity": str(size), "HonorCooldown": "false"}
        self._call("SetDesiredCapacity", form)

    def terminate(self, instance: str) -> None:
        """And want one fewer. Not repeated by itself: a second one might count twice. LostError where nobody knows."""
        form = {"InstanceId": instance, "ShouldDecrementDesiredCapacity": "true"}
        self._call("TerminateInstanceInAutoScalingGroup", form, again=False)

    def _call(self, action: str, form: Mapping[str, str], *, again: bool = True) -> ElementTree.Element:
        try:
            return self._answered(action, form, again)
        except RefusedError as error:
            if error.code not in _STALE:
                raise
        self._identity.forget()
        return self._answered(action, form, again)

    def _answered(self, action: str, form: Mapping[str, str], again: bool) -> ElementTree.Element:
        whole = {"Action": action, "Version": "2011-01-01", **form}
        answer = self._http.ask(
            lambda: signed(
                self._identity.credentials(), self._region, "autoscaling", self._url, whole, datetime.now(UTC), again
            ),
            lambda refusal: refusal.status != 200 and _error(refusal)[0] in _THROTTLED,
        )
        if answer.status != 200:
            raise RefusedError(action, *_error(answer))
        try:
            found = ElementTree.fromstring(answer.body).find(f"{_NAMESPACE}{action}Result")
        except ElementTree.ParseError as error:
            raise GroupError(
                f"AWS answered autoscaling:{action} with what is no XML ({error}): {answer.text}"
            ) from None
        # SetDesiredCapacity has no result.
        return ElementTree.Element("nothing") if found is None else found


def _error(answer: Answer) -> tuple[str, str]:
    """Code and message."""
    try:
        found = {
            each.tag.rpartition("}")[2]: (each.text or "").strip()
            for each in ElementTree.fromstring(answer.body).iter()
        }
    except ElementTree.ParseError:
        found = {}
    return found.get("Code") or f"HTTP {answer.status}", found.get("Message") or answer.text


def _members(element: ElementTree.Element, name: str) -> Iterator[ElementTree.Element]:
    listed = element.find(_NAMESPACE + name)
    return iter(()) if listed is None else iter(listed.findall(f"{_NAMESPACE}member"))


def _text(element: ElementTree.Element, name: str) -> str:
    return (element.findtext(_NAMESPACE + name) or "").strip()


def _group(element: ElementTree.Element) -> ScalingGroup:
    instances = tuple(
        Instance(_text(each, "InstanceId"), _text(each, "AvailabilityZone"), _text(each, "LifecycleState"))
        for each in _members(element, "Instances")
    )
    name = _text(element, "AutoScalingGroupName")
    try:
        desired, least, most = (int(_text(element, key)) for key in ("DesiredCapacity", "MinSize", "MaxSize"))
    except ValueError:
        raise GroupError(f"AWS's answer says no sizes of group {name}; it is not believed") from None
    tags = {_text(each, "Key"): _text(each, "Value") for each in _members(element, "Tags")}
    return ScalingGroup(name, desired, least, most, tags, instances)
