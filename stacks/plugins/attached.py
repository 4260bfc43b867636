"""Serves dynamic resources to an engine that did not start this process (PULUMI_DEBUG_PROVIDERS).

Such an engine first sends Attach, which the SDK's server does not implement.
"""

from __future__ import annotations

import runpy
from pathlib import Path

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import ResourceProviderServicer, plugin_pb2


def _attach(_: object, request: plugin_pb2.PluginAttach, context: grpc.ServicerContext) -> empty_pb2.Empty:
    return empty_pb2.Empty()


if __name__ == "__main__":
    ResourceProviderServicer.Attach = _attach  # type: ignore[assignment, method-assign]
    runpy.run_path(str(Path(__file__).with_name("dynamic.py")), run_name="__main__")
