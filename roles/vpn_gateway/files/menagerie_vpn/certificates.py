"""Certificates of this router: whose key they are for, and until when."""

import os
import ssl

from . import host

FOLDER = "/etc/swanctl/x509/"
PRIVATE = "/etc/swanctl/private/"
AUTHORITIES = "/etc/swanctl/x509ca/menagerie-*.pem"


def connections(wanted):
    """File name -> the connections that a router's certificate is for."""
    found = {}
    for link in wanted["links"].values():
        if "certificate" in link:
            found.setdefault(link["certificate"], []).append(link["connection"])
    return found


def fits(name):
    """The certificate is that of the key, which never leaves this machine."""
    if not os.path.exists(PRIVATE + name):
        raise host.Failed(f"{PRIVATE}{name} is missing: make the key and its request with: menagerie vpn request")
    own = host.run("openssl", "pkey", "-in", PRIVATE + name, "-pubout")
    if host.run("openssl", "x509", "-in", FOLDER + name, "-noout", "-pubkey") != own:
        raise host.Failed(f"{FOLDER}{name} is the certificate of another key than {PRIVATE}{name}; nothing was loaded")


def expires(name):
    """Unix time."""
    told = host.run("openssl", "x509", "-in", FOLDER + name, "-noout", "-enddate").strip()
    return ssl.cert_time_to_seconds(told.partition("=")[2])
