# Stands in for github:NixOS/nixpkgs where there is no network: what our flake uses of it, under the same names.
#
# Its programs are copies of this machine's, made to use only what is in the store, so that a box whose host has nothing
# else can be run. What this machine lacks is a script that says its name. Builds run without Nix's own sandbox.
{
  outputs =
    { self }:
    let
      machine = builtins.fromJSON (builtins.readFile ./machine.json); # written by the tests
      lib = import ./lib.nix;
      packagesOf =
        system:
        let
          pkgs = import ./packages.nix { inherit lib machine system; } // {
            inherit lib pkgs system;
            stdenv.hostPlatform = { inherit system; };
            callPackage =
              file: given:
              let
                make = import file;
                wanted = builtins.functionArgs make;
              in
              make (builtins.intersectAttrs wanted pkgs // given);
          };
        in
        pkgs;
    in
    {
      inherit lib;
      legacyPackages = lib.genAttrs [
        "x86_64-linux"
        "aarch64-linux"
      ] packagesOf;
    };
}
