# claudebox, and every program that it runs or brings into the box, at a store path.
#
# It learns these paths from a module, not from a wrapper's variables: those a project could set, with direnv for one.
{
  lib,
  python3,
  python3Packages,
  writeText,

  bashInteractive,
  bubblewrap,
  cacert,
  comma-with-db,
  coreutils,
  curl,
  diffutils,
  fd,
  findutils,
  gawk,
  git,
  gnugrep,
  gnused,
  gnutar,
  gzip,
  jq,
  less,
  nftables,
  nix,
  passt,
  procps,
  ripgrep,
  which,
}:
let
  # What claudebox itself starts, outside of the box.
  programs = {
    bwrap = lib.getExe' bubblewrap "bwrap";
    git = lib.getExe' git "git";
    nft = lib.getExe' nftables "nft";
    nix = lib.getExe' nix "nix";
    pasta = lib.getExe' passt "pasta";
  };

  # PATH in the box: these and no others.
  tools = [
    bashInteractive
    coreutils
    git
    curl
    jq
    ripgrep
    fd
    nix
    comma-with-db
    gnugrep
    gnused
    gawk
    findutils
    gnutar
    gzip
    less
    which
    procps
    diffutils
  ];

  # JSON's strings and objects are Python's, too.
  literal = builtins.toJSON;
  pinned = writeText "pinned.py" ''
    """What the Nix package brings with it. Written by nix/package.nix."""

    PROGRAMS: dict[str, str] = ${literal programs}
    PATH: tuple[str, ...] = (
    ${lib.concatMapStrings (tool: "    ${literal "${lib.getBin tool}/bin"},\n") tools})
    CERTIFICATES = ${literal "${cacert}/etc/ssl/certs/ca-bundle.crt"}
  '';

  # As `./claudebox` of a checkout starts it: isolated, without `site`, and without a shell in between.
  launcher = writeText "claudebox" ''
    #!${python3.interpreter} -IS
    import gc
    import sys

    gc.disable()
    sys.path.insert(0, "@modules@")

    from claudebox.cli import main

    main()
  '';

  version = lib.head (
    builtins.match ".*__version__ = \"([^\"]*)\".*" (builtins.readFile ../src/claudebox/__init__.py)
  );
in
python3Packages.buildPythonApplication {
  pname = "claudebox";
  inherit version;
  pyproject = true;

  src = lib.fileset.toSource {
    root = ../.;
    fileset = lib.fileset.unions [
      ../LICENSE
      ../README.md
      ../bin
      ../pyproject.toml
      ../src
      ../tools/hatch_build.py
      ../tools/shared_files.py
    ];
  };

  build-system = [ python3Packages.hatchling ];

  postPatch = ''
    cat ${pinned} > src/claudebox/host/pinned.py
  '';

  dontWrapPythonPrograms = true; # the launcher needs no wrapper, and a wrapper costs time at every start
  postInstall = ''
    sed "s|@modules@|$out/${python3.sitePackages}|" ${launcher} > $out/bin/claudebox
  '';

  installCheckPhase = ''
    runHook preInstallCheck
    $out/bin/claudebox --version | grep -Fx "claudebox $version"
    runHook postInstallCheck
  '';

  meta = {
    description = "Claude Code in a bubblewrap box";
    license = lib.licenses.mit;
    mainProgram = "claudebox";
    platforms = lib.platforms.linux;
  };
}
