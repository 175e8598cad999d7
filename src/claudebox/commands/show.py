"""Shows a box, the profiles or a log instead of starting a box. What serves a mode returns an exit status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from claudebox.commands.explain import explain
from claudebox.features.allowlist.rules import GROUPS, as_option
from claudebox.features.table import FEATURES, SETTINGS
from claudebox.host import Host, read_host
from claudebox.model import Plan
from claudebox.output.as_json import audit_json, dry_run_json, dump
from claudebox.output.audit import audit
from claudebox.output.explanation import explanation_json, explanation_text
from claudebox.output.law import law_fields, law_text
from claudebox.output.shell import shell_command
from claudebox.output.terminal import output_style, show
from claudebox.paths import absolute
from claudebox.plan import make_plan, sections_of
from claudebox.servers.allowlist import can_be_listed
from claudebox.settings import Settings
from claudebox.settings.files import Profile, list_profiles
from claudebox.settings.gather import gather
from claudebox.settings.table import ALLOWLIST
from claudebox.settings.words import Request
from claudebox.state import SHOWN
from claudebox.state.memory import read_journal
from claudebox.state.reach import own_instance
from claudebox.text import Style, bytes_text, escape, table_row

PLACE = 21
YOUR_OWN = f"Your own: {SHOWN.profiles}/NAME.toml (or .json); its keys: --help all"


def show_audit(request: Request) -> int:
    _, _, plan = _plan(request)
    sections = sections_of(plan)
    show(audit_json(plan, sections) if request.json else audit(plan, sections, output_style()))
    return 0


def show_dry_run(request: Request) -> int:
    host, settings, plan = _plan(request)
    sections, less = sections_of(plan), settings
    for feature in FEATURES:
        less = feature.pasted(plan, less)
    pasted = plan if less == settings else make_plan(host, request, less)
    show(dry_run_json(pasted, sections) if request.json else shell_command(pasted, sections))
    return 0


def show_explanation(request: Request) -> int:
    host, settings, plan = _plan(request)
    thing = dict(request.said)["explain"]
    answers = explain(plan, host, settings, thing)
    show(explanation_json(thing, answers) if request.json else explanation_text(answers, output_style()))
    return 0


def show_law(request: Request) -> int:
    host, _, plan = _plan(request)
    assert plan.law is not None
    path = absolute(dict(request.said)["law"], host.cwd, host.person.home)
    real = host.tree.destination(path) or path
    rule = plan.law.nearest(real)
    told = dump({"law": law_fields(path, real, rule)}) if request.json else law_text(path, real, rule, host.person.home)
    show(told)
    return 0


def _plan(request: Request) -> tuple[Host, Settings, Plan]:
    """Plan a box that is only shown: nobody is asked anything, and what is not known yet stays unknown."""
    host = read_host()
    settings = gather(SETTINGS, host, request).settings
    return host, settings, make_plan(host, request, settings)


def show_profiles(request: Request) -> int:
    profiles = list_profiles(SETTINGS, read_host())
    listed = [{"name": one.name, "description": one.description, "file": one.file} for one in profiles]
    show(dump({"profiles": listed}) if request.json else profiles_text(profiles, output_style()))
    return 0


def profiles_text(profiles: list[Profile], style: Style) -> str:
    lines: list[str] = []
    for profile in profiles:
        words = [*escape(profile.description).split(), f"({escape(profile.file)})"]
        lines += table_row(profile.name, words, PLACE, style)
    return "\n".join([*lines, "", YOUR_OWN]) + "\n"


# What boxes of this project asked of the broker, and which hosts they reached

Entry = dict[str, object]

NOT_ASKED = "No box of this project has used the broker (--auth broker).\n"
# With the path and the model of a usual request, a line fits a terminal of 80 columns.
ASKED = (("time (UTC)", 11), ("box", 7), ("status", 6), ("tok.in", 6), ("tok.out", 7), ("ms", 6), ("path, model", 0))
USUAL_API = "/v1/"  # left out before what was asked of it
NOT_REACHED = "No box of this project has been started with --network allowlist.\n"
REACHED = (("time (UTC)", 14), ("", 7), ("sent", 6), ("received", 8), ("host", 0))
VERDICTS = ("allowed", "refused", "failed")


def show_auth_log(request: Request) -> int:
    entries = read_journal(own_instance(read_host()).journal)
    show(dump({"auth_log": entries}) if request.json else auth_log_text(entries))
    return 0


def show_network_log(request: Request) -> int:
    """What the boxes of this project reached by name, what was refused, and what would allow it."""
    entries = read_journal(own_instance(read_host()).network_journal)
    if request.suggest:
        show(suggestion(entries))
    else:
        show(dump({"network_log": entries}) if request.json else network_log_text(entries))
    return 0


def auth_log_text(entries: list[Entry]) -> str:
    return _table(ASKED, map(_asked, entries)) if entries else NOT_ASKED


def network_log_text(entries: list[Entry]) -> str:
    return _table(REACHED, map(_reached, entries)) if entries else NOT_REACHED


def _asked(entry: Entry) -> list[str]:
    numbers = (str(entry.get(name, "")) for name in ("box", "status", "input_tokens", "output_tokens", "ms"))
    path = str(entry.get("path", "")).removeprefix(USUAL_API)
    return [_time(entry)[:11], *numbers, "  ".join(filter(None, (path, str(entry.get("model", "")))))]


def _reached(entry: Entry) -> list[str]:
    verdict = str(entry.get("verdict", ""))
    port = f":{entry['port']}" if entry.get("port") else ""
    why = f" ({entry['why']})" if entry.get("why") and verdict != "refused" else ""
    sizes = (entry.get(name) for name in ("sent", "received"))
    amounts = (bytes_text(size) if isinstance(size, int) else "" for size in sizes)
    return [_time(entry), verdict, *amounts, f"{entry.get('name', '')}{port}{why}".strip()]


def _time(entry: Entry) -> str:
    """Without the year, which JSON has."""
    return str(entry.get("time", ""))[5:19].replace("T", " ")


def _table(columns: tuple[tuple[str, int], ...], rows: Iterable[list[str]]) -> str:
    """The last column is as long as it is: a host is copied as a whole."""
    lines = ([name for name, _ in columns], *rows)
    return "".join(
        "  ".join(escape(cell).rjust(width) for cell, (_, width) in zip(line, columns, strict=True)) + "\n"
        for line in lines
    )


def suggestion(entries: list[Entry]) -> str:
    """Settings that allow what boxes reached, and what they were refused, to be looked at before they are used."""
    uses = Counter((_wish(entry), str(entry.get("verdict", ""))) for entry in entries)
    wishes = sorted({wish for wish, verdict in uses if wish and verdict in VERDICTS})
    if not wishes:
        return NOT_REACHED
    width = max(map(len, wishes)) + 4
    rows = []
    for wish in wishes:
        why = [f"{verdict} {uses[wish, verdict]}" for verdict in VERDICTS if uses[wish, verdict]]
        why += [f"in @{group}" for group, hosts in GROUPS.items() if any(host == wish for host, _ in hosts)]
        rows.append("  " + f'"{wish}",'.ljust(width) + f"# {', '.join(why)}")
    return "\n".join([f'network = "{ALLOWLIST}"', "allow = [", *rows, "]"]) + "\n"


def _wish(entry: Entry) -> str:
    """What `allow` would have to say, or "" if nothing would help: an address is not on the internet, for instance."""
    name, port = str(entry.get("name", "")), entry.get("port")
    try:
        return as_option(name, port if isinstance(port, int) else 0) if can_be_listed(name) else ""
    except ValueError:
        return ""  # somebody has written into the journal
