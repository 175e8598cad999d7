{
  description = "Claude Code in a bubblewrap box";

  inputs = {
    nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";
    # comma, and the database that tells it which package holds a program.
    nix-index-database = {
      url = "github:nix-community/nix-index-database";
      inputs.nixpkgs.follows = "nixpkgs";
    };
  };

  outputs =
    {
      self,
      nixpkgs,
      nix-index-database,
    }:
    let
      inherit (nixpkgs) lib;
      systems = [
        "x86_64-linux"
        "aarch64-linux"
      ];
      forEachSystem = make: lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
      claudeboxOf =
        pkgs:
        pkgs.callPackage ./nix/package.nix {
          inherit (nix-index-database.packages.${pkgs.stdenv.hostPlatform.system}) comma-with-db;
        };
    in
    {
      packages = forEachSystem (pkgs: {
        default = claudeboxOf pkgs;
      });

      apps = forEachSystem (pkgs: {
        default = {
          type = "app";
          program = lib.getExe (claudeboxOf pkgs);
        };
      });

      # For systems that have a nixpkgs of their own: everything but comma then comes from that.
      overlays.default = final: prev: { claudebox = claudeboxOf final; };

      checks = forEachSystem (
        pkgs: pkgs.callPackage ./nix/checks.nix { claudebox = claudeboxOf pkgs; }
      );

      devShells = forEachSystem (pkgs: {
        default = pkgs.callPackage ./nix/shell.nix { };
      });
    };
}
