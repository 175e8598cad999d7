# What plays nixpkgs: a few packages that a shell can build, and that need nothing but a shell.
{
  outputs =
    { self }:
    let
      packages =
        system:
        let
          run =
            name: commands:
            derivation {
              inherit name system;
              builder = "/bin/sh";
              args = [
                "-euc"
                "PATH=/bin:/usr/bin\n${commands}"
              ];
            };
          program =
            name: command:
            run "${name}-1.0" ''
              mkdir -p $out/bin
              printf '#!/bin/sh\n%s\n' "${command}" > $out/bin/${name}
              chmod +x $out/bin/${name}
            '';
        in
        rec {
          hello = program "hello" "echo Hello, world!";

          # A closure of two paths.
          cow = run "cow-1.0" "echo Moo. > $out";
          cowsay = program "cowsay" "cat ${cow}";

          # Two programs of one name, to see who comes first.
          loud = program "greet" "echo HELLO";
          quiet = program "greet" "echo hello";

          broken = run "broken-1.0" "echo this cannot be built >&2; exit 1";
        };
    in
    {
      legacyPackages.x86_64-linux = packages "x86_64-linux";
      legacyPackages.aarch64-linux = packages "aarch64-linux";
    };
}
