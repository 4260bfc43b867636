"""Cloud Storage."""

from __future__ import annotations

import re

from sandbox.simcloud.gcp.common import chosen, labelled, labels, project_number
from sandbox.simcloud.gcp.kms import by_key, usable
from sandbox.simcloud.gcp.tokens import BUCKET, BUCKET_OBJECT
from sandbox.simcloud.gcp.words import PREVENTED
from sandbox.simcloud.rules import Call, Naming, Reason, Reference, RefusalError, ResourceType, Saying
from sandbox.simcloud.values import Properties, Value, at

_KEY = "encryption.defaultKmsKeyName"
_DENIED = (
    "googleapi: Error 403: Permission denied on Cloud KMS key. Please ensure that your Cloud Storage service account "
    "has been authorized to use this key., forbidden; {key}"
)
# Names according to "About Cloud Storage buckets"; without dots, which need a domain of one's own.
_NAME = Naming(
    "name",
    re.compile(r"(?!goog)(?!.*google)[a-z0-9][a-z0-9_-]{1,61}[a-z0-9]"),
    63,
    "3 to 63 of a-z, 0-9, - and _, a letter or digit first and last, not goog first, nowhere google",
)
# The provider's own limit: a century.
_LONGEST_RETENTION = 3155760000


def _outputs(call: Call) -> Properties:
    return {
        "url": f"gs://{call.name}",
        "selfLink": f"https://www.googleapis.com/storage/v1/b/{call.name}",
        "projectNumber": int(project_number(call.text("project"))),
        "timeCreated": "2026-01-01T00:00:00.000Z",
        "updated": "2026-01-01T00:00:00.000Z",
        **labels(call),
        **chosen(call, {"storageClass": lambda _: "STANDARD", "publicAccessPrevention": lambda _: "inherited"}),
    }


def _seconds(inputs: Properties) -> int:
    return next((int(value) for value in at(inputs, "retentionPolicy.retentionPeriod")), 0)


def _is_locked(inputs: Properties) -> bool:
    return any(at(inputs, "retentionPolicy.isLocked"))


def _retention(call: Call) -> None:
    """Check the retention period; a locked one can only grow ("Bucket Lock")."""
    seconds = _seconds(call.inputs)
    if call.inputs.get("retentionPolicy") and not 0 < seconds < _LONGEST_RETENTION:
        raise RefusalError(
            f"googleapi: Error 400: Invalid argument: retentionPeriod {seconds}., invalid; seconds, more than 0 and "
            f"less than {_LONGEST_RETENTION}",
            "retentionPolicy",
        )
    if call.old and _is_locked(call.old.inputs) and seconds < _seconds(call.old.inputs):
        raise RefusalError(
            f"googleapi: Error 403: Cannot reduce retention duration of a locked Retention Policy for bucket "
            f"'{call.name}'., forbidden; keep {_seconds(call.old.inputs)} seconds or more"
        )


def _unlocks(old: Value, new: Value) -> bool:
    return bool((old or {}).get("isLocked")) and not (new or {}).get("isLocked")


def _key_place(call: Call) -> None:
    key = call.target(_KEY)
    place = call.text("location").lower()
    # "Cloud KMS locations": it calls the multi-region EU europe.
    place = "europe" if place == "eu" else place
    if key and f"/locations/{place}/" not in key.id:
        raise RefusalError(
            f"googleapi: Error 400: The Cloud KMS key '{key.id}' is not in the location of the bucket, "
            f"'{place}'., invalid; use a key of {place}",
            "encryption",
        )


def _empty(call: Call) -> None:
    """Refuse to delete a bucket with objects unless forceDestroy is set and no lock protects them."""
    objects = [record for record in call.world.of_type(BUCKET_OBJECT) if record.inputs["bucket"] == call.name]
    if objects and _is_locked(call.inputs):
        raise RefusalError(
            f'Bucket "{call.name}" contains objects that have not met the retention period yet and cannot be deleted.; '
            f"wait until {_seconds(call.inputs)} seconds after they were written"
        )
    if objects and not call.inputs.get("forceDestroy"):
        raise RefusalError(
            f"Error trying to delete bucket {call.name} without `force_destroy` set to true; it has {len(objects)} "
            "objects: delete them, or set forceDestroy to true and update before deleting"
        )


def _sink(call: Call) -> Properties:
    number = project_number(call.text("project"))
    return {"writerIdentity": f"serviceAccount:service-{number}@gcp-sa-logging.iam.gserviceaccount.com"}


# "LogSink", Cloud Logging API.
_log_sink = ResourceType(
    token="gcp:logging/projectSink:ProjectSink",
    noun="logging_project_sink",
    identify=lambda call: f"projects/{call.text('project')}/sinks/{call.name}",
    outputs=_sink,
    naming=Naming(
        "name", re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,99}"), 100, "1 to 100 of letters, digits, _, - and ."
    ),
    where=("project",),
    replace_on=("name", "customWriterIdentity"),
    references=(
        Reference(
            "destination",
            (BUCKET,),
            holds=False,
            resolve=lambda _, text: text.removeprefix("storage.googleapis.com/"),
            optional=True,
        ),
    ),
    protected_by={"deletionPolicy": "PREVENT"},
    says=PREVENTED,
)

TYPES = (
    _log_sink,
    ResourceType(
        token=BUCKET,
        noun="bucket",
        identify=lambda call: call.name,
        outputs=_outputs,
        naming=_NAME,
        where=("project",),
        replace_on=(
            *("name", "location", "enableObjectRetention", "customPlacementConfig.dataLocations"),
            "hierarchicalNamespace",
        ),
        replace_if={"retentionPolicy": _unlocks},
        references=(by_key(_KEY), Reference("logging.logBucket", (BUCKET,), holds=False)),
        refuse=(labelled, _retention, _key_place, usable(_KEY, "gs-project-accounts.iam.gserviceaccount.com", _DENIED)),
        refuse_deletion=(_empty,),
        protected_by={"deletionPolicy": "PREVENT"},
        says={
            **PREVENTED,
            Reason.TAKEN: Saying(
                "googleapi: Error 409: Your previous request to create the named bucket succeeded and you already own "
                "it., conflict",
                "bucket {name} exists; all users share one namespace: choose another name, or import it",
            ),
            Reason.MISSING: Saying(
                "googleapi: Error 404: The specified bucket does not exist., notFound",
                "{path} is {value}: create that bucket first",
            ),
        },
    ),
    ResourceType(
        token=BUCKET_OBJECT,
        noun="object",
        identify=lambda call: f"{call.text('bucket')}-{call.name}",
        outputs=lambda call: {
            "outputName": call.name,
            "selfLink": f"https://www.googleapis.com/storage/v1/b/{call.text('bucket')}/o/{call.name}",
        },
        # "About Cloud Storage objects".
        naming=Naming("name", re.compile(r"[^\r\n]+"), 1024, "1 to 1024 characters, no line breaks"),
        replace_on=(
            *("bucket", "name", "cacheControl", "contentDisposition", "contentEncoding", "contentLanguage"),
            *("contentType", "forceEmptyContentType", "source", "storageClass", "kmsKeyName", "metadata"),
        ),
        references=(Reference("bucket", (BUCKET,), holds=False),),
        protected_by={"deletionPolicy": "PREVENT"},
        says=PREVENTED,
        upserts=True,
    ),
)
