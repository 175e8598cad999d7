"""What the Nix package brings with it; empty in every other package. flake.nix writes this file."""

PROGRAMS: dict[str, str] = {}  # bwrap, pasta, nft, nix and git: where they are
PATH: tuple[str, ...] = ()  # the directories of the box's PATH
CERTIFICATES = ""  # the certificate bundle
