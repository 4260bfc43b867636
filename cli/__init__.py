"""The command `menagerie`: arguments, messages and exit codes. The work is done in other folders."""

import os

# gRPC, which speaks with Pulumi's engine, has handlers for fork(2) that close its descriptors in the child and write there
# what goes wrong. Ansible is started by such a fork: now and then its output began with that, and it ended before it began.
# Read once, when gRPC starts.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
