"""How a host reads its own secrets: one small program, `/usr/local/sbin/menagerie-secret`.

Contract of the program: ``menagerie-secret NAME`` prints the secret on standard output. On failure
it prints one line with the reason on standard error and exits with 69 (sysexits' EX_UNAVAILABLE)
where the store does not answer, and with 1 where the store answers and refuses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

_LAB_SCRIPT = '''\
#!/usr/bin/python3
"""menagerie-secret NAME: print one secret of this host; the store knows the host by its address."""
import sys
import urllib.error
import urllib.parse
import urllib.request

URL = "{url}/v1/secrets/"
try:
    address = URL + urllib.parse.quote(sys.argv[1], safe="")
    # No proxy: the store is on a network of the host's own.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({{}}))
    sys.stdout.buffer.write(opener.open(address, timeout=5).read())
except IndexError:
    sys.exit("usage: menagerie-secret NAME")
except urllib.error.HTTPError as error:
    print(f"{{address}}: HTTP {{error.code}} {{error.reason}}", file=sys.stderr)
    sys.exit(69 if error.code >= 500 else 1)
except OSError as error:
    print(f"{{address}}: {{getattr(error, 'reason', error)}}", file=sys.stderr)
    sys.exit(69)
'''


class SecretStoreAdapter(Protocol):
    """One kind of secret store, as hosts see it."""

    def script(self) -> str:
        """Text of `/usr/local/sbin/menagerie-secret`; see the module for its contract."""
        ...


@dataclass(frozen=True)
class LabStore:
    """The lab's store: it answers over HTTP on a network of its own. `url` has no slash at its end."""

    url: str

    def script(self) -> str:
        return _LAB_SCRIPT.format(url=self.url)
