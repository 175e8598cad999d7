"""Groups of hosts by purpose: `--allow @npm`. Each row has the reason why it is there, which the audit prints.

A row is what `--allow` takes. There are no hosts here that only count visits, and no `*.` where the names are known.
"""

from __future__ import annotations

GROUPS: dict[str, tuple[tuple[str, str], ...]] = {
    "claude": (
        ("api.anthropic.com", "the API"),
        ("platform.claude.com", "log-in, and renewing it"),
        ("console.anthropic.com", "log-in of older versions"),
        ("claude.ai", "log-in, the install script"),
        ("downloads.claude.ai", "updates of the native install"),
        ("mcp-proxy.anthropic.com", "connectors of the account"),
    ),
    "openai": (
        ("api.openai.com", "the API"),
        ("chatgpt.com", "the API of a subscription"),
        ("auth.openai.com", "log-in, and renewing it"),
    ),
    "gemini": (
        ("generativelanguage.googleapis.com", "the API"),
        ("cloudcode-pa.googleapis.com", "the API of an account"),
        ("accounts.google.com", "log-in"),
        ("oauth2.googleapis.com", "log-in, and renewing it"),
    ),
    "npm": (
        ("registry.npmjs.org", "packages of npm, pnpm, yarn"),
        ("registry.yarnpkg.com", "the same, as older lock files name it"),
        ("nodejs.org", "headers and releases of Node"),
    ),
    "pypi": (
        ("pypi.org", "the index"),
        ("files.pythonhosted.org", "the packages themselves"),
    ),
    "crates": (
        ("index.crates.io", "the index"),
        ("static.crates.io", "the packages themselves"),
        ("crates.io", "the API: cargo search, cargo info"),
        ("static.rust-lang.org", "toolchains of rustup"),
    ),
    "go": (
        ("proxy.golang.org", "modules"),
        ("sum.golang.org", "their checksums"),
        ("storage.googleapis.com", "where the proxy sends large modules"),
        ("go.dev", "toolchains"),
        ("dl.google.com", "the toolchains themselves"),
    ),
    "maven": (
        ("repo.maven.apache.org", "Maven Central"),
        ("repo1.maven.org", "the same, as older builds name it"),
        ("plugins.gradle.org", "plugins of Gradle"),
        ("plugins-artifacts.gradle.org", "the plugins themselves"),
        ("services.gradle.org", "versions of Gradle"),
        ("downloads.gradle.org", "Gradle itself, for its wrapper"),
    ),
    "rubygems": (
        ("rubygems.org", "gems"),
        ("index.rubygems.org", "the index"),
    ),
    "packagist": (
        ("repo.packagist.org", "the index of Composer"),
        ("packagist.org", "the API"),
    ),
    "nuget": (
        ("api.nuget.org", "index and packages of NuGet"),
        ("www.nuget.org", "the tool itself"),
    ),
    "github": (
        ("github.com", "git over https and ssh, releases"),
        ("api.github.com", "the API, gh"),
        ("codeload.github.com", "archives of a commit"),
        ("raw.githubusercontent.com", "single files"),
        ("objects.githubusercontent.com", "files of releases, LFS"),
        ("release-assets.githubusercontent.com", "files of releases"),
        ("media.githubusercontent.com", "LFS"),
    ),
    "gitlab": (
        ("gitlab.com", "git over https and ssh, the API"),
        ("registry.gitlab.com", "packages and images"),
    ),
    "debian": (
        ("deb.debian.org", "packages"),
        ("security.debian.org", "security updates"),
    ),
    "ubuntu": (
        ("archive.ubuntu.com", "packages"),
        ("security.ubuntu.com", "security updates"),
        ("ports.ubuntu.com", "packages for ARM"),
    ),
    "nix": (
        ("cache.nixos.org", "built packages"),
        ("channels.nixos.org", "channels and the registry of flakes"),
        ("releases.nixos.org", "nixpkgs of a channel"),
    ),
    "docker": (
        ("registry-1.docker.io", "images"),
        ("auth.docker.io", "tokens to read them"),
        ("production.cloudflare.docker.com", "the layers"),
    ),
    "playwright": (
        ("cdn.playwright.dev", "browsers"),
        ("playwright.download.prss.microsoft.com", "browsers"),
    ),
}

# Their bare names mean port 22, too.
FORGES = ("github.com", "gitlab.com", "bitbucket.org", "codeberg.org", "git.sr.ht")
