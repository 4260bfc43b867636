"""A cloud host's payload and user data, and the programs on the host that fetch, apply and refresh the payload."""

from components.userdata.cloud_init import render as render
from components.userdata.cloud_init import render_packed as render_packed
from components.userdata.cloud_init import startup_script as startup_script
from components.userdata.payload import Payload as Payload
from components.userdata.stores import SecretStoreAdapter as SecretStoreAdapter
