"""How thorough random tests are: ``HYPOTHESIS_PROFILE=thorough`` for 2,000 examples."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile(
    "quick", max_examples=100, derandomize=True, deadline=None, suppress_health_check=_QUIET
)
settings.register_profile(
    "thorough", max_examples=2000, derandomize=True, deadline=None, suppress_health_check=_QUIET
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
