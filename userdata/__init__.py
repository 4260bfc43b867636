"""User data of cloud hosts: a HostConfig becomes a Payload for the store, and `render` a text that refers to it."""

from userdata.cloud_init import render as render
from userdata.cloud_init import render_packed as render_packed
from userdata.cloud_init import startup_script as startup_script
from userdata.payload import Payload as Payload
from userdata.stores import SecretStoreAdapter as SecretStoreAdapter
