"""All questions about a cluster, asked in the order in which answers depend on each other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from clients.clouds import LoginError
from cluster.spec import Cluster
from operations.doctor.choose import cloud_questions
from operations.doctor.images import manifest_question
from operations.doctor.local import GROUP, local_questions
from operations.doctor.model import Answer, AnswerRow, Question, Report, ok, wrong
from operations.doctor.run import PATIENCE_S, Tell, ask, not_asked
from operations.stack import environment
from stacks.credentials import login, missing


def examine(cluster: Cluster, tell: Tell, manifest: Path | None = None, patience_s: float = PATIENCE_S) -> Report:
    """Ask everything, and return the answers. manifest: of the image (`operations.doctor.images`). Changes nothing."""
    cloud = cluster.spec.control_plane.cloud
    local = local_questions(cluster)
    if manifest and not cluster.is_lab:
        local.append(manifest_question(cluster, manifest))
    if cluster.is_lab:
        return Report(cluster.name, str(cloud), tuple(ask(local, tell, patience_s)))
    variables = environment(cluster)
    lacking = missing(cloud, variables)
    credentials = [wrong(text, *login(cloud)) for text in lacking] or [ok("some are configured")]
    first = [AnswerRow(GROUP, "credentials", answer) for answer in credentials]
    try:
        identity, *others = cloud_questions(cluster, variables.get("GOOGLE_PROJECT", ""))
    except ModuleNotFoundError as error:
        extra = wrong(f"the libraries of {cloud} are not installed ({error.name})", f"uv tool install '.[{cloud}]'")
        first.append(AnswerRow(GROUP, "libraries", extra))
        return Report(cluster.name, str(cloud), (*first, *ask(local, tell, patience_s)))
    if lacking:
        rows = [*first, *ask(local, tell, patience_s), *not_asked([identity, *others], "there are no credentials")]
        return Report(cluster.name, str(cloud), tuple(rows))
    refused: list[str] = []
    rows = [*first, *ask([*local, _with_login(identity, login(cloud), refused)], tell, patience_s)]
    rows += not_asked(others, "the cloud does not accept the login") if refused else ask(others, tell, patience_s)
    return Report(cluster.name, str(cloud), tuple(rows))


def _with_login(question: Question, commands: tuple[str, ...], refused: list[str]) -> Question:
    """Return the question about the identity: a login that the cloud does not accept is wrong, and noted in `refused`."""

    def asked() -> list[Answer]:
        try:
            return list(question.ask())
        except LoginError as error:
            refused.append(str(error))
            return [wrong(str(error), *commands)]

    return replace(question, ask=asked)
