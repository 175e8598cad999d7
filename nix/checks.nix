# What `nix flake check` builds. The tests of the box itself need a kernel to make boxes with: ./run-tests has them.
{
  lib,
  claudebox,
  git,
  python3,
  runCommand,
}:
let
  source = lib.fileset.toSource {
    root = ../.;
    fileset = lib.fileset.unions [
      ../pyproject.toml
      ../src
      ../tests/conftest.py
      ../tests/golden.py
      ../tests/hosts
      ../tests/unit
    ];
  };
  python = python3.withPackages (packages: [
    packages.hypothesis
    packages.pytest
  ]);
in
{
  # Nothing is missing, in it and of what it was given.
  package = runCommand "claudebox-package" { } ''
    ${python3.interpreter} -IS ${./check_package.py} ${claudebox}/${python3.sitePackages} ${../src} > $out
  '';

  unit-tests =
    runCommand "claudebox-tests"
      {
        nativeBuildInputs = [
          git
          python
        ];
      }
      ''
        cp -r ${source} source
        chmod -R u+w source
        cd source
        # The tests make sockets: their paths have to be short.
        HOME=$TMPDIR python3 -m pytest -q --basetemp=$TMPDIR/t tests/unit tests/hosts -k "not nft and not kernel"
        touch $out
      '';
}
