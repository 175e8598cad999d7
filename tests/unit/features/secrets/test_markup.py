"""Decoys of source code and XML: what is called a secret is made up, the rest stays."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from claudebox.features.secrets.markup import mask_markup, mask_quoted

pytestmark = pytest.mark.req("SEC-01")

SECRET = "hunter2Zq"
QUOTED = [
    f"define('DB_PASSWORD', '{SECRET}');",
    f'define( "DB_PASSWORD" , "{SECRET}" );',
    f"$config['password'] = '{SECRET}';",
    f"'password' => '{SECRET}',",
    f"'password' => env('DB_PASSWORD', '{SECRET}'),",
    f'$db_pass = "{SECRET}";',
    f"SECRET_KEY = '{SECRET}'",
    f"SECRET_KEY = b'{SECRET}'",
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
