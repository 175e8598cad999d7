# What ./run-tests looks for. It gets pytest and the linters itself, into .venv, and Claude Code with npm.
{
  bubblewrap,
  git,
  iproute2,
  mkShell,
  nftables,
  nix,
  nodejs,
  passt,
  procps,
  python3,
  shellcheck,
  strace,
  tmux,
}:
mkShell {
  packages = [
    bubblewrap
    git
    iproute2
    nftables
    nix
    nodejs
    passt
    procps
    python3
    shellcheck
    strace
    tmux
  ];
}
