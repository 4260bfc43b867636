"""Certificates of this router: their keys and their ends."""

import os
import ssl

from . import host

FOLDER = "/etc/swanctl/x509/"
PRIVATE = "/etc/swanctl/private/"
AUTHORITIES = "/etc/swanctl/x509ca/menagerie-*.pem"


def connections(settings):
    """Return file name -> the connections that use this certificate of the router."""
    by_certificate = {}
    for link in settings["links"].values():
        if "certificate" in link:
            by_certificate.setdefault(link["certificate"], []).append(link["connection"])
    return by_certificate


def fits(name):
    """Check that the certificate matches the key, which never leaves this machine."""
    if not os.path.exists(PRIVATE + name):
        raise host.Failed(f"{PRIVATE}{name} is missing: create the key and its request with: menagerie vpn request")
    own = host.run("openssl", "pkey", "-in", PRIVATE + name, "-pubout")
    if host.run("openssl", "x509", "-in", FOLDER + name, "-noout", "-pubkey") != own:
        raise host.Failed(f"{FOLDER}{name} does not match the key {PRIVATE}{name}; nothing was loaded")


def expires(name):
    """Return the certificate's end as Unix time."""
    line = host.run("openssl", "x509", "-in", FOLDER + name, "-noout", "-enddate").strip()
    return ssl.cert_time_to_seconds(line.partition("=")[2])
