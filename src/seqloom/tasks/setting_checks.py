"""What tasks ask of their settings, in one place."""

from __future__ import annotations

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
    value = getattr(owner, name)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"{name} must be a whole number of at least {least}, got {value!r}")
