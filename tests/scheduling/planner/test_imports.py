from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_neither_the_command_nor_a_quick_plan_loads_the_solver() -> None:
    program = (
        "import sys, cli.actions.build, controllers.planner; print(sorted({'highspy', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
