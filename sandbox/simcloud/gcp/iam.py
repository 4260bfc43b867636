"""Identities of Google Cloud, and their permissions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from sandbox.simcloud.gcp.bucket_members import allowed_in_bucket
from sandbox.simcloud.gcp.common import bare, chosen, project_number
from sandbox.simcloud.gcp.conditions import few_enough, short_enough
from sandbox.simcloud.gcp.roles import granted_here, of_project
from sandbox.simcloud.gcp.tokens import ACCOUNT, BUCKET, KEY, KEY_RING, ROLE, SECRET
from sandbox.simcloud.gcp.words import PREVENTED, conflict
from sandbox.simcloud.identifiers import number
from sandbox.simcloud.rules import Call, Naming, Reason, Reference, RefusalError, ResourceType, Rule, Saying
from sandbox.simcloud.values import Properties, at

_ACCOUNT_NAME = Naming(
    "accountId",
    re.compile(r"[a-z]([-a-z0-9]{4,28}[a-z0-9])"),
    30,
    "6 to 30 of a-z, 0-9 and hyphens, a letter first, no hyphen last",
)
_ROLE_NAME = Naming("roleId", re.compile(r"[a-zA-Z0-9_.]{3,64}"), 64, "3 to 64 of letters, digits, _ and .")

# "Principal identifiers", IAM.
_MEMBER = re.compile(
    r"(user|serviceAccount|group|domain|deleted|principal|principalSet|projectOwner|projectEditor|projectViewer):.+"
    r"|allUsers|allAuthenticatedUsers"
)
_ROLE = re.compile(r"roles/[\w.]+|(projects|organizations)/[^/]+/roles/[\w.]+")
_PERMISSION = re.compile(r"[a-z0-9-]+\.[A-Za-z0-9]+\.[A-Za-z]+")


def _own(call: Call, email: str) -> bool:
    """Whether an account belongs to the call's project; those must exist before they are used."""
    return email.endswith(f"@{call.inputs.get('project') or call.settings.account}.iam.gserviceaccount.com")


def _email(text: str) -> str:
    return text.removeprefix("serviceAccount:")


def of_account(path: str) -> Reference:
    """Return a reference by e-mail address or member to a service account, in this project or elsewhere."""
    return Reference(path, (ACCOUNT,), holds=False, resolve=lambda _, text: _email(text), optional=True)


def known_account(path: str) -> Rule:
    """Return a rule: service accounts of the project at a path exist."""

    def rule(call: Call) -> None:
        for text in map(str, at(call.inputs, path)):
            email = _email(text)
            if _own(call, email) and not call.world.find((ACCOUNT,), email):
                raise RefusalError(
                    f"googleapi: Error 400: Service account {email} does not exist., badRequest; "
                    f"{path} must name an existing account: create it first",
                    path,
                )

    return rule


def _member(call: Call) -> None:
    text = call.text("member")
    if not _MEMBER.fullmatch(text):
        raise conflict(
            "member", f'invalid value for member (IAM members must have a known prefix): "{text}"',
            "write for example serviceAccount:<email>",
        )  # fmt: skip


def _role(call: Call) -> None:
    text = call.text("role")
    if not _ROLE.fullmatch(text):
        raise RefusalError(
            f"googleapi: Error 400: Role {text} is not supported for this resource., badRequest; "
            "write roles/<name> or projects/<project>/roles/<name>",
            "role",
        )
    if text.startswith(f"projects/{call.settings.account}/roles/") and not call.world.find((ROLE,), text):
        raise RefusalError(
            f"googleapi: Error 400: Role ({text}) does not exist in the resource's hierarchy., badRequest; "
            "create the role first",
            "role",
        )
    granted_here(call)


def _member_id(parent: Callable[[Call], str]) -> Callable[[Call], str]:
    def identify(call: Call) -> str:
        title = "".join(f"/{text}" for text in at(call.inputs, "condition.title"))
        return f"{parent(call)}/{call.text('role')}/{call.text('member')}{title}"

    return identify


def _membership(
    token: str, noun: str, parent: Callable[[Call], str], *references: Reference, refuse: tuple[Rule, ...] = ()
) -> ResourceType:
    """Return a type for one member of one role on one resource.

    Adding an existing member is not an error. The ID contains everything.
    """
    return ResourceType(
        token=token,
        noun=noun,
        identify=_member_id(parent),
        where=() if references else ("project",),
        replace_on=("*",),
        references=(
            *references,
            of_account("member"),
            Reference("role", (ROLE,), holds=False, optional=True),
        ),
        refuse=(_member, _role, known_account("member"), short_enough, few_enough, *refuse),
        upserts=True,
    )


def _members(call: Call) -> None:
    for text in map(str, at(call.inputs, "members[]")):
        if not _MEMBER.fullmatch(text):
            raise conflict(
                "members", f'invalid value for members (IAM members must have a known prefix): "{text}"',
                "write for example serviceAccount:<email>",
            )  # fmt: skip


def _binding(token: str, noun: str, path: str, *references: Reference) -> ResourceType:
    """Return a type for all members of one role on one resource: everybody else loses the role."""
    return ResourceType(
        token=token,
        noun=noun,
        identify=lambda call: f"{_target(path)(call)}/{call.text('role')}",
        replace_on=(path, "role", "condition"),
        references=(
            *references,
            of_account("members[]"),
            Reference("role", (ROLE,), holds=False, optional=True),
        ),
        refuse=(_members, _role, known_account("members[]"), short_enough),
        upserts=True,
    )


def _target(path: str) -> Callable[[Call], str]:
    def identify(call: Call) -> str:
        target = call.target(path)
        return target.id if target else call.text(path)

    return identify


def _account_id(call: Call) -> str:
    return f"projects/{call.text('project')}/serviceAccounts/{_address(call)}"


def _address(call: Call) -> str:
    return f"{call.name}@{call.text('project')}.iam.gserviceaccount.com"


def _account_outputs(call: Call) -> Properties:
    email = _address(call)
    return {
        "email": email,
        "name": call.id,
        "member": f"serviceAccount:{email}",
        "uniqueId": number(call.id, 21),
    }


def _as_account(outputs: Properties) -> Iterator[tuple[str, str]]:
    yield ACCOUNT, str(outputs["email"])


def _texts(**longest: int) -> Rule:
    def rule(call: Call) -> None:
        for name, most in longest.items():
            if len(call.text(name)) > most:
                raise conflict(name, f"expected length to be in the range (0 - {most})", "shorten it")

    return rule


def _permissions(call: Call) -> None:
    for text in map(str, at(call.inputs, "permissions[]")):
        if not _PERMISSION.fullmatch(text) or not of_project(text):
            raise RefusalError(
                f"googleapi: Error 400: Permission {text} is not valid., badRequest; permissions are "
                "<service>.<resource>.<verb>, and none of folders and organizations",
                "permissions",
            )


_account = ResourceType(
    token=ACCOUNT,
    noun="service_account",
    identify=_account_id,
    outputs=_account_outputs,
    naming=_ACCOUNT_NAME,
    where=("project",),
    replace_on=("accountId",),
    # "ServiceAccount", IAM API.
    refuse=(_texts(displayName=100, description=256),),
    implied=_as_account,
    protected_by={"deletionPolicy": "PREVENT"},
    says={
        **PREVENTED,
        Reason.TAKEN: Saying(
            "googleapi: Error 409: Service account {name} already exists within project projects/{account}., "
            "alreadyExists",
            "choose another accountId, import it (`pulumi import {type} <name> {id}`), or delete it",
        ),
    },
)

_custom_role = ResourceType(
    token=ROLE,
    noun="custom_role",
    identify=lambda call: f"projects/{call.text('project')}/roles/{call.name}",
    outputs=lambda call: {"name": call.id, "deleted": False, **chosen(call, {"stage": lambda _: "GA"})},
    naming=_ROLE_NAME,
    where=("project",),
    replace_on=("roleId",),
    # "Role", IAM API.
    refuse=(_permissions, _texts(title=100, description=300)),
    protected_by={"deletionPolicy": "PREVENT"},
    says=PREVENTED,
)


# "Service agents", IAM: services whose agent's name differs.
_AGENTS = {"file": "cloud-filer", "compute": "compute-system"}


def _agent(call: Call) -> Properties:
    service = call.text("service").removesuffix(".googleapis.com")
    kind = _AGENTS.get(service, f"gcp-sa-{service}")
    email = f"service-{project_number(call.text('project'))}@{kind}.iam.gserviceaccount.com"
    return {"email": email, "member": f"serviceAccount:{email}"}


# The provider requests the agent, which the project keeps from then on.
_service_identity = ResourceType(
    token="gcp:projects/serviceIdentity:ServiceIdentity",
    noun="service_identity",
    identify=lambda call: f"projects/{call.text('project')}/services/{call.text('service')}",
    outputs=_agent,
    where=("project",),
    replace_on=("service",),
    upserts=True,
)

TYPES = (
    _account,
    _custom_role,
    _service_identity,
    _membership("gcp:projects/iAMMember:IAMMember", "project_iam_member", lambda call: call.text("project")),
    _membership(
        "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember",
        "kms_crypto_key_iam_member",
        _target("cryptoKeyId"),
        Reference("cryptoKeyId", (KEY,), holds=False),
    ),
    _binding(
        "gcp:kms/cryptoKeyIAMBinding:CryptoKeyIAMBinding",
        "kms_crypto_key_iam_binding",
        "cryptoKeyId",
        Reference("cryptoKeyId", (KEY,), holds=False),
    ),
    _binding(
        "gcp:secretmanager/secretIamBinding:SecretIamBinding",
        "secret_manager_secret_iam_binding",
        "secretId",
        Reference("secretId", (SECRET,), holds=False, resolve=bare),
    ),
    _membership(
        "gcp:kms/keyRingIAMMember:KeyRingIAMMember",
        "kms_key_ring_iam_member",
        _target("keyRingId"),
        Reference("keyRingId", (KEY_RING,), holds=False),
    ),
    _membership(
        "gcp:secretmanager/secretIamMember:SecretIamMember",
        "secret_manager_secret_iam_member",
        _target("secretId"),
        Reference("secretId", (SECRET,), holds=False, resolve=bare),
    ),
    _membership(
        "gcp:storage/bucketIAMMember:BucketIAMMember",
        "storage_bucket_iam_member",
        lambda call: f"b/{call.text('bucket')}",
        Reference("bucket", (BUCKET,), holds=False),
        refuse=(allowed_in_bucket,),
    ),
    _membership(
        "gcp:serviceaccount/iAMMember:IAMMember",
        "service_account_iam_member",
        _target("serviceAccountId"),
        Reference("serviceAccountId", (ACCOUNT,), holds=False),
    ),
)
