"""Decoys of shell scripts: no secret comes through, in whichever way it is assigned, and the rest still runs."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claudebox.features.secrets.scripts import mask_script

pytestmark = pytest.mark.req("SEC-01")

SECRET = "hunter2Zq"
FORMS = [
    f"TOKEN={SECRET}",
    f"export A=b TOKEN={SECRET} C=d",
    f"export TOKEN='{SECRET}'",
    f'export TOKEN="a {SECRET}"',
    f"export TOKEN=$'a\\'{SECRET}'",
    f"export TOKEN=\"{SECRET}\"'{SECRET}'",
    f'export "TOKEN={SECRET}"',
    f"[ -f x ] && export TOKEN={SECRET}",
    f"if true; then TOKEN={SECRET}; fi",
    f"(TOKEN={SECRET}; cmd)",
    f"declare -x TOKEN={SECRET}",
    f"typeset -x TOKEN={SECRET}",
    f"local TOKEN={SECRET}",
    f"readonly TOKEN={SECRET}",
    f"TOKEN={SECRET} cmd --flag",
    f"env -i TOKEN={SECRET} cmd",
    f"TOKEN+={SECRET}",
    f"TOKEN='first\n{SECRET}\nlast'",
    f"TOKENS=(a {SECRET})",
    f"TOKEN=$(echo {SECRET} | base64 -d)",
    f"TOKEN=`echo {SECRET}`",
    f"export TOKEN=${{TOKEN:-{SECRET}}}",
    f": ${{TOKEN:={SECRET}}}",
    f"cat <<EOF\npassword: {SECRET}\nEOF",
    f"cat <<'EOF' >x\nTOKEN={SECRET}\nEOF",
    f"cat <<-EOF\n\texport TOKEN={SECRET}\n\tEOF",
    f"read -r TOKEN <<< {SECRET}",
    f"set -x TOKEN {SECRET}",
    f"set -gx GITHUB_TOKEN '{SECRET}'",
    f"setenv TOKEN {SECRET}",
    f"$env:TOKEN = '{SECRET}'",
    f"curl -H 'Authorization: Bearer {SECRET}' x",
    f"curl -u joe:{SECRET} x",
    f"curl --token {SECRET}",
    f"curl https://joe:{SECRET}@x.example",
    f"sshpass -p {SECRET} ssh x",
    f"mysql -p{SECRET} x",
    f"eval 'export TOKEN={SECRET}'",
    f"alias x='TOKEN={SECRET} cmd'",
    f"# TOKEN={SECRET}",
    f"A=b # TOKEN={SECRET}",
]


@pytest.mark.parametrize("form", FORMS)
def test_no_secret_comes_through(form: str) -> None:
    assert SECRET not in mask_script(f"A=1\n{form}\nB=2\n")


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(FORMS), min_size=1, max_size=5), st.sampled_from(["\n", "; ", " && ", "\n\n"]))
def test_no_secret_comes_through_several(forms: list[str], between: str) -> None:
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
