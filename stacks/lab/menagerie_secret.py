#!/usr/bin/python3
"""menagerie-secret NAME: print one secret of this host; the store knows the host by its address."""

import sys
import urllib.error
import urllib.parse
import urllib.request

URL = "STORE_URL/v1/secrets/"
try:
    address = URL + urllib.parse.quote(sys.argv[1], safe="")
    # No proxy: the store is on a network of the host's own.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    sys.stdout.buffer.write(opener.open(address, timeout=5).read())
except IndexError:
    sys.exit("usage: menagerie-secret NAME")
except urllib.error.HTTPError as error:
    print(f"{address}: HTTP {error.code} {error.reason}", file=sys.stderr)
    sys.exit(69 if error.code >= 500 else 1)
except OSError as error:
    print(f"{address}: {getattr(error, 'reason', error)}", file=sys.stderr)
    sys.exit(69)
