"""Stands in for `pulumi-language-python`, which comes with the ordinary Pulumi CLI and is not built here.

It implements the language protocol (pulumi.runtime.proto, language.proto) as far as preview, up and destroy of a program
need it: the program runs in a separate process, with the Python of the virtual environment that Pulumi.yaml names, and
gets the engine's address as arguments and its configuration in the environment, as from the real one. Unlike the real
one it requests no installation of providers.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from google.protobuf import empty_pb2, json_format
from pulumi.runtime.proto import language_pb2 as pb
from pulumi.runtime.proto import language_pb2_grpc, plugin_pb2

_PROGRAM = Path(__file__).with_name("program.py")


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
        self, request: pb.GetRequiredPackagesRequest, context: object
    ) -> pb.GetRequiredPackagesResponse:
        return pb.GetRequiredPackagesResponse()

    def Run(self, request: pb.RunRequest, context: object) -> pb.RunResponse:
        info = request.info
        virtualenv = json_format.MessageToDict(info.options)["virtualenv"]
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
        environment = {
            **os.environ,
            "PULUMI_CONFIG": json.dumps(dict(request.config)),
            "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(request.configSecretKeys)),
        }
        python = Path(info.root_directory) / virtualenv / "bin" / "python"
        command = [str(python), str(_PROGRAM), *flags, info.entry_point]
        code = subprocess.run(command, env=environment, check=False).returncode
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
