"""One simulated cloud: how its provider and its API handle requests. Independent of gRPC."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from sandbox.simcloud import refusals
from sandbox.simcloud.changes import PropertyChange, changes
from sandbox.simcloud.rules import Call, Cloud, Offers, Reason, RefusalError, ResourceType, Settings
from sandbox.simcloud.values import (
    Properties,
    Secret,
    Unknown,
    Value,
    contains_any,
    is_known,
    plain,
    recognised,
    secret_texts,
)
from sandbox.simcloud.world import Record, World, normal

# The bridged providers use the same key.
_DEFAULTS = "__defaults"


@dataclass(frozen=True)
class UpdatePlan:
    """The effect of an update. replaces: the paths that force a replacement."""

    changes: list[PropertyChange]
    replaces: list[str]
    delete_first: bool


class SimulatedCloud:
    """A cloud over a world. Every method raises `RefusalError` for what the cloud would refuse."""

    def __init__(self, cloud: Cloud, world: World, offers: Offers | Callable[[], Offers]) -> None:
        """offers: a function if they change."""
        self.cloud = cloud
        self._world = world
        self._given = offers

    @property
    def _offers(self) -> Offers:
        return self._given if isinstance(self._given, Offers) else self._given()

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
        """Return the inputs, with names and places that the program left out, and what is wrong with them.

        old: previous inputs, {} for a new resource. seed: makes a generated name unique. proposed: the name from the
        project's configuration, "" if it has none, None if it forbids generated names.
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
                default = self.cloud.place_of(self._call(rule, settings, urn, _known(inputs)), place) or old.get(place)
                if default is not None:
                    inputs[place] = default
                elif place in self.cloud.place_missing:
                    failures.append(RefusalError(self.cloud.place_missing[place], place))
        try:
            refusals.bad_name(self._call(rule, settings, urn, _known(inputs)))
        except RefusalError as error:
            failures.append(error)
        return ({**inputs, _DEFAULTS: generated} if generated else inputs), failures

    def diff(self, type_: str, old: Properties, new: Properties) -> UpdatePlan:
        """Return the plan for changing the inputs from `old` to `new`."""
        rule = self._rule(type_)
        differences = changes(old, new)
        before, after = plain(old), plain(new)
        partly = [
            path
            for path, must in rule.replace_if.items()
            if is_known(after.get(path)) and before.get(path) is not None and must(before[path], after.get(path))
        ]
        partly += rule.replace_when(before, after)
        replaces = [change.path for change in differences if change.is_within((*rule.replace_on, *rule.where, *partly))]
        return UpdatePlan(differences, replaces, delete_first=_is_named_alike(rule, before, after))

    def planned(self, type_: str, inputs: Properties, old_inputs: Properties, old: Properties) -> Properties:
        """Return the outputs that a preview knows. old: present outputs, {} for a new resource."""
        rule = self._rule(type_)
        kept = {key: value for key, value in old.items() if key in inputs or key not in old_inputs}
        recomputed = dict.fromkeys(rule.recomputed, Unknown()) if old else {}
        reshaped = {
            key: old[key] if key in old and inputs[key] == old_inputs.get(key) else Unknown()
            for key in self.cloud.reshaped
            if key in inputs
        }
        return {**kept, **_shown(inputs), **reshaped, **recomputed}

    def create(self, settings: Settings, type_: str, urn: str, inputs: Properties) -> Record:
        """Create a resource."""
        rule = self._rule(type_)
        with self._world.lock:
            call = self._call(rule, settings, urn, plain(_shown(inputs)))
            call = replace(call, id=rule.identify(call))
            refusals.taken(call)
            refusals.full(call)
            return self._settle(call, inputs)

    def update(self, settings: Settings, type_: str, urn: str, id_: str, inputs: Properties) -> Record:
        """Update a resource to new inputs."""
        rule = self._rule(type_)
        with self._world.lock:
            old = self._world.get(rule.token, id_)
            call = self._call(rule, settings, urn, plain(_shown(inputs)), id_, old)
            if old is None:
                raise call.refusal(Reason.GONE, value=id_)
            refusals.fixed(call, changes(old.inputs, inputs))
            return self._settle(call, inputs)

    def delete(self, settings: Settings, type_: str, id_: str) -> None:
        """Delete a resource, and everything below it. Do nothing if it does not exist."""
        rule = self._rule(type_)
        with self._world.lock:
            record = self._world.get(rule.token, id_)
            if record is None:
                return
            call = self._call(rule, settings, record.urn, plain(record.inputs), id_, record)
            refusals.protected(call)
            doomed = [record, *(self._world.below(record) if self.cloud.has_trees else ())]
            refusals.held(call, doomed)
            for victim in doomed:
                self._world.remove(victim.type, victim.id)

    def read(self, type_: str, id_: str, inputs: Properties, outputs: Properties) -> Record | None:
        """Return the present resource. inputs, outputs: the engine's, to recover secrets of which a file has only digests."""
        record = self._world.get(normal(type_), id_)
        if record is None:
            return None
        return replace(record, inputs=recognised(record.inputs, inputs), outputs=recognised(record.outputs, outputs))

    def invoke(self, settings: Settings, token: str, arguments: Properties) -> Properties:
        """Return the result of a provider function."""
        function = self.cloud.functions.get(token)
        if function is None:
            names = ", ".join(sorted(self.cloud.functions))
            raise RefusalError(
                f"simcloud has no function {token}; add it to sandbox/simcloud/{self.cloud.name}/functions.py (it has {names})"
            )
        result = function(plain(arguments), settings, self._offers, self._world)
        return _marked(result, secret_texts(arguments))

    def throttled(self, verb: str, token: str) -> RefusalError:
        """Return the refusal of a throttled call."""
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
        """Store the resource in the world unless a rule refuses it."""
        referenced = list(refusals.targets(call))
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
            targets=tuple(dict.fromkeys(target.key for target, _ in referenced)),
            uses=tuple(dict.fromkeys(target.key for target, holds in referenced if holds)),
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
        """Return the name for a resource to which the program gave none: its present name, or a new one."""
        if property_ in old.get(_DEFAULTS, ()):
            return str(old[property_])
        separator, digits = self.cloud.suffix
        return proposed or f"{urn.rpartition('::')[2]}{separator}{seed[:digits]}"


def _is_named_alike(rule: ResourceType, before: Properties, after: Properties) -> bool:
    """Whether a replacement would have the old resource's explicit name, so that both cannot exist at once."""
    if rule.naming is None or after.get(rule.naming.property) is None:
        return False
    name = rule.naming.property
    return bool(before.get(name) == after[name]) and name not in after.get(_DEFAULTS, ())


def _known(inputs: Properties) -> Properties:
    """Return the inputs that are completely known, without secrets."""
    return {key: plain(value) for key, value in inputs.items() if is_known(value)}


def _shown(inputs: Mapping[str, Value]) -> Properties:
    """Return the inputs that a resource shows."""
    return {key: value for key, value in inputs.items() if not key.startswith("__")}


def _outputs(inputs: Properties, computed: Properties) -> Properties:
    """Return the inputs and what the cloud computed from them."""
    added = {key: value for key, value in computed.items() if key not in inputs or plain(inputs[key]) != value}
    return {**_shown(inputs), **_marked(added, secret_texts(inputs))}


def _marked(properties: Properties, secrets: set[str]) -> Properties:
    """Mark values that contain a secret as secret."""
    return {key: Secret(value) if contains_any(value, secrets) else value for key, value in properties.items()}
