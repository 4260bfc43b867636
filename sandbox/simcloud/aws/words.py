"""AWS's refusal messages."""

from __future__ import annotations

from collections.abc import Mapping

from sandbox.simcloud.rules import Reason, Saying

SAYS: Mapping[Reason, Saying] = {
    Reason.BAD_NAME: Saying(
        "invalid value for {property} ({name}, {length} characters): {words}",
        "choose a name of at most {longest} characters that matches {pattern}",
    ),
    Reason.TAKEN: Saying(
        "api error AlreadyExists: {noun} '{name}' already exists",
        "choose another name, import the existing one, or delete it",
    ),
    Reason.MISSING: Saying(
        "api error {code}.NotFound: The {noun} ID '{value}' does not exist",
        "{path} must name something that exists in {region}",
    ),
    Reason.GONE: Saying(
        "api error {code}.NotFound: The {noun} ID '{value}' does not exist",
        "it was deleted outside the engine; run again with a refresh",
    ),
    Reason.ELSEWHERE: Saying(
        "api error {code}.NotFound: The {noun} ID '{value}' does not exist",
        "it is in {its_region}, and {path} can only name something in {region}",
    ),
    Reason.BAD_VALUE: Saying(
        "api error InvalidParameterValue: Value ({value}) for parameter {path} is invalid.",
        "{words}",
    ),
    Reason.BAD_RANGE: Saying(
        "api error InvalidSubnet.Range: The CIDR '{value}' is invalid.",
        "use a network between /{shortest} and /{longest} without host bits",
    ),
    Reason.OUTSIDE: Saying(
        "api error InvalidSubnet.Range: The CIDR '{value}' is invalid.",
        "it must be in {ranges} of {parent}",
    ),
    Reason.FULL: Saying(
        "api error LimitExceeded: The maximum number of resources of this kind has been reached.",
        "{have} of type {type} are in {region}: ask for a larger quota than {most}",
    ),
    Reason.OVERLAP: Saying(
        "api error InvalidSubnet.Conflict: The CIDR '{value}' conflicts with another subnet",
        "{other} has {existing}; a replacement that keeps its range needs delete_before_replace",
    ),
    Reason.FIXED: Saying(
        "api error InvalidParameterCombination: {path} of {noun} '{id}' cannot be modified",
        "replace it: add {path} to replace_on_changes",
    ),
    Reason.PROTECTED: Saying(
        "api error OperationNotPermitted: {noun} '{id}' cannot be deleted because deletion protection is enabled",
        "set {path} to false and update before deleting",
    ),
    Reason.IN_USE: Saying(
        "api error DependencyViolation: The {noun} '{value}' has dependencies and cannot be deleted.",
        "delete first: {users}",
    ),
    Reason.NO_ZONE: Saying(
        "api error InvalidParameterValue: Value ({zone}) for parameter availabilityZone is invalid.",
        "{wrong}",
    ),
    Reason.NO_MACHINE: Saying(
        "api error InvalidParameterValue: The following supplied instance types do not exist or are not offered in "
        "{region} {zone}: [{machine}]",
        "{wrong}",
    ),
    Reason.THROTTLED: Saying(
        "api error RequestLimitExceeded: Request limit exceeded.",
        "retry {verb} of {type} later; changes made so far are kept",
    ),
}
