# Stands in for github:nix-community/nix-index-database: the one package that our flake uses of it.
{
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    {
      packages = builtins.mapAttrs (_system: pkgs: {
        comma-with-db = pkgs.standIn "comma-with-db" ", comma";
      }) nixpkgs.legacyPackages;
    };
}
