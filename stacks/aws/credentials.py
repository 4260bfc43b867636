"""Checks for the credentials that `up` needs for AWS, without a request to AWS.

"Standardized credential providers" of the AWS SDKs and Tools Reference Guide: where SDKs look, in this order.
"""

from __future__ import annotations

from collections.abc import Mapping
from configparser import ConfigParser, Error
from pathlib import Path

from cluster.reading import UnreadableError, read_bytes

LOGIN = (
    "aws configure sso --profile menagerie",
    "aws sso login --profile menagerie",
    "export AWS_PROFILE=menagerie",
)
"""How a person logs in."""
_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
_TOKEN = ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN")
_CONTAINER = ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
_DEFAULT = "default"
_EC2 = "Amazon EC2"
""""Detect whether a host is an EC2 instance": the system vendor, for all but the oldest types."""


def missing(environment: Mapping[str, str], vendor: Path = Path("/sys/class/dmi/id/sys_vendor")) -> list[str]:
    """Return what is wrong with the credentials, each with a way out; [] if they may work.

    vendor: the file with the name of this machine's vendor; an EC2 instance has the credentials of its profile.
    """
    for names, what in ((_KEYS, "an access key"), (_TOKEN, "a web identity")):
        given = [name for name in names if environment.get(name)]
        if given:
            return _half(names, given, what) or _no_file(environment)
    if any(environment.get(name) for name in _CONTAINER):
        return []
    profile = environment.get("AWS_PROFILE") or environment.get("AWS_DEFAULT_PROFILE")
    profiles, files = _profiles(environment)
    if (profile or _DEFAULT) in profiles:
        return []
    if profile:
        names_ = ", ".join(sorted(profiles)) or "none"
        return [
            f"AWS_PROFILE is {profile}, but {files} have no such profile (they have {names_}); `aws configure sso` creates one"
        ]
    if _text(vendor).strip() == _EC2 and environment.get("AWS_EC2_METADATA_DISABLED", "").lower() != "true":
        return []
    problem = (
        f"there are no credentials for AWS: {' and '.join(_KEYS)} are not set, nor is AWS_PROFILE, and {files} have no "
        f"profile {_DEFAULT}; run `aws configure sso` and `aws sso login --profile <name>` and set AWS_PROFILE, or set "
        f"the variables, for an identity with the permissions in docs/start/aws.md"
    )
    return [problem]


def _half(names: tuple[str, ...], given: list[str], what: str) -> list[str]:
    return [
        f"{' and '.join(given)} is set but {name} is not, and {what} needs both; set it too, or unset the other"
        for name in names
        if name not in given
    ]


def _no_file(environment: Mapping[str, str]) -> list[str]:
    token = environment.get(_TOKEN[0])
    if token and not environment.get(_KEYS[0]) and not Path(token).is_file():
        return [f"{_TOKEN[0]} names {token}, which does not exist; the platform that runs this must write it"]
    return []


def _profiles(environment: Mapping[str, str]) -> tuple[frozenset[str], str]:
    """Return the names of the profiles in the shared files, and the files' paths for messages."""
    folder = Path(environment.get("HOME") or "~").expanduser() / ".aws"
    credentials = Path(environment.get("AWS_SHARED_CREDENTIALS_FILE") or folder / "credentials")
    config = Path(environment.get("AWS_CONFIG_FILE") or folder / "config")
    # A profile in the config file with only a region contains no credentials.
    identifying = (
        "sso_session",
        "sso_start_url",
        "role_arn",
        "credential_process",
        "aws_access_key_id",
        "login_session",
    )
    profiles = set(_sections(credentials, ("aws_access_key_id",)))
    profiles |= {name.removeprefix("profile ") for name in _sections(config, identifying)}
    return frozenset(profiles), f"{credentials} and {config}"


def _sections(file: Path, identifying: tuple[str, ...]) -> list[str]:
    parser = ConfigParser(interpolation=None, strict=False, default_section="")
    try:
        parser.read_string(_text(file))
    except Error:
        return []
    return [name for name in parser.sections() if any(parser.has_option(name, key) for key in identifying)]


def _text(file: Path) -> str:
    try:
        return read_bytes(file).decode(errors="replace")
    except UnreadableError:
        return ""
