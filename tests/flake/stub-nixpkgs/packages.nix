# The packages of nixpkgs that our flake names, made of what this machine has.
{
  lib,
  machine,
  system,
}:
let
  # A derivation whose script sees nothing but the programs of some directories.
  build =
    name: path: environment: script:
    derivation (
      {
        inherit name system;
        builder = "/bin/sh";
        PATH = path;
        args = [
          "-euc"
          script
        ];
      }
      // environment
    );
  buildHere = name: build name "/usr/bin:/bin:/usr/sbin:/sbin" { };

  # The libraries of all programs, and the loader, in one place.
  libraries = buildHere "libraries" ''
    mkdir -p $out/lib
    for program in ${lib.concatMapStrings (names: toString names + " ") (builtins.attrValues programs)}; do
      file=$(command -v $program) || continue
      ldd "$file" 2>/dev/null || :
    done > listing
    ldd ${machine.python} ${machine.stdlib}/lib-dynload/*.so >> listing
    sed -nE 's#^[^/]*(/[^ ]+) \(0x.*#\1#p' listing | sort -u | while read -r library; do
      cp -Ln "$library" $out/lib/
    done
    ln -s $out/lib/ld-*.so.* $out/lib/loader
  '';
  # In two steps: patchelf 0.18 and later break Debian's Python if they do both at once.
  useLibraries = file: ''
    patchelf --force-rpath --set-rpath ${libraries}/lib ${file}
    patchelf --set-interpreter ${libraries}/lib/loader ${file}
  '';

  programs = {
    bashInteractive = "bash sh";
    btrfs-progs = "mkfs.btrfs";
    bubblewrap = "bwrap";
    coreutils = "basename cat chmod cp cut date dirname env head id ln ls mkdir mktemp mv printenv printf readlink realpath rm sleep sort stat tail touch tr true uname wc";
    curl = "curl";
    diffutils = "diff";
    e2fsprogs = "mkfs.ext4";
    fd = "fd";
    fish = "fish";
    findutils = "find xargs";
    gawk = "awk";
    git = "git";
    gnugrep = "grep";
    gnused = "sed";
    gnutar = "tar";
    gzip = "gzip";
    iproute2 = "ip";
    gcc = "gcc";
    gdb = "gdb";
    gnumake = "make";
    jq = "jq";
    less = "less";
    man-db = "man";
    mandoc = "mandoc";
    nftables = "nft";
    nix = "nix";
    nodejs = "node npm";
    openssh = "ssh";
    openssl = "openssl";
    passt = "pasta";
    patchelf = "patchelf";
    pip = "pip3";
    procps = "ps";
    ripgrep = "rg";
    shellcheck = "shellcheck";
    sqlite = "sqlite3";
    strace = "strace";
    tmux = "tmux";
    wget = "wget";
    xfsprogs = "mkfs.xfs";
    which = "which";
    zsh = "zsh";
  };
  copies = builtins.mapAttrs (
    package: names:
    buildHere package ''
      mkdir -p $out/bin
      for name in ${names}; do
        file=$(command -v $name) || file=/dev/null
        if patchelf --print-interpreter "$file" > /dev/null 2>&1; then
          cp -L "$file" $out/bin/$name
          chmod 755 $out/bin/$name
          ${useLibraries "$out/bin/$name"}
        else
          ${sayName "$name"} > $out/bin/$name
          chmod 755 $out/bin/$name
        fi
      done
    ''
  ) programs;
  sayName = name: ''printf '#!/bin/sh\necho "%s of the stub"\n' "${name}"'';

  python3 =
    buildHere "python3" ''
      mkdir -p $out/bin $out/lib
      cp -L ${machine.python} $out/bin/${machine.pythonName}
      chmod 755 $out/bin/${machine.pythonName}
      ${useLibraries "$out/bin/${machine.pythonName}"}
      ln -s ${machine.pythonName} $out/bin/python3
      cp -r ${machine.stdlib} $out/lib/${machine.pythonName}
    ''
    // {
      interpreter = "${python3}/bin/${machine.pythonName}";
      sitePackages = "lib/${machine.pythonName}/site-packages";
      # The one of the tests, which has these.
      withPackages =
        choose:
        assert choose python3Packages != [ ];
        buildHere "python3-env" ''
          mkdir -p $out/bin
          printf '#!/bin/sh\nexec "${machine.venv}/bin/python" "$@"\n' > $out/bin/python3
          chmod 755 $out/bin/python3
        '';
    };

  python3Packages = {
    hatchling = "hatchling";
    hypothesis = "hypothesis";
    pytest = "pytest";
    inherit (copies) pip;
    inherit buildPythonApplication;
  };

  # No `...`: an attribute that nothing here looks at would be a promise that nothing keeps.
  buildPythonApplication =
    {
      pname,
      version,
      src,
      pyproject,
      build-system,
      postPatch,
      dontWrapPythonPrograms,
      postInstall,
      installCheckPhase,
      meta,
    }:
    assert pyproject && dontWrapPythonPrograms && build-system == [ python3Packages.hatchling ];
    buildHere "${pname}-${version}" ''
      runHook() { :; }
      version=${version}
      cp -r ${src} source
      chmod -R u+w source
      cd source
      ${postPatch}
      "${machine.venv}/bin/python" -m hatchling build --target wheel --directory dist
      "${machine.venv}/bin/python" -m pip --disable-pip-version-check install --quiet --no-index --no-deps \
        --no-warn-script-location --prefix $out dist/*.whl
      ${postInstall}
      ${installCheckPhase}
    ''
    // {
      inherit meta;
    };

  # In the real one these are always there, too.
  standardEnvironment = with copies; [
    bashInteractive
    coreutils
    diffutils
    findutils
    gawk
    gnugrep
    gnused
    gnutar
    gzip
  ];
  runCommand =
    name: environment: script:
    let
      path = environment.nativeBuildInputs or [ ] ++ standardEnvironment;
    in
    build name (lib.makeBinPath path) (removeAttrs environment [ "nativeBuildInputs" ]) script;
in
copies
// {
  inherit python3 python3Packages runCommand;

  # As in the real one, a file of the store that may name other store paths.
  writeText = name: text: build name "/usr/bin:/bin" { inherit text; } ''printf %s "$text" > $out'';

  cacert = buildHere "cacert" ''
    mkdir -p $out/etc/ssl/certs
    cp -L ${machine.certificates} $out/etc/ssl/certs/ca-bundle.crt
  '';

  # A shell to look at: the programs that it would have.
  mkShell =
    { packages }:
    buildHere "shell" ''
      mkdir -p $out/bin
      for directory in ${toString (map (package: "${package}/bin") packages)}; do
        ln -s $directory/* $out/bin/
      done
    '';

  # For stub-nix-index-database.
  standIn =
    name: names:
    buildHere name ''
      mkdir -p $out/bin
      for name in ${names}; do
        ${sayName "$name"} > $out/bin/$name
        chmod 755 $out/bin/$name
      done
    '';
}
