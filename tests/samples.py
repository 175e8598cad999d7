"""Realistic files with the canary as their secret, as they lie in projects; and a package for pip."""

import io
import zipfile

CANARY = "cAnArY7x9"
PEM = f"-----BEGIN PRIVATE KEY-----\n{CANARY}{'MIIEvQ0b' * 7}\n{'x9K2q/Zt' * 8}\n-----END PRIVATE KEY-----\n"
_WORD = f"{CANARY}\n"
_ENV = f"COLOUR={CANARY}\n"
_JSON = f'{{"name": "shop", "password": "{CANARY}", "list": [{{"token": "{CANARY}"}}]}}\n'
_YAML = f"name: shop\nnested:\n  password: {CANARY}\n"
_INI = f"[x]\nname = shop\npassword = {CANARY}\n"
_XML = f'<x><password>{CANARY}</password><add key="password" value="{CANARY}"/></x>\n'
_CODE = f"define('DB_PASSWORD', '{CANARY}');\n"
_BY_CONTENT = {
    _WORD: (
        ".deploykey deploykey .deploy_key .github-token .access_token .api-key .my-secrets.txt .vault_pass "
        ".jwt_secret .ansible-vault-pass .passphrase .master-key root_ca_key hsm_secret token.pickle .vault-token "
        ".erlang.cookie identity secrets/db .secrets/x id_ed25519_work AuthKey_AB12.p8 config/master.key "
        "mongo-keyfile my-recovery-codes.txt mnemonic .supabase/access-token .bash_history x.p12 x.kdbx "
        "wallet.dat cookies.txt x.macaroon .gitcookies .google_authenticator .pass passwords.md secrets.db "
        "credentials.v2 .android/adbkey .env.swp"
    ),
    _ENV: (
        ".env .env.local .env-prod .env_prod .env~ .ENV .env2 .env.1 prod.env prod.env.bak .dev.vars .flaskenv "
        ".renviron .rbenv-vars .powenv .env.d/prod .envs/.production/.django .gitlab-ci-local-variables.yml "
        "rootkey.csv .aws/credentials .envprod credentials.prod secrets.properties.prod"
    ),
    f"export TOKEN={CANARY}\n": ".envrc .envrc.private env.sh shop-openrc.sh .profile",
    _JSON: (
        "credentials.json my_secrets.json api_keys.json local.settings.json terraform.tfstate .docker/config.json "
        "playwright/.auth/user.json .mcp.json .claude/settings.local.json .vscode/settings.json auth.json "
        "secrets.json5 secrets.jsonc authorized_user.json service-account-file.json x-firebase-adminsdk-1.json "
        "x.tfvars.json appsettings.Development.json client_secret_1.json .azure/msal_token_cache.json tokens.json"
    ),
    _YAML: (
        "secrets.yml .kube/config prod-kubeconfig.yaml k3s.yaml gh/hosts.yml database.yml~ .okta.yaml "
        "values-prod.yaml docker-compose.override.yml group_vars/all.yml application-prod.yml .secrets.yml.old"
    ),
    _INI: (
        "prod.tfvars .pypirc .s3cfg rclone.conf .my.cnf gradle.properties key.properties alembic.local.ini "
        ".databrickscfg secrets.tf secret.hcl config/prod.secret.exs secrets.nix .secrets.dhall"
    ),
    _XML: "settings.xml web.config nuget.config tomcat-users.xml WebServers.xml",
    _CODE: "wp-config.php config.php.bak settings.local.php",
    f"machine a.example login joe password {CANARY}\n": ".netrc _netrc .authinfo",
    f"localhost:5432:shop:joe:{CANARY}\n": ".pgpass pgpass.conf .htpasswd .usqlpass",
    f"//registry.example/:_authToken={CANARY}\n": ".npmrc .npmrc.save",
    PEM: "deploy_rsa x.pem Key.PEM some/where/thing.md2",
}
USUAL = {name: content for content, names in _BY_CONTENT.items() for name in names.split()}
ORDINARY = (
    "README.md LICENSE Makefile src/token.py src/secrets.go lib/passwords.rb tokenizer.json tokenizer_config.json "
    "env.d.ts package.json tsconfig.json index.html .env.example .env.sample .env.template .env.dist .env.vault "
    "secrets.yaml.enc secrets.example.yml credentials.template.json docs/secrets.md keyboard.ts id_rsa.pub "
    "password_reset.html wg.py aws/x.tf reset_password.html.erb token.d.ts PasswordField.tsx secret.service.ts "
    ".environment prod.env.example x.pem.md main.py~ .main.py.swp i18n/en.json openapi.yaml monkey.json "
    "token.svg .environment.ts .main.py.swo secret.css "
    "hotkeys.json secrets/manager.py src/aws/config.yaml env/bin/python recovery_codes.rb keyfile.go values-list.tsx"
)


def wheel(name: str, text: str = "") -> bytes:
    """A package of one module, version 1.0."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{name}.py", text)
        about = f"{name}-1.0.dist-info/"
        archive.writestr(f"{about}METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{about}WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}RECORD", "")
    return file.getvalue()
