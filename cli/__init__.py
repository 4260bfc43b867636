"""The command `menagerie`: arguments, messages and exit codes. The work is done in other folders."""

import os

from clients import on_demand

# gRPC connects us to Pulumi's engine. Its fork(2) handlers close its descriptors in the child and print errors there.
# Ansible is started by such a fork: sometimes its output started with these errors, and it exited before it did anything.
# gRPC reads this once, when it starts.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

on_demand.postpone("kubernetes", on_demand.KUBERNETES)
