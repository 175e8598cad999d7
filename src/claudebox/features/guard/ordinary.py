"""What runs when the user builds, tests, deploys or asks an agent: it may be written, and is named afterwards.

Editors run some of it, too, on opening or saving: the configuration of a linter is a program. But people ask agents to
write it, so it cannot be held.
"""

from __future__ import annotations

Rows = tuple[tuple[str, str, str], ...]  # the group, the reason and the names
BUILD = "run when you build or test"
USE = "run when you use them"
# Skills, commands and descriptions of agents: no wall is around them, since people ask for such files. But an agent
# needs no word of the user to take them up, and what their heads say may run programs.
TAKEN_UP = "taken up by agents"
TOOLS = "tools"  # whatever else begins with a dot in the root of the project

ROWS: Rows = (
    (BUILD, "make runs it", "{M,m,GNUm}akefile Makefile.am Kbuild Makefile.toml"),
    (
        *(BUILD, "a task runner runs it"),
        (
            "{J,j,.j}ustfile {T,t}askfile{,.dist}.{yml,yaml} {R,r}akefile{,.rb} Thorfile Guardfile Dangerfile Capfile "
            "Fastfile fastlane noxfile.py fabfile.py dodo.py tox.ini {,.}mise-tasks magefile.go magefiles Earthfile "
            "Tiltfile Vagrantfile Procfile{,.dev} maskfile.md Jakefile{,.js} {G,g}runtfile.{js,ts,coffee,cjs} "
            "{G,g}ulpfile{,.babel}.{js,ts,mjs,cjs} plopfile.{js,ts,mjs,cjs} nodemon.json Snakefile dvc.yaml MLproject "
            "bacon.toml Trunk.toml tauri.conf.json {.,}tmuxinator.yml .tmuxp.{yaml,json} .teamocil.yml .smug.yml "
            ".overmind.env process-compose.{yml,yaml} lerna.json nx.json turbo.json rush.json angular.json "
            "workspace.json project.json .moon bb.edn castor.php cog.toml cliff.toml {.,}goreleaser.{yml,yaml} "
            ".release-it.json .bumpversion.{cfg,toml} .releaserc{,.json,.yaml,.yml,.js,.cjs,.mjs} "
            ".versionrc{,.json,.js,.cjs} .czrc {.,}cz.{toml,json,yaml} .cz-config.{js,cjs}"
        ),
    ),
    (
        *(BUILD, "building runs it"),
        (
            "CMakeLists.txt CMake{,User}Presets.json meson.build meson_options.txt BUILD{,.bazel} WORKSPACE{,.bazel} "
            "MODULE.bazel .bazelrc .bazeliskrc .buckconfig{,.local} SConstruct SConscript wscript configure "
            "configure.ac autogen.sh premake5.lua xmake.lua conanfile.{py,txt} build.zig build.zig.zon dune "
            "dune-project build.xml pom.xml build.sc build.mill project.clj build.boot deps.edn shadow-cljs.edn "
            "rebar.config mix.exs Package.swift Podfile Cartfile Gemfile Berksfile config.ru hatch_build.py "
            "pdm_build.py Setup.hs {.,}latexmkrc Eldev Cask gradlew{,.bat} gradle/wrapper mvnw{,.cmd} .mvn "
            "Directory.{Build,Solution,Packages}.{props,targets,rsp} global.json startup.m gtags.conf .dagger "
            "Cross.toml foundry.toml Dioxus.toml"
        ),
    ),
    (BUILD, "package managers run its scripts", "{package,composer,bower}.json deno.json{,c} Pipfile pixi.toml"),
    (
        *(BUILD, "package managers obey it"),
        (
            ".npmrc .pnpmrc .yarnrc{,.yml} .yarn/{releases,plugins,sdks} .pnpmfile.{cjs,mjs,js} pnpm-workspace.yaml "
            ".bowerrc bunfig.toml .bundle/config pip.conf pip.ini uv.toml poetry.toml .pdm.toml hatch.toml "
            "{n,N}u{g,G}et.{c,C}onfig .config/dotnet-tools.json .condarc environment.{yml,yaml} .sdkmanrc .gemrc "
            "cabal.project{,.local} stack.yaml conda.yaml"
        ),
    ),
    (BUILD, "installing runs it", "setup.py setup.cfg pyproject.toml build.rs install.sh PKGBUILD"),
    (
        *(BUILD, "tests load it"),
        (
            "conftest.py pytest.ini .rspec .simplecov .{mocha,nyc,c8}rc{,.json,.yml,.yaml,.js,.cjs,.mjs} .taprc "
            ".proverc .coveragerc phpunit.xml{,.dist} behave.ini .behaverc spec_helper.rb karma.conf.js "
            "wdio.conf.{js,ts} protractor.conf.js nightwatch.conf.js"
        ),
    ),
    (
        *(BUILD, "linters load code that it names, in editors too"),
        (
            ".{eslint,prettier,stylelint,babel,postcss,remark,textlint}rc{,.json,.json5,.yml,.yaml,.js,.cjs,.mjs,.ts} "
            ".swcrc .parcelrc .tern-project {.,}pylintrc {.,}mypy.ini .flake8 pyrightconfig.json .rubocop.yml "
            ".solargraph.yml .yardopts .erb-lint.yml Steepfile {.,}phpcs.xml{,.dist} phpstan.neon{,.dist} "
            "psalm.xml{,.dist} {.,}php-cs-fixer{,.dist}.php .php_cs{,.dist} rector.php ecs.php dprint.json "
            "treefmt.toml .clangd .golangci.{yml,yaml,toml} .custom-gcl.yml omnisharp.json .arc{config,lint} "
            ".credo.exs .formatter.exs .scalafix.conf .tflint.hcl .luacheckrc .hlint.yaml .perlcriticrc .vale.ini "
            ".pre-commit-hooks.yaml .bsp"
        ),
    ),
    (
        *(BUILD, "Nix or Guix builds by it"),
        "{flake,shell,default,devenv,release}.nix flake.lock devenv.yaml devbox.json .flox {guix,manifest}.scm",
    ),
    (
        *(BUILD, "containers are made by it"),
        (
            "{Docker,Container}file {docker-,}compose{,.override,.dev,.prod,.test}.{yml,yaml} docker-bake.{hcl,json} "
            "skaffold.yaml garden.yml devspace.yaml okteto.{yml,yaml} werf.yaml .lando.yml .ddev"
        ),
    ),
    (
        *(BUILD, "it is obeyed when you deploy"),
        (
            "ansible.cfg .terraformrc terraform.rc terragrunt.hcl Pulumi.{yaml,yml} cdk.json samconfig.toml "
            "helmfile.yaml serverless.{yml,yaml,ts,js,json} vercel.{json,ts} now.json netlify.toml fly.toml "
            "render.yaml railway.{json,toml} nixpacks.toml amplify.yml firebase.json wrangler.{toml,json,jsonc} "
            "heroku.yml app.{json,yaml} .platform{,.app.yaml} .upsun .do/app.yaml .deployment captain-definition "
            ".htaccess deploy.php .s2i .ebextensions .elasticbeanstalk .mrconfig"
        ),
    ),
    (
        *(USE, "a shell or desktop runs it, if your home leads to it"),
        (
            "{.,}{bash,zsh,ksh,csh,tcsh}rc {.,}{bash_,z}profile .profile {.,}bash_{aliases,login,logout} "
            "{.,}z{shenv,login,logout} {.,}inputrc {.,}tmux.conf {.,}screenrc .x{initrc,profile,sessionrc,session} "
            "config.fish init.{vim,lua,el} .emacs .emacs.d starship.toml jupyter{,_notebook,_server,_lab}_config.py "
            "ipython_config.py .wezterm.lua"
        ),
    ),
    (
        *(TAKEN_UP, "an agent on this host takes it up, with its hooks"),
        (
            ".claude/{commands,agents,skills,workflows,plugins} .cursor/{commands,agents} .github/{agents,skills} "
            ".gemini/{agents,skills} .codex/{skills,agents} .kiro/agents .augment/commands .qwen/agents "
            ".factory/{commands,skills}"
        ),
    ),
    (
        *(USE, "an agent on this host obeys it"),
        (
            ".claude/{output-styles,rules,statusline.sh} "
            "{CLAUDE,CLAUDE.local,AGENTS,AGENTS.override,GEMINI,AGENT,QWEN,WARP,CRUSH,CONVENTIONS}.md .claude-plugin "
            ".cursorrules .cursor/rules .windsurfrules .windsurf/rules .clinerules .roorules "
            ".roomodes .roo/{rules,commands} .goosehints "
            ".github/{copilot-instructions.md,instructions,prompts,chatmodes} "
            ".continue/{rules,prompts,models} .gemini/commands .codex/prompts "
            ".kiro/steering .junie/guidelines.md .augment/rules .augment-guidelines "
            ".kilocode/{rules,workflows} .trae/rules .qwen/commands .amazonq/{rules,prompts} "
            ".agents/{skills,rules,commands} .agent/{rules,skills,workflows} .rules "
            ".openhands/microagents .amp/{tools,toolboxes}"
        ),
    ),
    (USE, "variables of it are obeyed by many tools", ".env"),
)

# Names that count by how they begin or end.
BEGINNINGS = (
    ("Dockerfile.", "containers are made by it"),
    ("Procfile.", "a task runner runs it"),
    ("docker-compose.", "containers are made by it"),
)
_CODE = "tools and editors run it: it is code"
ENDS = (
    *((f".config.{kind}", _CODE) for kind in ("js", "cjs", "mjs", "ts", "cts", "mts")),
    (".mk", "make runs it"),
    (".cmake", "building runs it"),
    (".gradle", "building runs it"),
    (".gradle.kts", "building runs it"),
    (".sbt", "building runs it"),
    (".gemspec", "installing runs it"),
    (".targets", "building runs it"),
    ("-gdb.py", "a debugger runs it with a program of its name"),
)


def reason_of(name: str) -> str:
    """Why a name counts by how it begins or ends; "" if it does not."""
    for beginning, reason in BEGINNINGS:
        if name.startswith(beginning):
            return reason
    for end, reason in ENDS:
        if name.endswith(end):
            return reason
    return ""


# Whatever else begins with a dot in the root of the project belongs to a tool, unless it is one of these.
TOOL = "a tool may obey it"
NO_TOOLS_ENDS = (
    *("ignore", "-version", "cache", "_cache", "history", ".lock", "keep", ".log", ".tmp", ".swp", ".md", ".txt"),
    *(".example", ".sample", ".template", ".dist", ".pid", ".sock", ".db", ".sqlite", ".bak", "~"),
)
NO_TOOLS = frozenset(
    # Read as data.
    ".git .gitattributes .gitmodules .mailmap .editorconfig .nvmrc .browserslistrc .clang-format .clang-tidy "
    ".rustfmt.toml .DS_Store .directory .nojekyll .markdownlint.json .ruby-gemset .git-blame-ignore-revs "
    ".all-contributorsrc .codecov.yml .claudebox.toml "
    # Made by tools, which can make it again.
    ".coverage .nyc_output .hypothesis .ipynb_checkpoints .pnp.cjs .pnp.loader.mjs .pnp.data.json .expo .wrangler "
    ".vercel .netlify .serverless .sst .nx .angular .astro .docusaurus .output .nitro .vinxi .tanstack "
    ".react-router .contentlayer .swc .metals .bloop .scala-build .kotlin .cxx .externalNativeBuild .elixir_ls "
    ".shadow-cljs .rebar3 .build .swiftpm .packages .pub-cache .flutter-plugins .flutter-plugins-dependencies "
    ".metadata .eggs .pytype .pyre .vagrant .pulumi .tmp .temp .trash .npm .pnpm-store .local .dub .ccls-cache "
    ".clj-kondo .ansible .molecule .pdm-build .pdm-python .Rhistory .Rproj.user .vite .rpt2_cache .tsbuildinfo "
    ".spago".split()
)


def is_tools(name: str) -> bool:
    """Whether a name in the root of the project is one that a tool may have reserved for itself."""
    return (
        name.startswith(".")
        and name not in NO_TOOLS
        and not name.startswith((".env.", ".coverage.", ".nfs", ".#", ".goutputstream", ".fuse_hidden"))
        and not name.endswith(NO_TOOLS_ENDS)
    )
