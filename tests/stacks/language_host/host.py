"""Stands in for `pulumi-language-python`, which comes with the ordinary Pulumi CLI and is not built here.

It implements the language protocol (pulumi.runtime.proto, language.proto) as far as preview, up and destroy of a program
need it. In the virtual environment that Pulumi.yaml names it runs the commands that the real one runs (pulumi 3.259.0,
sdk/python/cmd/pulumi-language-python/main.go and sdk/python/toolchain/pip.go), in the same order, and fails where they fail:

1. `python --version`, whose failure is only printed;
2. `python -m pip list --format json`;
3. a script that finds the pulumi-plugin.json of each of these packages;
4. the program, by a script that stands in for `pulumi-language-python-exec`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from google.protobuf import empty_pb2, json_format
from pulumi.runtime.proto import language_pb2 as pb
from pulumi.runtime.proto import language_pb2_grpc, plugin_pb2

_PROGRAM = Path(__file__).with_name("program.py")
_ACTIONABLE = 32
"""Exit code of a program that has already reported its error."""
_WITHOUT_PLUGINS = frozenset({"pulumi-policy", "pulumi-esc-sdk"})

_PLUGIN_FILES = """
import json, sys
from importlib.metadata import distribution

def described(name):
    files = distribution(name).files or ()
    return next((str(file.locate()) for file in files if file.name == "pulumi-plugin.json"), "")

print(json.dumps({name: described(name) for name in sys.argv[1:]}))
"""


class Environment:
    """The virtual environment of a project. Raises ChildProcessError where the real host refuses to go on."""

    def __init__(self, info: pb.ProgramInfo) -> None:
        options = json_format.MessageToDict(info.options)
        self._option = str(options["virtualenv"])
        self._folder = Path(info.root_directory, self._option)

    def packages(self) -> Iterator[plugin_pb2.PackageDependency]:
        """Yield the providers of the installed packages."""
        if not (self._folder / "bin" / "python").is_file():
            # The real one creates it and installs requirements.txt, which this project does not have.
            raise ChildProcessError(f"the virtual environment {self._option} was not set up before the first run")
        if self._run("--version").returncode:
            print("Failed to resolve python version command", file=sys.stderr)
        installed = {entry["name"].lower().replace("_", "-"): entry["version"] for entry in self._listed()}
        files = json.loads(self._run("-c", _PLUGIN_FILES, *installed).stdout)
        for name, version in installed.items():
            described = json.loads(Path(files[name]).read_text()) if files[name] else {}
            is_one = bool(described) or name.startswith("pulumi-")
            if is_one and name not in _WITHOUT_PLUGINS and described.get("resource", not described):
                yield plugin_pb2.PackageDependency(
                    name=described.get("name") or name.removeprefix("pulumi-"),
                    version=f"v{(described.get('version') or version).removeprefix('v')}",
                    kind="resource",
                    server=described.get("server", ""),
                )

    def start(self, arguments: Iterable[str], more: Mapping[str, str]) -> int:
        """Run a Python program to its end; return its exit code."""
        return subprocess.run([self._python, *arguments], env={**self._variables(), **more}, check=False).returncode

    def _listed(self) -> list[dict[str, str]]:
        done = self._run("-m", "pip", "list", "--format", "json")
        if done.returncode:
            command = " ".join(done.args)
            raise ChildProcessError(
                f"failed to discover package requirements: calling `{command}`: exit status {done.returncode}"
            )
        listed: list[dict[str, str]] = json.loads(done.stdout)
        return listed

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([self._python, *arguments], env=self._variables(), capture_output=True, check=False)

    @property
    def _python(self) -> str:
        return str(self._folder / "bin" / "python")

    def _variables(self) -> dict[str, str]:
        """Return what activates the environment: sdk/python/toolchain, ActivateVirtualEnv."""
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONHOME"}
        path = f"{self._folder / 'bin'}{os.pathsep}{inherited.get('PATH', '')}"
        return {**inherited, "PATH": path, "VIRTUAL_ENV": str(self._folder)}


class Host(language_pb2_grpc.LanguageRuntimeServicer):
    """engine: address of its service."""

    def __init__(self, engine: str) -> None:
        self._engine = engine

    def Handshake(self, request: pb.LanguageHandshakeRequest, context: object) -> pb.LanguageHandshakeResponse:
        self._engine = request.engine_address
        return pb.LanguageHandshakeResponse()

    def GetPluginInfo(self, request: empty_pb2.Empty, context: object) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version="0.0.0")

    def GetRequiredPackages(
        self, request: pb.GetRequiredPackagesRequest, context: grpc.ServicerContext
    ) -> pb.GetRequiredPackagesResponse:
        try:
            return pb.GetRequiredPackagesResponse(packages=Environment(request.info).packages())
        except ChildProcessError as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))

    def Run(self, request: pb.RunRequest, context: object) -> pb.RunResponse:
        info = request.info
        arguments = {
            "monitor": request.monitor_address,
            "engine": self._engine,
            "project": request.project,
            "root_directory": info.root_directory,
            "stack": request.stack,
            "pwd": request.pwd,
            "dry_run": "true" if request.dryRun else "false",
            "parallel": str(request.parallel),
            "organization": request.organization,
        }
        flags = [word for name, value in arguments.items() if value for word in (f"--{name}", value)]
        configuration = {
            "PULUMI_CONFIG": json.dumps(dict(request.config)),
            "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(request.configSecretKeys)),
        }
        code = Environment(info).start([str(_PROGRAM), *flags, info.entry_point, *request.args], configuration)
        if code == _ACTIONABLE:
            return pb.RunResponse(bail=True)
        return pb.RunResponse(error=f"program exited with non-zero exit code: {code}" if code else "")


def main() -> None:
    """Serve on a port printed as the first line of standard output, for as long as the engine lives."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(0))
    addresses = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    parent = os.getppid()
    server = grpc.server(ThreadPoolExecutor(max_workers=4))
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(Host(addresses[0] if addresses else ""), server)
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    while os.getppid() == parent != 1:
        time.sleep(0.5)
    os._exit(0)


if __name__ == "__main__":
    main()
