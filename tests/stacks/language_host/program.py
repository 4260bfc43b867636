"""Stands in for `pulumi-language-python-exec`: runs one program under an engine, and reports its errors like that one."""

from __future__ import annotations

import argparse
import asyncio
import os
import runpy
import sys
import traceback

import pulumi
import pulumi.runtime

_ACTIONABLE = 32
"""Exit code that tells the language host that the error has been reported."""


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in ("monitor", "engine", "project", "root_directory", "stack", "pwd", "dry_run", "organization"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--parallel", type=int)
    parser.add_argument("program")
    options = parser.parse_args()
    runtime = pulumi.runtime
    runtime.set_all_config(runtime.get_config_env(), runtime.get_config_secret_keys_env())
    runtime.configure(
        runtime.Settings(
            monitor=options.monitor,
            engine=options.engine,
            project=options.project,
            stack=options.stack,
            parallel=options.parallel,
            dry_run=options.dry_run == "true",
            organization=options.organization,
            root_directory=options.root_directory,
        )
    )
    os.chdir(options.pwd)
    sys.argv = [options.program]
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(runtime.run_in_stack(lambda: runpy.run_path(options.program, run_name="__main__")))
    except pulumi.RunError as error:
        pulumi.log.error(str(error))
        return 1
    except Exception:  # noqa: BLE001 - like the real one: whatever a program raises
        pulumi.log.error(f"Program failed with an unhandled exception:\n{traceback.format_exc()}")
        return _ACTIONABLE
    return 0


if __name__ == "__main__":
    sys.exit(main())
