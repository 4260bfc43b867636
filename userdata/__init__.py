"""User data of cloud hosts: `render` turns a HostConfig into cloud-init's text."""

from userdata.cloud_init import render as render
from userdata.stores import SecretStoreAdapter as SecretStoreAdapter
