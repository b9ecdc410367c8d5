"""Real jax, Dask and MPI: `make scale` has an environment with them. What is missing there fails."""

import sys
from pathlib import Path

import jax

sys.path.append(str(Path(__file__).resolve().parents[1] / "compiler"))  # its models
jax.config.update("jax_enable_x64", True)
