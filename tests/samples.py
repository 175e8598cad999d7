"""A realistic file for each row of the table of secrets, with the canary as its secret."""

from __future__ import annotations

import json

from claudebox.features.secrets.table import (
    GIT,
    KEY,
    LOOKS,
    MARKUP,
    NOTED,
    QUOTED,
    ROWS,
    SHAPE,
    SHELL,
    SURE,
    VALUES,
    WORDS,
)

CANARY = "cAnArY7x9"
PEM = f"-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----\n"
GOOGLE_KEY = "shop-0123456789ab.json"
# The key that has to be in the decoy, so that programs find it. Of the other styles nothing need remain.
KEPT = {VALUES: "password", LOOKS: "password", SHELL: "TOKEN", QUOTED: "PASSWORD", MARKUP: "password", SURE: "api_key"}


def rows() -> dict[str, str]:
    """A name for each row and for each rule about names, with the style that is expected there."""
    masked = [(style, names) for style, _, names in ROWS if style != NOTED]
    found = {_name(name): style for style, names in masked for name in names.split() if not name.startswith(".git/")}
    found |= {f"my-{word}.yml": LOOKS if word == "token" else VALUES for word in WORDS}
    found |= {f"my-{word}.txt": "whole" for word in WORDS} | {f"my-{word}": "plain" for word in WORDS}
    found |= {
        f"x.{word}": "whole" for word in ("secret", "secrets", "token", "credentials", "creds", "passwd", "password")
    }
    found |= dict.fromkeys((".env", ".env.local", ".env-prod", ".env_prod", ".env~", ".ENV", ".env2"), VALUES)
    found |= dict.fromkeys(("prod.env", "prod.env.local", "prod.env.bak"), LOOKS)
    found |= dict.fromkeys(("deploy_rsa", "server-prod", "Key.PEM", "some/where/identity2"), KEY)
    return found | {"home.conf": LOOKS}


def _name(pattern: str) -> str:
    if pattern == "*.json":
        return GOOGLE_KEY
    name = pattern.replace("*", "x")
    return f"{name}config" if pattern.endswith("/") else name


def content(name: str, style: str) -> str:
    lower = name.lower()
    if name == "home.conf" or lower.startswith("wg"):
        return f"[Interface]\nPrivateKey = {CANARY}\npassword = {CANARY}\n"
    if style in (VALUES, LOOKS):
        return _settings(lower)
    return {
        SHELL: f"[ -n x ] && export A=b TOKEN={CANARY}\n",
        QUOTED: f"<?php define('PASSWORD', '{CANARY}');\nPASSWORD = \"{CANARY}\"\n",
        MARKUP: f'<x><password>{CANARY}</password><add key="password" value="{CANARY}"/></x>\n',
        KEY: PEM,
        SHAPE: json.dumps({"type": "service_account", "private_key": PEM}),
        SURE: _settings(lower, "api_key", f"sk-ant-{CANARY}0123456789012345"),
        GIT: f'[remote "origin"]\n\turl = https://{CANARY}@git.example/x.git\n',
    }.get(style, f"{CANARY}\n")


def _settings(name: str, key: str = "password", value: str = CANARY) -> str:
    if name.endswith((".json", ".tfstate", ".har", ".code-workspace")) or name == ".mcp.json":
        return json.dumps({"name": "shop", key: value, "list": [{"name": "API_TOKEN", "value": value}]})
    if name.endswith((".yml", ".yaml")) or "kube" in name:
        return f"name: shop\nnested:\n  {key}: {value}\n"
    if name.endswith(".toml"):
        return f'[x]\nname = "shop"\n{key} = "{value}"\n'
    return f"name=shop\n{key}={value}\n"
