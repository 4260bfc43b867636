"""Decisions from hosts' reports that need more than a comparison. Each function yields one finding per subject."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import yaml
from cryptography import x509
from cryptography.exceptions import InvalidSignature

from cluster.audit.evidence import Evidence, File, Kind, Process, Report
from cluster.audit.model import Finding

HEALTH_PATHS = frozenset({"/livez", "/readyz", "/healthz"})
STRONG_PROVIDERS = frozenset({"aescbc", "kms", "secretbox"})
AUDITED = ("secrets", "configmaps", "tokenreviews", "pods/exec", "pods/portforward", "services/proxy")
LEAST_DAYS = 14
LEAST_ETCD = {(3, 6): 14, (3, 7): 1}
"""Release -> the first patch version with fixes for GHSA-xg4h-6gfc-h4m8 and GHSA-6vch-q96h-7gc3 (CHANGELOG of etcd)."""
KEYS_UNDER = ("/etc/kubernetes/", "/etc/etcd/", "/var/lib/kubelet/", "/var/lib/menagerie/")
SEALED = re.compile(r"/var/lib/cloud/.*(user-data|vendor-data|cloud-config)|/var/lib/menagerie/payload-")
SSH = 22
_SHOWN = 5


def anonymous_on_health_paths_only(evidence: Evidence) -> Iterator[Finding]:
    for report, process in evidence.processes("kube-apiserver"):
        if process.flags.get("anonymous-auth") == "false":
            yield Finding(report.host, True, "--anonymous-auth=false")
            continue
        anonymous = _text(report, process, "authentication-config").get("anonymous")
        if anonymous is None:
            yield Finding(report.host, False, "nothing limits anonymous requests")
            continue
        paths = {each.get("path") for each in anonymous.get("conditions") or ()}
        limited = not anonymous.get("enabled") or (bool(paths) and paths <= HEALTH_PATHS)
        yield Finding(report.host, limited, f"anonymous requests: {', '.join(sorted(map(str, paths))) or 'every path'}")


def people_have_an_identity_provider(evidence: Evidence) -> Iterator[Finding]:
    for report, process in evidence.processes("kube-apiserver"):
        providers = _text(report, process, "authentication-config").get("jwt") or ()
        named = [str(each.get("issuer", {}).get("url")) for each in providers]
        yield Finding(report.host, bool(named), f"identity providers: {', '.join(named) or 'none'}")


def first_provider(evidence: Evidence) -> Iterator[Finding]:
    for report, _ in evidence.processes("kube-apiserver"):
        first = next(iter(report.providers), "none")
        yield Finding(report.host, first in STRONG_PROVIDERS, f"first of {', '.join(report.providers) or 'none'}")


def audit_policy(evidence: Evidence) -> Iterator[Finding]:
    for report, process in evidence.processes("kube-apiserver"):
        rules = _text(report, process, "audit-policy-file").get("rules") or ()
        silent = [resource for resource in AUDITED if _level(rules, resource) in ("", "None")]
        observed = f"doesn't log {', '.join(silent)}" if silent else f"{len(rules)} rules, {len(AUDITED)} resources"
        yield Finding(report.host, not silent, observed)


def _level(rules: Iterable[Any], resource: str) -> str:
    """Return the level of the first rule for the resource or for everything, as the API server matches them."""
    for rule in rules:
        named = [each for entry in rule.get("resources") or () for each in entry.get("resources") or ()]
        if resource in named or set(rule) == {"level"}:
            return str(rule["level"])
    return ""


def unique_authorities(evidence: Evidence) -> Iterator[Finding]:
    kubernetes = set(_parsed([evidence.kubernetes_ca])) if evidence.kubernetes_ca else set()
    for report, process in evidence.processes("etcd"):
        paths = [process.flags.get(name, "") for name in ("trusted-ca-file", "peer-trusted-ca-file")]
        trusted = [certificate for path in paths for certificate in _of_file(report, path)]
        if not trusted or not kubernetes:
            yield Finding(process.member, None, "the CAs aren't in the report")
            continue
        shared = kubernetes & set(trusted)
        names = sorted({_name(each.subject) for each in trusted})
        yield Finding(process.member, not shared, f"trusts {', '.join(names)}")


def events_opens_nothing_at_main(evidence: Evidence) -> Iterator[Finding]:
    """Check by signature that no CA for main's clients has signed a certificate of events' members."""
    members = list(evidence.processes("etcd"))
    accepted = [
        authority
        for report, process in members
        if process.unit == "etcd-main.service"
        for authority in _of_file(report, process.flags.get("trusted-ca-file", ""))
    ]
    for report, process in members:
        if process.unit != "etcd-events.service":
            continue
        paths = [process.flags.get(name, "") for name in ("cert-file", "peer-cert-file")]
        held = [certificate for path in paths for certificate in _of_file(report, path)]
        if not accepted or not held:
            yield Finding(process.member, None, "certificates of main or events aren't in the reports")
            continue
        opens = [
            _name(certificate.subject)
            for certificate in held
            if any(_issued(certificate, authority) for authority in accepted)
        ]
        issuers = sorted({_name(each.issuer) for each in held})
        yield Finding(process.member, not opens, f"its certificates are signed by {', '.join(issuers)}")


def certificates_are_good(evidence: Evidence) -> Iterator[Finding]:
    now = datetime.fromtimestamp(evidence.now, UTC)
    for report in evidence.reports:
        ends = sorted(
            (certificate.not_valid_after_utc, each.path)
            for each in report.certificates
            for certificate in _parsed(each.pem)
        )
        short = [f"{path} expires {end:%Y-%m-%d %H:%M} UTC" for end, path in ends if (end - now).days < LEAST_DAYS]
        if not ends:
            yield Finding(report.host, None, "the report has no certificates")
        else:
            first = f"{len(ends)} certificates, the first expires {ends[0][0]:%Y-%m-%d}"
            yield Finding(report.host, not short, _listed(short) or first)


def keys_are_closed(evidence: Evidence) -> Iterator[Finding]:
    for report in evidence.reports:
        keys = {path: file for path, file in report.files.items() if path.startswith(KEYS_UNDER) and file.secret}
        unread = [line for line in report.unreadable if line.startswith(KEYS_UNDER)]
        yield _closed(report, keys, unread, "files with keys")


def user_data_is_sealed(evidence: Evidence) -> Iterator[Finding]:
    for report in evidence.reports:
        kept = {path: file for path, file in report.files.items() if SEALED.match(path)}
        unread = [line for line in report.unreadable if SEALED.match(line)]
        yield _closed(report, kept, unread, "files of user data and payloads")


def _closed(report: Report, files: dict[str, File], unread: list[str], what: str) -> Finding:
    wide = [f"{path} is {file.mode} {file.owner}" for path, file in files.items() if int(file.mode, 8) & 0o077]
    if unread and not wide:
        return Finding(report.host, None, _listed(unread))
    return Finding(report.host, not wide, _listed(wide) or f"{len(files)} {what}")


def loopback_only(evidence: Evidence) -> Iterator[Finding]:
    for report in evidence.reports:
        if report.kind is Kind.WORKER:
            continue
        if not report.listening:
            yield Finding(report.host, None, "the report doesn't say what listens")
            continue
        allowed = evidence.ports.get(report.kind, frozenset()) | {SSH}
        heard = {each.port for each in report.listening if not each.address.startswith(("127.", "::1", "::ffff:127."))}
        further = sorted(heard - allowed)
        observed = (
            f"also listens on {', '.join(map(str, further))}" if further else f"{len(heard)} ports, all in the table"
        )
        yield Finding(report.host, not further, observed)


def etcd_is_recent(evidence: Evidence) -> Iterator[Finding]:
    for report in evidence.of(Kind.ETCD):
        line = report.versions.get("etcd", "")
        match = re.search(r"(\d+)\.(\d+)\.(\d+)", line)
        if not match:
            yield Finding(report.host, None, line or "etcd isn't running, or didn't report a version")
            continue
        major, minor, patch = map(int, match.groups())
        # Releases newer than all in the table have the fixes from the start.
        least = LEAST_ETCD.get((major, minor), 0 if (major, minor) > max(LEAST_ETCD) else patch + 1)
        yield Finding(report.host, patch >= least, match[0])


def _text(report: Report, process: Process, flag: str) -> dict[str, Any]:
    """Return the content of the YAML file that a flag names; {} if there is none."""
    content = yaml.safe_load(report.texts.get(process.flags.get(flag, ""), "") or "{}")
    return content if isinstance(content, dict) else {}


def _of_file(report: Report, path: str) -> list[x509.Certificate]:
    return _parsed(pem for each in report.certificates if each.path == path for pem in each.pem)


def audit_logs_are_shipped(evidence: Evidence) -> Iterator[Finding]:
    logs = evidence.audit_logs
    for report in evidence.of(Kind.API):
        if isinstance(logs, str):
            yield Finding(report.host, None, logs)
            continue
        age_s = evidence.now - logs.newest.get(report.host, 0.0)
        is_there = report.host in logs.newest
        observed = (
            f"newest object is {max(age_s, 0) / 60:.0f} min old" if is_there else "the bucket has no objects of it"
        )
        yield Finding(report.host, is_there and age_s < logs.bound_s, observed)


def audit_logs_are_locked(evidence: Evidence) -> Iterator[Finding]:
    logs = evidence.audit_logs
    if isinstance(logs, str):
        yield Finding("bucket of audit logs", None, logs)
    elif logs.locked_days is None:
        yield Finding("bucket of audit logs", None, "a lab's buckets have no locks", expected=True)
    else:
        observed = f"locked for {logs.locked_days} days of {logs.kept_days}"
        yield Finding("bucket of audit logs", logs.locked_days >= logs.kept_days, observed)


def _parsed(pem: Iterable[str]) -> list[x509.Certificate]:
    return [x509.load_pem_x509_certificate(each.encode()) for each in pem]


def _issued(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _name(name: x509.Name) -> str:
    return ",".join(str(each.value) for each in name.get_attributes_for_oid(x509.NameOID.COMMON_NAME)) or str(name)


def _listed(lines: list[str]) -> str:
    more = f" and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return ", ".join(lines[:_SHOWN]) + more
