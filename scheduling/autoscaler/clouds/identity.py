"""What the credentials of clouds have in common: found in the environment, by the cloud's own program, or by the machine."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping
from typing import Any

from scheduling.autoscaler.clouds.http import Answer, Http, Request
from scheduling.autoscaler.groups import GroupError

_PROGRAM_S = 30
EARLY_S = 300.0
"""How long before their end credentials are got anew."""


class NoneHereError(Exception):
    """This way has none; another may."""


def from_program(command: list[str], environment: Mapping[str, str]) -> Any:
    """The JSON that a cloud's program prints. NoneHereError where the machine does not have it, GroupError where it fails."""
    program = shutil.which(command[0], path=environment.get("PATH"))
    if program is None:
        raise NoneHereError(command[0])
    try:
        done = subprocess.run(
            [program, *command[1:]],
            capture_output=True,
            text=True,
            check=False,
            timeout=_PROGRAM_S,
            stdin=subprocess.DEVNULL,
            env=dict(environment),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GroupError(f"`{' '.join(command)}` did not end: {error}") from None
    if done.returncode:
        raise GroupError(f"`{' '.join(command)}` failed: {done.stderr.strip()[-300:]}; log in again with it")
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise GroupError(f"`{' '.join(command)}` printed no JSON") from None


def of_machine(http: Http, make: Callable[[], Request]) -> Answer:
    """What the metadata service of this machine says. NoneHereError where it is none of a cloud's, or has no identity."""
    request = make()
    answer = http.once(request)
    if answer is None or answer.status != 200:
        raise NoneHereError(request.url)
    return answer


def told_json(answer: Answer, who: str, advice: str) -> Any:
    """The JSON of a good answer. GroupError with who said what, and the way out."""
    if answer.status != 200:
        raise GroupError(f"{who} refuses these credentials: HTTP {answer.status} {answer.text}; {advice}")
    try:
        return json.loads(answer.body)
    except ValueError:
        raise GroupError(f"{who} answered no JSON: {answer.text}") from None


def never_throttled(_: Answer) -> bool:
    """For servers that say it by HTTP's own 429."""
    return False
