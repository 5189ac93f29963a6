"""Settings: frozen dataclasses to and from plain values, TOML files, and `key=value` overrides.

Defaults live in the dataclasses alone, so a file lists only what differs. An unknown key fails and
names the nearest known one; a value of the wrong type names the key, the type and the value.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True, kw_only=True)
... class Optim:
...     rate: float = 0.1
>>> from_dict(Optim, {"rate": 1})
Optim(rate=1.0)
"""

from __future__ import annotations

import tomllib
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from seqloom.errors import ConfigError, nearest

Config = TypeVar("Config")


def to_dict(config: object) -> dict[str, Any]:
    """Return a dataclass as nested plain values that JSON and TOML can hold."""
    if not is_dataclass(config) or isinstance(config, type):
        raise ConfigError(f"to_dict takes a dataclass instance, got {config!r}")
    return {
        field.name: _plain(getattr(config, field.name)) for field in fields(config) if field.init
    }


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return to_dict(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, PathLike):
        return fspath(value)
    return value


def from_dict(cls: type[Config], values: Mapping[str, Any], *, where: str = "") -> Config:
    """Build the dataclass `cls` from plain values, checking every key and type.

    Args:
        cls: A dataclass; its fields may be dataclasses themselves.
        values: What to set; fields left out keep their defaults.
        where: The key this table stands under, for messages ("training" gives "training.rate").

    Raises:
        ConfigError: On an unknown or missing key or a value of the wrong type; and whatever the
            dataclass's own `__post_init__` raises.
    """
    if not isinstance(values, Mapping):
        raise ConfigError(
            f"{f'setting {where!r}' if where else 'settings'} must be a table, got {values!r}"
        )
    known = {field.name: field for field in fields(cls) if field.init}  # type: ignore[arg-type]
    prefix = f"{where}." if where else ""
    for key in values:
        if key not in known:
            raise ConfigError(
                f"unknown setting '{prefix}{key}'{nearest(key, known)} "
                f"(known here: {', '.join(known)})"
            )
    for name, field in known.items():
        required = field.default is MISSING and field.default_factory is MISSING
        if required and name not in values:
            raise ConfigError(f"setting '{prefix}{name}' must be given")
    hints = get_type_hints(cls)
    return cls(**{key: _convert(value, hints[key], prefix + key) for key, value in values.items()})


def differences(before: Any, now: Any, name: str = "") -> Iterator[str]:
    """What changed between two nested settings, as "training.epochs was 1 and is 2"."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in {**before, **now}:
            inner = f"{name}.{key}" if name else key
            yield from differences(before.get(key), now.get(key), inner)
    elif before != now:
        yield f"{name} was {before!r} and is {now!r}"


def plain_scalar(value: Any) -> Any:
    """Return a number, a text or a truth value of numpy as Python's own, all else as it is."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return value.item()
    return value


def _convert(value: Any, hint: Any, where: str) -> Any:  # noqa: PLR0912 (one case a type)
    """Return `value` as the type `hint` asks for, or raise naming the setting."""
    origin, args = get_origin(hint), get_args(hint)
    value = plain_scalar(value)
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):
        return _convert_union(value, args, where)
    if origin is Literal:
        if value in args and type(value) in {type(arg) for arg in args}:
            return value
        choices = ", ".join(repr(arg) for arg in args)
        close = nearest(value, [arg for arg in args if isinstance(arg, str)])
        raise ConfigError(f"setting '{where}' must be one of {choices}, got {value!r}{close}")
    if is_dataclass(hint) and isinstance(hint, type):
        if isinstance(value, hint):
            return value
        if isinstance(value, Mapping):
            return from_dict(hint, value, where=where)
        raise ConfigError(f"setting '{where}' must be a table, got {value!r}")
    if origin in (tuple, list):
        if not isinstance(value, (list, tuple)):
            raise ConfigError(f"setting '{where}' must be a list, got {value!r}")
        if origin is tuple and not (len(args) == 2 and args[1] is Ellipsis):
            if len(value) != len(args):
                raise ConfigError(f"setting '{where}' must hold {len(args)} values, got {value!r}")
            pairs = zip(value, args, strict=True)
            return tuple(_convert(v, a, f"{where}[{i}]") for i, (v, a) in enumerate(pairs))
        items = [_convert(item, args[0], f"{where}[{i}]") for i, item in enumerate(value)]
        return tuple(items) if origin is tuple else items
    if origin in (dict, Mapping) or hint is dict:
        if not isinstance(value, Mapping):
            raise ConfigError(f"setting '{where}' must be a table, got {value!r}")
        item = args[1] if args else Any
        return {str(key): _convert(v, item, f"{where}.{key}") for key, v in value.items()}
    return _convert_scalar(value, hint, where)


def _convert_scalar(value: Any, hint: Any, where: str) -> Any:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is float and is_number and not _overflows(value):
        return float(value)
    if hint is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if hint is bool or isinstance(value, bool):
        matches = hint is bool and isinstance(value, bool)
    else:
        matches = isinstance(value, hint)
    if hint is Path and isinstance(value, str):
        return Path(value)
    if not matches:
        names = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
        wanted = names.get(hint, getattr(hint, "__name__", str(hint)))
        raise ConfigError(f"setting '{where}' must be {wanted}, got {value!r}")
    return value


def _overflows(number: float) -> bool:
    try:
        float(number)
    except OverflowError:  # a whole number of more than 308 digits
        return True
    return False


def _convert_union(value: Any, options: tuple[Any, ...], where: str) -> Any:
    if value is None and type(None) in options:
        return None
    failure: ConfigError | None = None
    for option in options:
        if option is type(None):
            continue
        try:
            return _convert(value, option, where)
        except ConfigError as error:
            failure = failure or error
    raise failure or ConfigError(f"setting '{where}' cannot be {value!r}")


def load_toml(path: str | PathLike[str]) -> dict[str, Any]:
    """Read a TOML file into plain values.

    Raises:
        ConfigError: If there is no such file, it cannot be read, or it is not TOML.
    """
    name = fspath(path)
    try:
        return tomllib.loads(Path(name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{name}: no such file; check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{name}: cannot be read ({error})") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name}: is not TOML ({error})") from None


def apply_overrides(values: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Return `values` with each "a.b=value" set; a value is TOML, or plain text if it is not.

    True and False are true and false, which Python writes so.

    >>> apply_overrides({"model": {"hidden_size": 1}}, ["model.hidden_size=512", "name=ptb"])
    {'model': {'hidden_size': 512}, 'name': 'ptb'}
    """
    result: dict[str, Any] = _plain(values)
    for override in overrides:
        key, equals, text = override.partition("=")
        path = key.strip().split(".")
        if not equals or not all(path):
            raise ConfigError(f"an override must look like key=value, got {override!r}")
        table = result
        for depth, part in enumerate(path[:-1], start=1):
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise ConfigError(
                    f"'{'.'.join(path[:depth])}' is a value, not a table, in override {override!r}"
                )
        table[path[-1]] = _parse_value(text.strip())
    return result


def _parse_value(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return parsed["value"] if len(parsed) == 1 else text  # several lines are no value
