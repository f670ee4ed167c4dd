"""Builds the kernels in C while the package is installed or packed; without a compiler, none."""

from __future__ import annotations

import os
import runpy
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelsInC(BuildHookInterface):
    """A wheel has the library if it could be built, and is for this kind of machine then."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Build the library before files are collected."""
        if self.target_name != "wheel":
            return
        tool = runpy.run_path(str(Path(self.root, "tools/build_kernels.py")))
        problem = tool["build"](os.environ.get("CC", "cc"))
        if problem:
            message = f"penstock: no kernels in C, numpy's do the same: {problem}\n"
            sys.stderr.write(message)
            return
        build_data["artifacts"].append(tool["LIBRARY"].relative_to(self.root).as_posix())
        build_data["pure_python"] = False
        machine = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{machine}"
