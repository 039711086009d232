"""`fragdex config`: the settings in force, and where each comes from."""

from __future__ import annotations

from fragdex.cli import options, service_options
from fragdex.cli.output import json_line
from fragdex.cli.service_options import settings_of

__all__ = ["config"]


def config(
    json: options.Json = False,
    data: service_options.Data = None,
    config: service_options.ConfigFile = None,
) -> int:
    """Show every setting of the service, its value, and where the value comes from.

    A flag wins over the environment (FRAGDEX_PORT), the environment over the file (--config or
    FRAGDEX_CONFIG), the file over the default. Secrets are masked.

    Examples:
      fragdex config
      FRAGDEX_PORT=9000 fragdex config --json
    """
    settings = settings_of(config, data=data)
    shown, origins = settings.shown(), settings.origins
    if json:
        told = {name: {"value": shown[name], "origin": origins[name]} for name in shown}
        print(json_line(told), end="")
    else:
        width = max(map(len, shown))
        for name, value in shown.items():
            print(f"{name:{width}}  {value or '-'}  ({origins[name]})")
    return 0
