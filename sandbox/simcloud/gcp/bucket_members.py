"""Who may be granted what in a bucket: "Uniform bucket-level access", "Public access prevention"."""

from __future__ import annotations

from sandbox.simcloud.gcp.words import invalid
from sandbox.simcloud.rules import Call, RefusalError

_EVERYBODY = ("allUsers", "allAuthenticatedUsers")


def allowed_in_bucket(call: Call) -> None:
    """Refuse a condition in a bucket that has object ACLs, and everybody in a bucket that is closed to the public."""
    bucket = call.target("bucket")
    if bucket and call.inputs.get("condition") and not bucket.inputs.get("uniformBucketLevelAccess"):
        raise invalid(
            "bindings.condition",
            call.text("condition.title"),
            "Conditions need uniform bucket-level access.",
            f"set uniformBucketLevelAccess of {bucket.id}",
        )
    if bucket and call.text("member") in _EVERYBODY and bucket.inputs.get("publicAccessPrevention") == "enforced":
        raise RefusalError(
            "googleapi: Error 412: The member bindings allUsers and allAuthenticatedUsers are not allowed since public "
            f"access prevention is enforced., conditionNotMet; name members, or change publicAccessPrevention of {bucket.id}",
            "member",
        )
