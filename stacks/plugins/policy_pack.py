"""The policies as an analyzer of the engine, which calls it for every resource of a preview or an update.

The engine sends the inputs of a resource before it is created (Analyze), and the outputs of all resources at the end
(AnalyzeStack), where all rules run. pulumi-policy is not needed: the SDK includes the protocol.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2, json_format, struct_pb2
from pulumi.runtime.proto import analyzer_pb2 as pb
from pulumi.runtime.proto import analyzer_pb2_grpc, plugin_pb2

from cluster.project import ROOT, TOOLKIT

if __name__ == "__main__":
    sys.path.insert(0, str(TOOLKIT))

from cluster.load import find_cluster, load_cluster
from cluster.problems import SpecError
from cluster.spec import Cluster
from stacks import policies
from stacks.policies.model import Resource, Violation
from stacks.policies.values import shown

NAME, VERSION = "menagerie", "1"
_VERSION_OF_API = re.compile(r"(?<=^azure-native:)(\w+)/v\w+(?=:)")
_EVERY_S = 1.0
# Without these options gRPC refuses messages over 4 MiB, and a stack's outputs all arrive in one message.
_OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


class Pack(analyzer_pb2_grpc.AnalyzerServicer):
    """One run of an engine."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._cluster: Cluster | None = None
        self._inputs: dict[str, Mapping[str, Any]] = {}

    def Handshake(self, request: pb.AnalyzerHandshakeRequest, context: Any) -> pb.AnalyzerHandshakeResponse:
        return pb.AnalyzerHandshakeResponse()

    def GetPluginInfo(self, request: empty_pb2.Empty, context: Any) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version=VERSION)

    def GetAnalyzerInfo(self, request: empty_pb2.Empty, context: Any) -> pb.AnalyzerInfo:
        infos = [
            pb.PolicyInfo(
                name=rule.id,
                displayName=rule.id,
                description=rule.says,
                enforcementLevel=pb.MANDATORY,
                policy_type=pb.POLICY_TYPE_STACK,
            )
            for rule in policies.RULES
        ]
        return pb.AnalyzerInfo(name=NAME, displayName=NAME, version=VERSION, policies=infos)

    def ConfigureStack(
        self, request: pb.AnalyzerStackConfigureRequest, context: grpc.ServicerContext
    ) -> pb.AnalyzerStackConfigureResponse:
        try:
            self._cluster = load_cluster(find_cluster(self._spec(request), self._root))
        except SpecError as error:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"no policies for stack {request.stack}: {error}")
        return pb.AnalyzerStackConfigureResponse()

    def _spec(self, request: pb.AnalyzerStackConfigureRequest) -> str:
        """Return the spec that the stack's configuration names, or the stack's own name, as `stacks.plain` does."""
        given = request.config.get(f"{request.project}:spec")
        return str(self._root / given) if given else request.stack

    def Configure(self, request: pb.ConfigureAnalyzerRequest, context: Any) -> empty_pb2.Empty:
        return empty_pb2.Empty()

    def Analyze(self, request: pb.AnalyzeRequest, context: Any) -> pb.AnalyzeResponse:
        self._inputs[request.urn] = _plain(request.properties)
        return pb.AnalyzeResponse()

    def Remediate(self, request: pb.AnalyzeRequest, context: Any) -> pb.RemediateResponse:
        return pb.RemediateResponse()

    def AnalyzeStack(self, request: pb.AnalyzeStackRequest, context: grpc.ServicerContext) -> pb.AnalyzeResponse:
        if self._cluster is None:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "the engine did not say which stack this is")
            raise AssertionError("abort raises")
        resources = [self._resource(resource) for resource in request.resources]
        return pb.AnalyzeResponse(diagnostics=map(_diagnostic, policies.check(self._cluster, resources)))

    def Cancel(self, request: empty_pb2.Empty, context: Any) -> empty_pb2.Empty:
        return empty_pb2.Empty()

    def _resource(self, resource: pb.AnalyzerResource) -> Resource:
        return Resource(
            _VERSION_OF_API.sub(r"\1", resource.type),
            resource.name,
            resource.urn,
            resource.parent,
            self._inputs.get(resource.urn, {}),
            _plain(resource.properties),
            resource.options.protect,
        )


def _plain(properties: struct_pb2.Struct) -> Mapping[str, Any]:
    plain: Mapping[str, Any] = shown(json_format.MessageToDict(properties))
    return plain


def _diagnostic(violation: Violation) -> pb.AnalyzeDiagnostic:
    (rule,) = (rule for rule in policies.RULES if rule.id == violation.rule)
    return pb.AnalyzeDiagnostic(
        policyName=rule.id,
        policyPackName=NAME,
        policyPackVersion=VERSION,
        description=rule.says,
        message=f"{violation.message}\nfix: {violation.way_out}",
        enforcementLevel=pb.MANDATORY if violation.severity == "error" else pb.ADVISORY,
        urn=violation.resource.urn,
    )


def main() -> None:
    """Serve on a port printed as the first line of standard output, until the engine interrupts this process or dies."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(0))
    parent = os.getppid()
    server = grpc.server(ThreadPoolExecutor(max_workers=4), options=_OPTIONS)
    analyzer_pb2_grpc.add_AnalyzerServicer_to_server(Pack(ROOT), server)
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    # 1: the engine died before this line. A killed engine does not stop its plugins.
    while os.getppid() == parent != 1:
        time.sleep(_EVERY_S)
    os._exit(0)


if __name__ == "__main__":
    main()
