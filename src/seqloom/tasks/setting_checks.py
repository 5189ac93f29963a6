"""What tasks ask of their settings, in one place."""

from __future__ import annotations

from math import inf

import numpy as np

from seqloom.errors import ConfigError


def check_flags(owner: object, *names: str) -> None:
    """Refuse settings that must be true or false and are not.

    Text such as "False" would count as true.

    Raises:
        ConfigError: Naming the setting and its value.
    """
    for name in names:
        value = getattr(owner, name)
        if not isinstance(value, bool):
            raise ConfigError(f"{name} must be true or false, got {value!r}")


def check_whole(owner: object, name: str, least: int) -> None:
    """Refuse a setting that must be a whole number, of at least so much, and is not.

    Raises:
        ConfigError: Naming the setting and its value.
    """
    check_count(name, getattr(owner, name), least)


def check_count(name: str, value: object, least: int = 1) -> None:
    """Refuse a value that must be a whole number, of at least so much, and is not.

    Raises:
        ConfigError: Naming it.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ConfigError(f"{name} must be a whole number of at least {least}, got {value!r}")


def check_number(name: str, value: object, most: float = inf) -> None:
    """Refuse a value that must be a finite number from 0 to `most`, and is not.

    Raises:
        ConfigError: Naming it.
    """
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= most or value == inf:  # type: ignore[operator]
        bounds = "not below 0" if most == inf else f"from 0 to {most:g}"
        raise ConfigError(f"{name} must be a number {bounds}, got {value!r}")
