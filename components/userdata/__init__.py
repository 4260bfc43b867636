"""What a cloud host boots from: its payload, cloud-init, and the programs that fetch, apply and refresh it."""

from components.userdata.cloud_init import render as render
from components.userdata.cloud_init import render_packed as render_packed
from components.userdata.cloud_init import startup_script as startup_script
from components.userdata.payload import Payload as Payload
from components.userdata.stores import SecretStoreAdapter as SecretStoreAdapter
