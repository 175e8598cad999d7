"""Where settings are said: files, variables, options. Each layer goes over the one before it."""

from __future__ import annotations

from claudebox.arguments import Request
from claudebox.host import Host
from claudebox.settings import Settings, from_options, from_variables, merge


def gather(host: Host, request: Request) -> Settings:
    return merge([*from_variables(host.environ), *from_options(request.said)])
