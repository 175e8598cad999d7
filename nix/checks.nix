# What `nix flake check` builds. The tests of the box itself need a kernel to make boxes with: ./run-tests has them.
{
  lib,
  claudebox,
  python3,
  runCommand,
}:
let
  source = lib.fileset.toSource {
    root = ../.;
    fileset = lib.fileset.unions [
      ../docs/reference.md
      ../docs/state.md
      ../docs/terminal.md
      ../pyproject.toml
      ../src
      ../tests/conftest.py
      ../tests/dispositions.py
      ../tests/errors
      ../tests/golden.py
      ../tests/hosts
      ../tests/patience.py
      ../tests/reference.py
      ../tests/running
      ../tests/samples.py
      ../tests/saying.py
      ../tests/shapes.py
      ../tests/shown.py
      ../tests/syntax.py
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
          python
        ];
      }
      ''
        cp -r ${source} source
        chmod -R u+w source
        cd source
        # The tests make sockets: their paths have to be short.
        HOME=$TMPDIR python3 -m pytest -q --basetemp=$TMPDIR/t --size quick tests/unit tests/hosts
        touch $out
      '';
}
