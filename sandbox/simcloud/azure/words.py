"""Azure's refusal messages.

Codes and sentences are Azure's where a page or a user's report has them ("Understand common error messages when you
manage virtual machines in Azure", "Troubleshoot common Azure deployment errors"). Where only the rule is documented,
the code is BadRequest and the sentence is ours.
"""

from __future__ import annotations

from collections.abc import Mapping

from sandbox.simcloud.rules import Reason, RefusalError, Saying

BAD_REQUEST = "BadRequest"


def refused(code: str, message: str, way_out: str, status: int = 400) -> RefusalError:
    """Return a refusal specific to one type."""
    return RefusalError(f'Status={status} Code="{code}" Message="{message}"; {way_out}')


SAYS: Mapping[Reason, Saying] = {
    Reason.BAD_NAME: Saying(
        'Code="InvalidResourceName" Message="Resource name {name} is invalid. The name can be up to {longest} '
        'characters long. {words}"',
        "it has {length} characters; set {property}",
    ),
    Reason.TAKEN: Saying(
        "cannot create already existing resource '{id}'",
        "choose another name, import it (`pulumi import {type} <name> {id}`), or delete it",
    ),
    Reason.FULL: Saying(
        'Status=409 Code="QuotaExceeded" Message="Operation could not be completed as it results in exceeding approved '
        'quota. Current Limit: {most}, Current Usage: {have}, Additional Required: 1."',
        "ask for a larger quota of {type} in {region}",
    ),
    Reason.MISSING: Saying(
        'Status=400 Code="InvalidResourceReference" Message="Resource {value} referenced by resource {by} was not '
        "found. Please make sure that the referenced resource exists, and that both resources are in the same "
        'region."',
        "{path} must name something that exists",
    ),
    Reason.GONE: Saying(
        'Status=404 Code="ResourceNotFound" Message="The Resource \'{value}\' was not found."',
        "it was deleted outside the engine; run again with a refresh",
    ),
    Reason.ELSEWHERE: Saying(
        'Status=400 Code="InvalidResourceReference" Message="Resource {value} referenced by resource {by} was not '
        "found. Please make sure that the referenced resource exists, and that both resources are in the same "
        'region."',
        "it is in {its_region}, but this is in {region}",
    ),
    Reason.BAD_VALUE: Saying(
        "Status=400 Code=\"InvalidParameter\" Message=\"The value '{value}' of parameter '{path}' is not allowed.\"",
        "{words}",
    ),
    Reason.BAD_RANGE: Saying(
        'Status=400 Code="InvalidCIDRNotation" Message="The address prefix {value} in resource {id} has an invalid '
        'CIDR notation. For the given prefix length, the address prefix should be valid."',
        "use a network between /{shortest} and /{longest} without host bits",
    ),
    Reason.OUTSIDE: Saying(
        'Status=400 Code="NetcfgSubnetRangeOutsideVnet" Message="Subnet \'{name}\' is not valid because its IP address '
        "range is outside the IP address range of virtual network '{parent}'.\"",
        "{value} must be in {ranges}",
    ),
    Reason.OVERLAP: Saying(
        'Status=400 Code="NetcfgSubnetRangesOverlap" Message="Subnet \'{name}\' is not valid because its IP address '
        'range overlaps with that of an existing subnet in the virtual network."',
        "{other} has {existing}, which overlaps {value}",
    ),
    Reason.FIXED: Saying(
        'Status=409 Code="PropertyChangeNotAllowed" Message="Changing property \'{path}\' is not allowed."',
        "replace it: add {path} to replace_on_changes",
    ),
    Reason.PROTECTED: Saying(
        'Status=409 Code="ScopeLocked" Message="The scope \'{id}\' cannot perform delete operation because it is '
        'locked. Please remove the lock and try again."',
        "{path}",
    ),
    Reason.IN_USE: Saying(
        'Status=400 Code="InUseResourceCannotBeDeleted" Message="{noun} {value} is in use by {user} and cannot be '
        'deleted."',
        "delete first: {users}",
    ),
    Reason.NO_ZONE: Saying(
        'Status=400 Code="InvalidAvailabilityZone" Message="The zone(s) \'{zone}\' for resource {id} is not supported. '
        'The supported zones for location {region} are {zones}."',
        "{wrong}",
    ),
    Reason.NO_MACHINE: Saying(
        'Status=409 Code="SkuNotAvailable" Message="The requested VM size for resource \'Following SKUs have failed '
        "for Capacity Restrictions: {machine}' is currently not available in location '{region}'.\"",
        "{wrong}",
    ),
    Reason.THROTTLED: Saying(
        'Status=429 Code="TooManyRequests" Message="The request is being throttled as the limit has been reached for '
        'operation type {verb}."',
        "retry {verb} of {type} later; changes made so far are kept",
    ),
}
