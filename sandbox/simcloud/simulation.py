"""One simulated cloud: what its provider and its API do with a request. Knows no gRPC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain

from sandbox.simcloud import refusals
from sandbox.simcloud.changes import Change, changes
from sandbox.simcloud.rules import Call, Cloud, Offers, Reason, RefusalError, ResourceType, Settings
from sandbox.simcloud.values import Properties, Secret, Unknown, Value, is_known, plain, recognised, secret_texts, tells
from sandbox.simcloud.world import Record, World, normal

# The name that the bridged providers have for it, too.
_DEFAULTS = "__defaults"


@dataclass(frozen=True)
class Plan:
    """What an update would do. replaces: the paths that force a replacement."""

    changes: list[Change]
    replaces: list[str]
    delete_first: bool


class SimulatedCloud:
    """A cloud over a world. Every method raises `RefusalError` for what the cloud would refuse."""

    def __init__(self, cloud: Cloud, world: World, offers: Offers) -> None:
        self.cloud = cloud
        self._world = world
        self._offers = offers

    def check(
        self,
        settings: Settings,
        type_: str,
        urn: str,
        old: Properties,
        new: Properties,
        seed: str,
        proposed: str | None,
    ) -> tuple[Properties, list[RefusalError]]:
        """The inputs with names and places that the program left out, and what is wrong with them.

        old: inputs as they were, {} for a new resource. seed: what makes a generated name one of its own. proposed: a
        name that the project's configuration makes, "" if it makes none, None if it forbids generated names.
        """
        rule = self._rule(type_)
        if not rule.is_proven:
            self._world.unproven[rule.token].add(urn)
        inputs = {key: value for key, value in new.items() if key != _DEFAULTS}
        generated: list[str] = []
        failures = []
        if rule.naming and inputs.get(rule.naming.property) is None:
            name = rule.naming.property
            if proposed is None:
                failures.append(RefusalError(f"set {name}: the project's configuration forbids generated names", name))
            else:
                generated = [name]
                inputs[name] = self._name(name, urn, old, seed, proposed)
        for place in rule.where:
            if inputs.get(place) is None:
                found = self.cloud.place_of(self._call(rule, settings, urn, _known(inputs)), place) or old.get(place)
                if found is not None:
                    inputs[place] = found
                elif place in self.cloud.place_missing:
                    failures.append(RefusalError(self.cloud.place_missing[place], place))
        try:
            refusals.bad_name(self._call(rule, settings, urn, _known(inputs)))
        except RefusalError as error:
            failures.append(error)
        return ({**inputs, _DEFAULTS: generated} if generated else inputs), failures

    def diff(self, type_: str, old: Properties, new: Properties) -> Plan:
        """What changing the inputs from `old` to `new` takes."""
        rule = self._rule(type_)
        found = changes(old, new)
        before, after = plain(old), plain(new)
        partly = [
            path
            for path, must in rule.replace_if.items()
            if is_known(after.get(path)) and before.get(path) is not None and must(before[path], after.get(path))
        ]
        partly += rule.replace_when(before, after)
        replaces = [change.path for change in found if change.is_within((*rule.replace_on, *rule.where, *partly))]
        return Plan(found, replaces, delete_first=_is_named_alike(rule, before, after))

    def planned(self, type_: str, inputs: Properties, old_inputs: Properties, old: Properties) -> Properties:
        """Outputs as far as a preview knows them. old: outputs as they are, {} for a new resource."""
        rule = self._rule(type_)
        staying = {key: value for key, value in old.items() if key in inputs or key not in old_inputs}
        moving = dict.fromkeys(rule.recomputed, Unknown()) if old else {}
        reshaped = {
            key: old[key] if key in old and inputs[key] == old_inputs.get(key) else Unknown()
            for key in self.cloud.reshaped
            if key in inputs
        }
        return {**staying, **_shown(inputs), **reshaped, **moving}

    def create(self, settings: Settings, type_: str, urn: str, inputs: Properties) -> Record:
        """A new resource."""
        rule = self._rule(type_)
        with self._world.lock:
            call = self._call(rule, settings, urn, plain(_shown(inputs)))
            call = replace(call, id=rule.identify(call))
            refusals.taken(call)
            return self._settle(call, inputs)

    def update(self, settings: Settings, type_: str, urn: str, id_: str, inputs: Properties) -> Record:
        """The resource with new inputs."""
        rule = self._rule(type_)
        with self._world.lock:
            old = self._world.get(rule.token, id_)
            call = self._call(rule, settings, urn, plain(_shown(inputs)), id_, old)
            if old is None:
                raise call.refusal(Reason.GONE, value=id_)
            refusals.fixed(call, changes(old.inputs, inputs))
            return self._settle(call, inputs)

    def delete(self, settings: Settings, type_: str, id_: str) -> None:
        """Delete a resource, and what lies below it; nothing if there is none."""
        rule = self._rule(type_)
        with self._world.lock:
            record = self._world.get(rule.token, id_)
            if record is None:
                return
            call = self._call(rule, settings, record.urn, plain(record.inputs), id_, record)
            refusals.protected(call)
            doomed = [record, *(self._world.below(record) if self.cloud.has_trees else ())]
            refusals.held(call, doomed)
            for each in doomed:
                self._world.remove(each.type, each.id)

    def read(self, type_: str, id_: str, inputs: Properties, outputs: Properties) -> Record | None:
        """The resource as it is. inputs, outputs: as the engine knows them, for the secrets that a file seals."""
        record = self._world.get(normal(type_), id_)
        if record is None:
            return None
        return replace(record, inputs=recognised(record.inputs, inputs), outputs=recognised(record.outputs, outputs))

    def invoke(self, settings: Settings, token: str, arguments: Properties) -> Properties:
        """The result of a provider function."""
        function = self.cloud.functions.get(token)
        if function is None:
            known = ", ".join(sorted(self.cloud.functions))
            raise RefusalError(
                f"simcloud has no function {token}; add it to sandbox/simcloud/{self.cloud.name}/functions.py (there are {known})"
            )
        result = function(plain(arguments), settings, self._offers, self._world)
        return _marked(result, secret_texts(arguments))

    def throttled(self, verb: str, token: str) -> RefusalError:
        """The refusal of a call that is one too many."""
        call = self._call(self._rule(token), Settings(), "", {})
        return call.refusal(Reason.THROTTLED, verb=verb)

    def _rule(self, type_: str) -> ResourceType:
        token = normal(type_)
        return self.cloud.types.get(token) or self.cloud.unruled(token)

    def _call(
        self,
        rule: ResourceType,
        settings: Settings,
        urn: str,
        inputs: Properties,
        id_: str = "",
        old: Record | None = None,
    ) -> Call:
        return Call(self.cloud, rule, self._world, self._offers, settings, urn, inputs, id_, old)

    def _settle(self, call: Call, inputs: Properties) -> Record:
        """Put the resource into the world unless something is wrong with it."""
        named = list(refusals.targets(call))
        for rule in call.type.refuse:
            rule(call)
        computed = call.type.outputs(call)
        record = Record(
            type=call.type.token,
            id=call.id,
            urn=call.urn,
            region=call.region,
            inputs=inputs,
            outputs=_outputs(inputs, computed),
            targets=tuple(dict.fromkeys(target.key for target, _ in named)),
            uses=tuple(dict.fromkeys(target.key for target, holds in named if holds)),
        )
        record = replace(record, known_by=self._known_by(call.type, record))
        self._world.put(record)
        return record

    def _known_by(self, rule: ResourceType, record: Record) -> tuple[tuple[str, str], ...]:
        outputs = plain(record.outputs)
        own = ((rule.token, str(outputs[name])) for name in self.cloud.refers_by if outputs.get(name))
        names = chain([(rule.token, record.id)], own, rule.implied(outputs))
        return tuple(dict.fromkeys((type_, self.cloud.folded(text)) for type_, text in names))

    def _name(self, property_: str, urn: str, old: Properties, seed: str, proposed: str) -> str:
        """A name for what the program gave none: the one that it has, or a new one."""
        if property_ in old.get(_DEFAULTS, ()):
            return str(old[property_])
        separator, digits = self.cloud.suffix
        return proposed or f"{urn.rpartition('::')[2]}{separator}{seed[:digits]}"


def _is_named_alike(rule: ResourceType, before: Properties, after: Properties) -> bool:
    """Whether a replacement would have the name that the program gave the old one: both cannot exist at once."""
    if rule.naming is None or after.get(rule.naming.property) is None:
        return False
    name = rule.naming.property
    return bool(before.get(name) == after[name]) and name not in after.get(_DEFAULTS, ())


def _known(inputs: Properties) -> Properties:
    """The inputs that are wholly known, without secrets."""
    return {key: plain(value) for key, value in inputs.items() if is_known(value)}


def _shown(inputs: Mapping[str, Value]) -> Properties:
    """What a resource shows of its inputs."""
    return {key: value for key, value in inputs.items() if not key.startswith("__")}


def _outputs(inputs: Properties, computed: Properties) -> Properties:
    """Inputs and what the cloud made of them."""
    made = {key: value for key, value in computed.items() if key not in inputs or plain(inputs[key]) != value}
    return {**_shown(inputs), **_marked(made, secret_texts(inputs))}


def _marked(properties: Properties, secrets: set[str]) -> Properties:
    """Secret what tells a secret."""
    return {key: Secret(value) if tells(value, secrets) else value for key, value in properties.items()}
