"""Google Cloud's refusal messages."""

from __future__ import annotations

from collections.abc import Mapping

from sandbox.simcloud.rules import Reason, RefusalError, Saying

SAYS: Mapping[Reason, Saying] = {
    Reason.BAD_NAME: Saying(
        '"{property}" ("{name}") doesn\'t match regexp "^(?:{pattern})$"',
        "it has {length} characters: {words}",
    ),
    Reason.TAKEN: Saying(
        "googleapi: Error 409: The resource '{id}' already exists, alreadyExists",
        "choose another name, import it (`pulumi import {type} <name> {id}`), or delete it",
    ),
    Reason.FULL: Saying(
        "googleapi: Error 403: Quota for {type} exceeded. Limit: {most}.0 in region {region}., quotaExceeded",
        "{have} exist: ask for a larger quota",
    ),
    Reason.MISSING: Saying(
        "googleapi: Error 404: The resource '{value}' was not found, notFound",
        "{path} must name something that exists in project {account}",
    ),
    Reason.GONE: Saying(
        "googleapi: Error 404: The resource '{value}' was not found, notFound",
        "it was deleted outside the engine; run again with a refresh",
    ),
    Reason.ELSEWHERE: Saying(
        "googleapi: Error 400: Invalid value for field 'resource.{path}': '{value}'. "
        "Cross-region references are not allowed, invalid",
        "it is in {its_region}, but this is in {region}",
    ),
    Reason.BAD_VALUE: Saying(
        "googleapi: Error 400: Invalid value for field 'resource.{path}': '{value}'., invalid",
        "{words}",
    ),
    Reason.BAD_RANGE: Saying(
        "googleapi: Error 400: Invalid value for field 'resource.ipCidrRange': '{value}'. "
        "Must be a CIDR address range., invalid",
        "use a network between /{shortest} and /{longest} without host bits",
    ),
    Reason.OUTSIDE: Saying(
        "googleapi: Error 400: Invalid value for field 'resource': '{value}'. Outside of {parent}., invalid",
        "it must be in {ranges}",
    ),
    Reason.OVERLAP: Saying(
        "googleapi: Error 400: Invalid IPCidrRange: {value} conflicts with existing subnetwork '{other_name}' in "
        "region '{its_region}'., invalid",
        "{other} has {existing}; subnetworks of a network must not overlap, even in different regions",
    ),
    Reason.FIXED: Saying(
        "googleapi: Error 400: Invalid value for field 'resource.{path}'. It cannot be changed., invalid",
        "replace it: add {path} to replace_on_changes",
    ),
    Reason.PROTECTED: Saying(
        "cannot destroy {noun} {id}: deletion protection is on",
        "change {path} and update before deleting",
    ),
    Reason.IN_USE: Saying(
        "googleapi: Error 400: The {noun} resource '{value}' is already being used by '{user}', "
        "resourceInUseByAnotherResource",
        "delete first: {users}",
    ),
    Reason.NO_ZONE: Saying(
        "googleapi: Error 400: Invalid value for field 'zone': '{zone}'. Unknown zone., invalid",
        "{wrong}",
    ),
    Reason.NO_MACHINE: Saying(
        "googleapi: Error 400: Invalid value for field 'resource.properties.machineType': '{machine}'. The referenced "
        "resource does not exist., invalid",
        "{wrong}",
    ),
    Reason.THROTTLED: Saying(
        "googleapi: Error 403: Quota exceeded for quota metric 'Queries' and limit 'Queries per minute' of service "
        "'compute.googleapis.com', rateLimitExceeded",
        "retry {verb} of {type} later; changes made so far are kept",
    ),
}

PREVENTED: Mapping[Reason, Saying] = {
    Reason.PROTECTED: Saying(
        'cannot destroy {noun} without setting deletion_policy="DELETE"',
        "set {path} to DELETE and update before deleting",
    )
}
"""The messages of terraform-provider-google when it refuses without calling the API."""


def invalid(path: str, value: str, why: str, way_out: str) -> RefusalError:
    """Return the API's refusal of one value. why: a sentence with its full stop."""
    return RefusalError(
        f"googleapi: Error 400: Invalid value for field 'resource.{path}': '{value}'. {why}, invalid; {way_out}", path
    )


def conflict(path: str, text: str, way_out: str) -> RefusalError:
    """Return the provider's refusal of contradictory properties."""
    return RefusalError(f'"{path}": {text}; {way_out}', path)


def in_use(what: str, by: str) -> RefusalError:
    """Return the API's refusal of what another resource already uses."""
    return RefusalError(
        f"googleapi: Error 400: {what} is already being used by '{by}', resourceInUseByAnotherResource; "
        f"delete {by} first, or choose another"
    )
