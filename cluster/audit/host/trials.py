"""Tries connections from this host that firewalls should or should not allow. Standard library only.

    python3 trials.py JSON      JSON: [{"address", "port", "path"}]; path: requested by HTTPS without a certificate, ""
                                for a bare connection

Prints a list of outcomes in the same order: "open", "refused", "silent", "unreachable", or the HTTP status as text.
"""

from __future__ import annotations

import errno
import http.client
import json
import socket
import ssl
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

PATIENCE_S = 3.0
AT_ONCE = 16


def outcome(trial: dict[str, Any]) -> str:
    """Return the outcome of one trial."""
    try:
        with socket.create_connection((trial["address"], trial["port"]), PATIENCE_S):
            pass
    except socket.timeout:
        return "silent"
    except ConnectionRefusedError:
        return "refused"
    except OSError as error:
        # A firewall that rejects answers with these too.
        return "unreachable" if error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EACCES) else str(error)
    return status(trial) if trial["path"] else "open"


def status(trial: dict[str, Any]) -> str:
    """Return the HTTP status for a client without a certificate. The server's name is not verified."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection(trial["address"], trial["port"], timeout=PATIENCE_S, context=context)
    try:
        connection.request("GET", trial["path"])
        return str(connection.getresponse().status)
    except (OSError, http.client.HTTPException) as error:
        return f"no answer: {error}"
    finally:
        connection.close()


if __name__ == "__main__":
    with ThreadPoolExecutor(AT_ONCE) as pool:
        print(json.dumps(list(pool.map(outcome, json.loads(sys.argv[1])))))
