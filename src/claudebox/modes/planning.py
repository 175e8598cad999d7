"""The plan of a box that is only looked at: nothing is asked, and what is not known yet stays so."""

from __future__ import annotations

from claudebox.host import Host, read_host
from claudebox.model import Plan
from claudebox.plan import make_plan
from claudebox.record import Record
from claudebox.settings.gather import gather
from claudebox.settings.values import Settings
from claudebox.settings.words import Request


class Planned(Record):
    """A plan, and what it was made of."""

    host: Host
    settings: Settings
    plan: Plan


def plan_as_asked(request: Request) -> Planned:
    host = read_host()
    settings = gather(host, request).settings
    return Planned(host, settings, make_plan(host, request, settings))
