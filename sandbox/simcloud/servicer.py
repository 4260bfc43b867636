"""The Pulumi engine's provider protocol, answered by a simulated cloud."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata

import grpc
from google.protobuf import any_pb2, empty_pb2
from google.protobuf.message import Message
from pulumi.runtime.proto import plugin_pb2, provider_pb2_grpc
from pulumi.runtime.proto import provider_pb2 as pb

from sandbox.simcloud.changes import ChangeKind
from sandbox.simcloud.faults import Effect, Faults
from sandbox.simcloud.identifiers import digest
from sandbox.simcloud.rules import RefusalError, Settings
from sandbox.simcloud.schema import mistakes
from sandbox.simcloud.simulation import SimulatedCloud, UpdatePlan
from sandbox.simcloud.values import from_wire, plain, to_wire
from sandbox.simcloud.world import Record, normal

_KINDS = {
    (ChangeKind.ADD, False): pb.PropertyDiff.ADD,
    (ChangeKind.ADD, True): pb.PropertyDiff.ADD_REPLACE,
    (ChangeKind.DELETE, False): pb.PropertyDiff.DELETE,
    (ChangeKind.DELETE, True): pb.PropertyDiff.DELETE_REPLACE,
    (ChangeKind.UPDATE, False): pb.PropertyDiff.UPDATE,
    (ChangeKind.UPDATE, True): pb.PropertyDiff.UPDATE_REPLACE,
}


class Provider(provider_pb2_grpc.ResourceProviderServicer):
    """One cloud's provider.

    The engine opens a connection for each provider resource of a program and configures it over that connection;
    requests do not name their provider resource.
    """

    def __init__(self, simulation: SimulatedCloud, faults: Faults) -> None:
        self._simulation = simulation
        self._faults = faults
        self._settings: dict[str, Settings] = {}

    def Handshake(
        self, request: pb.ProviderHandshakeRequest, context: grpc.ServicerContext
    ) -> pb.ProviderHandshakeResponse:
        return pb.ProviderHandshakeResponse(accept_secrets=True, supports_autonaming_configuration=True)

    def Attach(self, request: plugin_pb2.PluginAttach, context: grpc.ServicerContext) -> empty_pb2.Empty:
        return empty_pb2.Empty()

    def Cancel(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> empty_pb2.Empty:
        return empty_pb2.Empty()

    def GetPluginInfo(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version=self._version())

    def GetSchema(self, request: pb.GetSchemaRequest, context: grpc.ServicerContext) -> pb.GetSchemaResponse:
        schema = {"name": self._simulation.cloud.package, "version": self._version()}
        return pb.GetSchemaResponse(schema=json.dumps(schema))

    def CheckConfig(self, request: pb.CheckRequest, context: grpc.ServicerContext) -> pb.CheckResponse:
        return pb.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: pb.DiffRequest, context: grpc.ServicerContext) -> pb.DiffResponse:
        same = from_wire(request.olds) == from_wire(request.news)
        return pb.DiffResponse(changes=pb.DiffResponse.DIFF_NONE if same else pb.DiffResponse.DIFF_SOME)

    def Configure(self, request: pb.ConfigureRequest, context: grpc.ServicerContext) -> pb.ConfigureResponse:
        with self._refusing(context):
            self._settings[context.peer()] = self._simulation.cloud.configure(plain(from_wire(request.args)))
        return pb.ConfigureResponse(acceptSecrets=True, supportsPreview=True, supports_autonaming_configuration=True)

    def Check(self, request: pb.CheckRequest, context: grpc.ServicerContext) -> pb.CheckResponse:
        naming = request.autonaming
        with self._refusing(context):
            inputs, failures = self._simulation.check(
                self._configured(context),
                request.type,
                request.urn,
                from_wire(request.olds),
                from_wire(request.news),
                digest(request.randomSeed.hex() or request.urn),
                None if naming.mode == pb.CheckRequest.AutonamingOptions.DISABLE else naming.proposed_name,
            )
        failed = [pb.CheckFailure(property=failure.property, reason=str(failure)) for failure in failures]
        for mistake in mistakes(normal(request.type), inputs):
            failed.append(pb.CheckFailure(property=mistake.path, reason=f"{mistake.path} {mistake.text}"))
        return pb.CheckResponse(inputs=to_wire(inputs), failures=failed)

    def Diff(self, request: pb.DiffRequest, context: grpc.ServicerContext) -> pb.DiffResponse:
        plan = self._simulation.diff(request.type, from_wire(request.old_inputs), from_wire(request.news))
        return _diff_response(plan)

    def Create(self, request: pb.CreateRequest, context: grpc.ServicerContext) -> pb.CreateResponse:
        inputs = from_wire(request.properties)
        if request.preview:
            planned = self._simulation.planned(request.type, inputs, {}, {})
            return pb.CreateResponse(properties=to_wire(planned))
        made: list[Record] = []
        with self._call(context, "create", request.type, made) as settings:
            record = self._simulation.create(settings, request.type, request.urn, inputs)
            made.append(record)
        return pb.CreateResponse(id=record.id, properties=to_wire(record.outputs))

    def Update(self, request: pb.UpdateRequest, context: grpc.ServicerContext) -> pb.UpdateResponse:
        inputs = from_wire(request.news)
        if request.preview:
            old_inputs, old = from_wire(request.old_inputs), from_wire(request.olds)
            planned = self._simulation.planned(request.type, inputs, old_inputs, old)
            return pb.UpdateResponse(properties=to_wire(planned))
        with self._call(context, "update", request.type) as settings:
            record = self._simulation.update(settings, request.type, request.urn, request.id, inputs)
        return pb.UpdateResponse(properties=to_wire(record.outputs))

    def Read(self, request: pb.ReadRequest, context: grpc.ServicerContext) -> pb.ReadResponse:
        with self._call(context, "read", request.type):
            record = self._simulation.read(
                request.type, request.id, from_wire(request.inputs), from_wire(request.properties)
            )
        if record is None:
            return pb.ReadResponse()
        return pb.ReadResponse(id=record.id, properties=to_wire(record.outputs), inputs=to_wire(record.inputs))

    def Delete(self, request: pb.DeleteRequest, context: grpc.ServicerContext) -> empty_pb2.Empty:
        with self._call(context, "delete", request.type) as settings:
            self._simulation.delete(settings, request.type, request.id)
        return empty_pb2.Empty()

    def Invoke(self, request: pb.InvokeRequest, context: grpc.ServicerContext) -> pb.InvokeResponse:
        with self._call(context, "invoke", request.tok) as settings:
            result = self._simulation.invoke(settings, request.tok, from_wire(request.args))
        return pb.InvokeResponse(**{"return": to_wire(result)})

    @contextmanager
    def _call(
        self, context: grpc.ServicerContext, verb: str, token: str, made: list[Record] | None = None
    ) -> Iterator[Settings]:
        """Run a call to the cloud's API, with the fault that it meets. made: takes what the call creates."""
        fault = self._faults.hit(verb, normal(token))
        with self._refusing(context):
            if fault and fault.effect is Effect.FAIL:
                raise RefusalError(fault.message)
            if fault and fault.effect is Effect.THROTTLE:
                raise self._simulation.throttled(verb, token)
            yield self._configured(context)
        if fault and fault.effect is Effect.PARTLY and made:
            _abort_partly(context, made[0], fault.message)
        elif fault:
            fault.meanwhile()
            context.abort(
                grpc.StatusCode.UNAVAILABLE, f"the answer to {verb} {token} was lost: connection reset by peer"
            )

    def _configured(self, context: grpc.ServicerContext) -> Settings:
        try:
            return self._settings[context.peer()]
        except KeyError:
            raise RefusalError(f"{self._simulation.cloud.package} was not configured over this connection") from None

    @contextmanager
    def _refusing(self, context: grpc.ServicerContext) -> Iterator[None]:
        try:
            yield
        except RefusalError as error:
            # With INTERNAL, UNKNOWN or DATA_LOSS the engine would report its own state as corrupt.
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))

    def _version(self) -> str:
        """Return the SDK's version, because the engine warns if they differ."""
        try:
            return metadata.version(f"pulumi-{self._simulation.cloud.package}")
        except metadata.PackageNotFoundError:
            return ""


def _abort_partly(context: grpc.ServicerContext, record: Record, message: str) -> None:
    """Fail a creation as the engine's protocol has it for a resource that exists."""
    code = grpc.StatusCode.UNKNOWN
    properties = to_wire(record.outputs)
    detail = pb.ErrorResourceInitFailed(
        id=record.id, properties=properties, inputs=to_wire(record.inputs), reasons=[message]
    )
    context.set_trailing_metadata((("grpc-status-details-bin", _status(code.value[0], message, detail)),))
    context.abort(code, message)


def _status(code: int, message: str, detail: Message) -> bytes:
    """Return a serialised google.rpc.Status ("Encoding", Protocol Buffers documentation).

    Pulumi and Google's libraries both have its class, and one process cannot load both.
    """
    packed = any_pb2.Any()
    packed.Pack(detail)
    return b"\x08" + _varint(code) + b"\x12" + _sized(message.encode()) + b"\x1a" + _sized(packed.SerializeToString())


def _sized(value: bytes) -> bytes:
    return _varint(len(value)) + value


def _varint(number: int) -> bytes:
    """Return groups of seven bits, the lowest first; the highest bit says that another follows."""
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])


def _diff_response(plan: UpdatePlan) -> pb.DiffResponse:
    detailed = {
        change.path: pb.PropertyDiff(kind=_KINDS[change.kind, change.path in plan.replaces], inputDiff=True)
        for change in plan.changes
    }
    return pb.DiffResponse(
        changes=pb.DiffResponse.DIFF_SOME if plan.changes else pb.DiffResponse.DIFF_NONE,
        diffs=sorted({str(change.parts[0]) for change in plan.changes}),
        replaces=plan.replaces,
        deleteBeforeReplace=plan.delete_first,
        detailedDiff=detailed,
        hasDetailedDiff=True,
    )
