"""What people and programs are told of Nix, and of packages."""

from __future__ import annotations

from claudebox.errors import quote
from claudebox.features.nix import Nix, Package
from claudebox.features.nix.packages import package_text, stored
from claudebox.features.nix.references import short_name
from claudebox.output.section import READ_ONLY, TOOLS, Row, Section, by_label, fields, plain

TOLD = {
    "daemon": "For a missing tool use Nix: `nix shell nixpkgs#NAME -c COMMAND`, `nix run`, `nix build` or, if "
    "it is installed, comma (`, COMMAND`).",
    "private": "For a missing tool use Nix: `nix shell nixpkgs#NAME -c COMMAND`; what you build is kept for "
    "this project.",
    "store": "Nix cannot build or download here: ask the user for `--package NAME`.",
    "off": "Nix is not available.",
}
FROM_NIX = """
From Nix, on your PATH because the user asked for them:

"""


def of_nix(nix: Nix | None) -> Section:
    if nix is None:
        return Section(key="nix")
    return Section(
        title="Nix",
        lines=((nix.mode, tuple(nix.meaning.split())),),
        rows=(Row("nix", words=f"{nix.mode}: {nix.meaning}", after=READ_ONLY),),
        key="nix",
        value=fields(nix, "mode", "rule", "holes"),
        told=((TOOLS, f"\n{TOLD[nix.mode]}\n"),),
    )


def of_packages(packages: tuple[Package, ...]) -> Section:
    resolved = [f"- `{plain(short_name(one.reference))}`: {stored(one)}\n" for one in packages if one.paths]
    missing = [one.reference for one in packages if not one.paths]
    return Section(
        title="Packages",
        lines=by_label((one.origin.shown, (package_text(one),)) for one in packages),
        rows=(Row("packages", tuple(short_name(one.reference) for one in packages), after=READ_ONLY),),
        key="packages",
        value=[fields(one, "reference", "paths", "rule") for one in packages],
        told=((TOOLS, FROM_NIX + "".join(resolved)),) if resolved else (),
        comment="".join(f"claudebox asks Nix for {quote(one)} first: it is not resolved yet\n" for one in missing),
    )
