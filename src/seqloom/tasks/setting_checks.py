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
