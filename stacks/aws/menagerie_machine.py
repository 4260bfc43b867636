#!/usr/bin/python3
"""menagerie-machine NAME: whether the cluster's pools have an instance of that name; see stacks/machines.py."""

import hashlib
import importlib
import json
import re
import sys
import time
import urllib.parse
from datetime import datetime
from http.client import HTTPException
from xml.etree import ElementTree

sys.path.insert(0, "LIBRARY_OF_HOST")
bucket = importlib.import_module("menagerie_host.bucket")
bucket_s3 = importlib.import_module("menagerie_host.bucket_s3")

GROUPS: dict[str, str] = json.loads(r"""GROUPS_OF_POOLS""")
"""Tag `role` of a pool's machines -> how the name of its group begins. AWS alone writes tags that begin with aws:."""
OURS = {"menagerie": "true", "cluster": "CLUSTER_NAME"}
EC2 = "EC2_URL"
THERE = ("pending", "running")


def described(name: str) -> ElementTree.Element:
    """EC2's answer, without the namespace of its version. Of what is not there a filter finds nothing, where an id is an error."""
    query = {
        "Action": "DescribeInstances",
        "Filter.1.Name": "instance-id",
        "Filter.1.Value.1": name,
        "Version": "2016-11-15",
    }
    body = urllib.parse.urlencode(query).encode()
    headers = {
        "content-type": "application/x-www-form-urlencoded; charset=utf-8",
        "host": EC2.split("//")[1],
        "x-amz-content-sha256": hashlib.sha256(body).hexdigest(),
        "x-amz-date": time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()),
    }
    who = bucket_s3.role({"metadata": "METADATA_URL"})
    proven = bucket_s3.signed("POST", "/", headers, who, "REGION_NAME", "ec2")
    status, text = bucket.send(EC2, "POST", "/", proven, body)
    if status != 200:
        why = " (needed: ec2:DescribeInstances)" if "UnauthorizedOperation" in text else ""
        sys.exit(f"{EC2}: HTTP {status} {' '.join(text.split())[:600]}{why}")
    return ElementTree.fromstring(re.sub(r' xmlns="[^"]*"', "", text))


def made_at(instance: ElementTree.Element) -> float | None:
    """When it was first launched: a start after a stop is a launch too, but its first interface stays attached."""
    tags = {tag.findtext("key", ""): tag.findtext("value", "") for tag in instance.iterfind("tagSet/item")}
    group = GROUPS.get(tags.get("role", ""))
    ours = all(tags.get(key) == value for key, value in OURS.items())
    if not ours or not group or not tags.get("aws:autoscaling:groupName", "").startswith(group):
        return None
    if instance.findtext("instanceState/name") not in THERE:
        return None
    attachments = instance.iterfind("networkInterfaceSet/item/attachment")
    first = [each.findtext("attachTime") for each in attachments if each.findtext("deviceIndex") == "0"]
    times = [instance.findtext("launchTime"), *first]
    return min(datetime.fromisoformat(each).timestamp() for each in times if each)


made = None
try:
    if re.fullmatch(r"i-[0-9a-f]{8}([0-9a-f]{9})?", sys.argv[1]):
        for item in described(sys.argv[1]).iterfind("reservationSet/item/instancesSet/item"):
            if item.findtext("instanceId") == sys.argv[1]:
                made = made_at(item)
except (OSError, HTTPException, ValueError, KeyError, ElementTree.ParseError) as error:
    sys.exit(f"{EC2}: {type(error).__name__}: {error}")
print(json.dumps({"made": made}))
