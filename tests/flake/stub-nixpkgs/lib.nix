# The part of nixpkgs' lib that our flake uses.
let
  inherit (builtins)
    any
    concatStringsSep
    listToAttrs
    map
    stringLength
    substring
    ;
  startsWith = prefix: text: substring 0 (stringLength prefix) text == prefix;
  isBelow = directory: path: path == directory || startsWith "${directory}/" path;
in
rec {
  concatMapStrings = make: list: concatStringsSep "" (map make list);
  genAttrs =
    names: make:
    listToAttrs (
      map (name: {
        inherit name;
        value = make name;
      }) names
    );
  getBin = package: package.bin or package;
  getExe = package: getExe' package package.meta.mainProgram;
  getExe' = package: name: "${getBin package}/bin/${name}";
  head = builtins.head;
  makeBinPath = packages: concatStringsSep ":" (map (package: "${getBin package}/bin") packages);

  licenses.mit = "MIT";
  platforms.linux = [
    "x86_64-linux"
    "aarch64-linux"
  ];

  fileset = {
    unions = paths: paths;
    toSource =
      { root, fileset }:
      let
        chosen = map toString fileset;
      in
      builtins.path {
        path = root;
        name = "source";
        filter = path: _type: any (wanted: isBelow wanted path || isBelow path wanted) chosen;
      };
  };
}
