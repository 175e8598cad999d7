"""Secrets in settings that are masked gently: whatever names or shapes say so, in each syntax; and what is kept."""

from __future__ import annotations

import shutil
import subprocess
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claudebox.features.secrets.decoys import make_decoy
from claudebox.features.secrets.markup import mask_markup, mask_quoted
from claudebox.features.secrets.scripts import mask_script
from claudebox.features.secrets.table import LOOKS, SURE, VALUES

pytestmark = pytest.mark.req("SEC-01")

SECRET = "hunter2Zq"
CASES = [
    (LOOKS, "a.yml", "x:\n  ? password\n  : SECRET"),
    (LOOKS, "x.env", "DB_PASS=SECRET"),
    (LOOKS, "x.env", "PASSWORD :SECRET"),
    (LOOKS, "x.env", "password\tSECRET"),
    (LOOKS, "x.env", "export  PASSWORD = SECRET"),
    (LOOKS, "x.env", "PASSWORD=\nSECRET\n"),
    (LOOKS, "x.env", 'PASSWORD="""\nSECRET\n"""'),
    (LOOKS, "x.env", "A=1;PASSWORD=SECRET"),
    (LOOKS, "x.env", "A=1 PASSWORD=SECRET"),
    (LOOKS, "x.env", "; PASSWORD=SECRET"),
    (LOOKS, "x.env", "// password: SECRET"),
    (LOOKS, "x.env", "URL=https://SECRET@x.example/"),
    (LOOKS, "x.env", "URL=https://x.example/?token=SECRET"),
    (LOOKS, "x.env", "URL=https://x.example/?a=b&sig=SECRET"),
    (LOOKS, "x.env", "URL=redis://:SECRET@x.example/"),
    (LOOKS, "x.env", "DSN=user:SECRET@tcp(db:3306)/x"),
    (LOOKS, "x.env", "DSN=host=db password=SECRET user=x"),
    (LOOKS, "x.env", "SLACK_WEBHOOK=https://hooks.slack.com/services/T0/B0/SECRET"),
    (LOOKS, "a.yml", "password:\n  - SECRET"),
    (LOOKS, "a.yml", "password: >-\n  SECRET"),
    (LOOKS, "a.yml", "password: !secret SECRET"),
    (LOOKS, "a.yml", "users:\n  - {name: a, password: SECRET}"),
    (LOOKS, "a.yml", "- password: SECRET"),
    (LOOKS, "a.yml", 'x: "password=SECRET"'),
    (LOOKS, "a.yml", "'password': SECRET"),
    (LOOKS, "a.yml", 'args: ["--password", "SECRET"]'),
    (LOOKS, "a.yml", "args:\n  - --password\n  - SECRET"),
    (LOOKS, "a.yml", "command: mysql -pSECRET"),
    (LOOKS, "a.yml", "x: {\n password: SECRET\n}"),
    (LOOKS, "a.json", '{"a": {"password": ["SECRET"]}}'),
    (LOOKS, "a.json", '{"env": ["PASSWORD=SECRET"]}'),
    (LOOKS, "a.json", '{"x": "{\\"password\\": \\"SECRET\\"}"}'),
    (LOOKS, "a.json", '[{"key":"token","value":"SECRET"}]'),
    (LOOKS, "a.json", '{"name":"Authorization","value":"SECRET"}'),
    (LOOKS, "a.json", '{"password": {"value": "SECRET"}}'),
    (LOOKS, "a.json", '{"users":{"joe":{"pw":"SECRET"}}}'),
    (LOOKS, "a.json", '// c\n{"a":1,"password":"SECRET",}'),
    (LOOKS, "a.json", '{"a":1,"password":\n"SECRET",}//'),
    (LOOKS, "a.toml", '[tokens]\ngithub = "SECRET"'),
    (LOOKS, "a.toml", 'x = { password = "SECRET" }'),
    (LOOKS, "a.toml", "password = '''\nSECRET'''"),
    (LOOKS, "a.toml", 'a = [\n  "--token", "SECRET",\n]'),
    (LOOKS, ".npmrc", "//r.example/:_auth=SECRET"),
    (LOOKS, ".npmrc", '//r.example/:_password="SECRET"'),
    (LOOKS, ".npmrc", "_authToken=SECRET"),
    (LOOKS, "pip.conf", "[global]\nindex-url =\n  https://SECRET@x.example/simple"),
    (LOOKS, "redis.conf", "requirepass SECRET"),
    (LOOKS, "redis.conf", "masterauth SECRET"),
    (LOOKS, "redis.conf", "user default on >SECRET ~*"),
    (LOOKS, "my.cnf", "[client]\npassword=SECRET"),
    (LOOKS, "x.http", "GET https://x/\nAuthorization: SECRET\n"),
    (LOOKS, "x.http", 'POST /\nX-Auth-Token: SECRET\n\n{"password": "SECRET"}'),
    (LOOKS, "x.http", "GET https://x/?api_key=SECRET&b=c HTTP/1.1"),
    (LOOKS, "x.http", "@token = SECRET"),
    (LOOKS, "x.http", "Cookie: sid=SECRET"),
    (LOOKS, "application.properties", "spring.datasource.password=SECRET"),
    (LOOKS, "application.properties", "spring.datasource.url=jdbc:mysql://db/x?user=a&password=SECRET"),
    (LOOKS, "application.properties", "a.b-password: SECRET"),
    (LOOKS, "application.properties", "db.password \\\n  = SECRET"),
    (LOOKS, "application.properties", "jwt.signing.key=SECRET"),
    (LOOKS, "appsettings.json", '{"Smtp":{"Pass":"SECRET"}}'),
    (LOOKS, "appsettings.json", '{"ConnectionStrings":{"a":"Server=x;Pwd=SECRET;"}}'),
    (
        LOOKS,
        "appsettings.json",
        '{"a":"DefaultEndpointsProtocol=https;AccountName=x;AccountKey=SECRET==;EndpointSuffix=y"}',
    ),
    (LOOKS, "appsettings.json", '{"ApiKey":"SECRET"}'),
    (LOOKS, "profiles.yml", "x:\n  outputs:\n    dev:\n      pass: SECRET\n"),
    (LOOKS, "airflow.cfg", "[core]\nfernet_key = SECRET\nsql_alchemy_conn = postgresql://a:SECRET@b/c"),
    (LOOKS, "wrangler.toml", '[vars]\nAPI_TOKEN = "SECRET"'),
    (LOOKS, "terraform.tfvars", 'db = {\n  password = "SECRET"\n}'),
    (LOOKS, "terraform.tfvars", "db_password = <<EOF\nSECRET\nEOF"),
    (LOOKS, "inventory.ini", "host ansible_user=a ansible_password=SECRET"),
    (LOOKS, "inventory.ini", "host ansible_ssh_pass='SECRET'"),
    (LOOKS, "wg0.conf", "PrivateKey=SECRET"),
    (LOOKS, "x.nmconnection", "[wifi-security]\npsk=SECRET"),
    (LOOKS, "docker-compose.override.yml", "x:\n  environment:\n    MYSQL_ROOT_PASSWORD: 'SECRET'"),
    (LOOKS, "values.yaml", "auth:\n  rootPassword: SECRET"),
    (LOOKS, "sftp.json", '{"host":"x","username":"a","passphrase":"SECRET"}'),
    (LOOKS, "google-services.json", '{"client":[{"api_key":[{"current_key":"SECRET"}]}]}'),
    (VALUES, "x.yml", "a:\n  ? SECRET\n"),
    (VALUES, ".env", "SECRET"),
    (SURE, "config.json", '{"discord":{"token":"MTASECRET.abc123.def456ghi"}}'),
    (SURE, "config.yml", "password: SECRET0123456789abcdef"),
    (SURE, "compose.yml", "x:\n  environment:\n    - A=postgres://joe:SECRET@db/x"),
    (LOOKS, "x.remmina", "[remmina]\npassword=SECRET"),
    (LOOKS, ".gemrc", ":rubygems_api_key: SECRET"),
    (LOOKS, ".condarc", "channels:\n  - https://a.example/t/SECRET/x"),
    (LOOKS, "rclone.conf", "[x]\ntype = s3\nsecret_access_key = SECRET\npass = SECRET"),
    (LOOKS, "terraform.rc", 'credentials "app.terraform.io" {\n  token = "SECRET"\n}'),
    (LOOKS, ".actrc", "-s TOKEN=SECRET"),
    (LOOKS, ".actrc", "--secret TOKEN=SECRET"),
    (LOOKS, "local.properties", "MAPS_API_KEY=SECRET"),
    (LOOKS, "database.yml", "x:\n  password:\tSECRET"),
    (LOOKS, "values.yaml", "tls_key: &key |\n  a: SECRET"),
]


@pytest.mark.parametrize("end", ["", "\n", "\r\nname=x\r\n"])
def test_no_secret_comes_through(end: str) -> None:
    for style, name, text in CASES:
        last = "\n" if end.strip() and name.endswith(".json") else end
        made = make_decoy(f"{text}{last}".replace("SECRET", SECRET).encode(), style, name)
        assert (name, text, made is not None and SECRET not in made.decode()) == (name, text, True)


@pytest.mark.parametrize(
    ("style", "name", "text"),
    [
        (LOOKS, "a.env", "PORT=1\nNAME=a long value\nURL=https://x.example/a?b=c\nTOKEN=${TOKEN}\nPASSWORD=changeme\n"),
        (LOOKS, "values.yaml", "image:\n  tag: x\ntext: |\n  a: b\npassword: ''\nexistingSecret:\nkeys: []\n"),
        (LOOKS, "values.yaml", 'password: "{{ .Values.password }}"\ndescription: "two\n  lines"\n'),
        (LOOKS, "settings.json", '{ // note\n "editor.tabSize": 2, "files.exclude": {"**/.git": true}, }\n'),
        (LOOKS, "application.properties", "spring.datasource.url=jdbc:mysql://db/x\nspring.datasource.username=sa\n"),
        (LOOKS, ".npmrc", "registry=https://r.example/\nsave-exact=true\n"),
        (LOOKS, "database.yml", "x:\n  password: <%= ENV['PASSWORD'] %>\n  url: postgres://postgres:postgres@db/x\n"),
        (SURE, "config.json", '{"max_tokens": 4096, "pad_token": "<pad>", "tokenizer_class": "X", "password": "dev"}'),
        (
            SURE,
            "compose.yml",
            "x:\n  environment:\n    POSTGRES_PASSWORD: postgres\n    URL: postgres://a:password@db/x\n",
        ),
    ],
)
def test_settings_without_secrets_stay_as_they_are(style: str, name: str, text: str) -> None:
    assert make_decoy(text.encode(), style, name) is None


# Decoys of shell scripts: no secret comes through, in whichever way it is assigned, and the rest still runs.


FORMS = [
    f"TOKEN={SECRET}",
    f"export TOKEN='{SECRET}'",
    f'export TOKEN="a {SECRET}"',
    f"export TOKEN=$'a\\'{SECRET}'",
    f"export TOKEN=\"{SECRET}\"'{SECRET}'",
    f'export "TOKEN={SECRET}"',
    f"if true; then TOKEN={SECRET}; fi",
    f"(TOKEN={SECRET}; cmd)",
    f"env -i TOKEN={SECRET} cmd",
    f"TOKEN+={SECRET}",
    f"TOKEN=$(echo {SECRET} | base64 -d)",
    f"TOKEN=`echo {SECRET}`",
    f"export TOKEN=${{TOKEN:-{SECRET}}}",
    f"cat <<EOF\npassword: {SECRET}\nEOF",
    f"cat <<'EOF' >x\nTOKEN={SECRET}\nEOF",
    f"read -r TOKEN <<< {SECRET}",
    f"set -x TOKEN {SECRET}",
    f"setenv TOKEN {SECRET}",
    f"$env:TOKEN = '{SECRET}'",
    f"curl -H 'Authorization: Bearer {SECRET}' x",
    f"curl -u joe:{SECRET} x",
    f"curl --token {SECRET}",
    f"curl https://joe:{SECRET}@x.example",
    f"sshpass -p {SECRET} ssh x",
    f"mysql -p{SECRET} x",
    f"# TOKEN={SECRET}",
    f"A=b # TOKEN={SECRET}",
]


@pytest.mark.parametrize("form", FORMS)
def test_no_secret_comes_through_a_script(form: str) -> None:
    assert SECRET not in mask_script(f"A=1\n{form}\nB=2\n")


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(FORMS), min_size=1, max_size=5), st.sampled_from(["\n", "; ", " && ", "\n\n"]))
def test_no_secret_comes_through_several(forms: list[str], between: str) -> None:
    # What follows a comment on its line is no script.
    between = "\n" if any("# TOKEN" in form for form in forms) else between
    assert SECRET not in mask_script(between.join(forms) + "\n")


@pytest.mark.parametrize(
    "script",
    [
        "use flake\nPATH_add bin\ndotenv_if_exists\n",
        'export PATH="$PWD/bin:$PATH" EDITOR=vim\nmkdir -p a/b\n',
        "export TOKEN=$OTHER_TOKEN\nexport PASSWORD=${PASSWORD}\n",
        "if [ -f ~/.bash_aliases ]; then\n    . ~/.bash_aliases\nfi\n",
        "# don't worry\necho \"it's\" 'a \"b\"'\ncat <<EOF\nit's\nEOF\n",
        "case x in a) echo;; esac\nf() { echo ${1#x} $((1 + 2)); }\n",
        "source_url https://x.example/ sha256-XQzUAvL6pysIJnRJyR7uVpmUSZfc7LSgWQwq=\n",
    ],
)
def test_script_without_secrets_stays_as_it_is(script: str) -> None:
    assert mask_script(script) == script


def test_quotes_that_do_not_end_leave_nothing() -> None:
    assert mask_script(f"export A='b\nTOKEN={SECRET}\n") == "# masked-by-claudebox\n"


def test_decoy_still_runs() -> None:
    document = f"cat <<EOF\nname: $A\npassword: {SECRET}\nEOF\n"
    script = f"export A=b TOKEN={SECRET}\n{document}[ -n x ] && export C='d e'; echo $A $TOKEN $C\n"
    shell = shutil.which("sh")
    assert shell
    done = subprocess.run([shell, "-euc", mask_script(script)], capture_output=True, text=True, check=True)
    assert done.stdout == "name: b\npassword: masked-by-claudebox\nb masked-by-claudebox d e\n"


# Decoys of source code and XML: what is called a secret is made up, the rest stays.


QUOTED = [
    f"define('DB_PASSWORD', '{SECRET}');",
    f'define( "DB_PASSWORD" , "{SECRET}" );',
    f"$config['password'] = '{SECRET}';",
    f"'password' => '{SECRET}',",
    f"'password' => env('DB_PASSWORD', '{SECRET}'),",
    f'$db_pass = "{SECRET}";',
    f"SECRET_KEY = '{SECRET}'",
    f"SECRET_KEY = b'{SECRET}'",
    f"SECRET_KEY = os.environ.get('X') or '{SECRET}'",
    f"const apiKey: string = process.env['X'] ?? '{SECRET}'",
    f"SECRET_KEY: str = '{SECRET}'",
    f"const apiKey: string = '{SECRET}'",
    f"SECRET_KEY = (\n    '{SECRET}'\n)",
    f"SECRET_KEY = 'a' \\\n    '{SECRET}'",
    f'SECRET_KEY = """\n{SECRET}\n"""',
    f"SECRET_KEY = '{SECRET}' + '{SECRET}'",
    f"DATABASES = {{'default': {{'NAME': 'x', 'PASSWORD': '{SECRET}'}}}}",
    f"c.NotebookApp.token = '{SECRET}'",
    f"url = 'postgres://joe:{SECRET}@db/x'",
    f'password: "{SECRET}",',
    f'storePassword "{SECRET}"',
    f'#define WIFI_PASSWORD "{SECRET}"',
    f'client.setPassword("{SECRET}")',
    f"TOKEN = os.environ.get('TOKEN', '{SECRET}')",
]


@pytest.mark.parametrize("line", QUOTED)
def test_no_secret_comes_through_source_code(line: str) -> None:
    made = mask_quoted(f"name = 'shop'\n{line}\n// don't\nother = \"x\"\n")
    assert SECRET not in made
    assert made.startswith("name = 'shop'\n")
    assert made.endswith('// don\'t\nother = "x"\n')


@pytest.mark.parametrize(
    "text",
    [
        "__all__ = ['token_hex', 'token_urlsafe', 'x']\n",
        "'password' => env('DB_PASSWORD'),\n",
        "x = {'a': 'b'}\n",
        "it's\n",
    ],
)
def test_source_code_without_secrets_stays_as_it_is(text: str) -> None:
    assert mask_quoted(text) == text


ELEMENTS = [
    f"<password>{SECRET}</password>",
    f"<password>\n  {SECRET}\n</password>",
    f"<password><![CDATA[{SECRET}]]></password>",
    f"<password><!-- old -->{SECRET}</password>",
    f"<x:password>{SECRET}</x:password>",
    f'<add key="ClearTextPassword" value="{SECRET}"/>',
    f"<add key='Token' value='{SECRET}'/>",
    f'<user name="x" password="{SECRET}"/>',
    f'<add name="x" connectionString="Server=a;Password={SECRET};"/>',
    f"<dict><key>API_KEY</key><string>{SECRET}</string></dict>",
    f'<add value="{SECRET}" key="ApiKey"/>',
    f'<property name="password"><value>{SECRET}</value></property>',
    f"<!-- <password>{SECRET}</password> -->",
    f"<url>https://joe:{SECRET}@x.example/</url>",
]


@pytest.mark.parametrize("element", ELEMENTS)
def test_no_secret_comes_through_xml(element: str) -> None:
    made = mask_markup(f'<?xml version="1.0"?>\n<r xmlns:x="y"><name>shop</name>{element}<last a="b">c</last></r>')
    assert SECRET not in made
    root = ET.fromstring(made)
    assert (root.findtext("name"), root.findtext("last")) == ("shop", "c")


def test_xml_without_secrets_stays_as_it_is() -> None:
    text = '<?xml version="1.0"?>\n<!DOCTYPE x>\n<a><key>NAME</key><string>x</string><!-- note --><b c="d"/></a>\n'
    assert mask_markup(text) == text
