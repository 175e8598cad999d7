"""`--setup` tries the strict box on this machine, and writes down what the user chose."""

import pytest

from conftest import Box

pytestmark = [pytest.mark.box, pytest.mark.network]
STRICT = 'profiles = ["strict"]'
KEY = {"ANTHROPIC_API_KEY": "sk-ant-made-up-for-this-test-0123456789"}


@pytest.fixture
def with_claude(shop: Box) -> Box:
    fake = shop.account.write(shop.account.home / "opt" / "claude", "#!/bin/sh\nenv\n", mode=0o755)
    shop.account.environ["PATH"] = f"{fake.parent}:{shop.account.environ['PATH']}"
    return shop


def config(box: Box) -> list[str]:
    lines = (box.account.home / ".claudebox/config.toml").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


def test_machine_that_can_do_all_of_it_gets_the_profile(with_claude: Box) -> None:
    done = with_claude.claudebox("--setup", "--yes", env=KEY)
    assert done.returncode == 0, done.stderr
    assert config(with_claude) == [STRICT]
    assert list((with_claude.account.home / ".claudebox/instances").iterdir()) == []


def test_strict_box_has_no_key_and_changes_nothing_by_itself(with_claude: Box) -> None:
    fake = with_claude.account.home / "opt" / "claude"
    with_claude.account.write(fake, "#!/bin/sh\necho changed > file\nenv\n", mode=0o755)
    done = with_claude.claudebox("--yes", "--profile", "strict", env=KEY)
    assert done.returncode == 0, done.stderr
    assert KEY["ANTHROPIC_API_KEY"] not in done.stdout
    assert "ANTHROPIC_BASE_URL=http://" in done.stdout
    assert not (with_claude.project / "file").exists()


def test_without_a_credential_the_rest_is_written(with_claude: Box) -> None:
    done = with_claude.claudebox("--setup", "--yes")
    assert done.returncode == 0, done.stderr
    assert "no auth broker" in done.stderr
    assert config(with_claude) == ['network = "allowlist"', 'review = "on"', 'allow = ["@claude"]']


def test_without_nft_the_broker_is_the_only_way_out(with_claude: Box) -> None:
    done = with_claude.claudebox("--setup", "--yes", env={**KEY, "CLAUDEBOX_NFT": "/bin/false"})
    assert done.returncode == 0, done.stderr
    assert config(with_claude) == ['auth = "broker"', 'network = "none"', 'review = "on"']


def test_broker_is_judged_with_the_network_that_is_proposed(with_claude: Box) -> None:
    """A gateway on localhost has no TLS: on this host's own network, a box could take its place."""
    gateway = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "CLAUDEBOX_NFT": "/bin/false"}
    done = with_claude.claudebox("--setup", "--yes", env=KEY | gateway)
    assert done.returncode == 0, done.stderr
    assert config(with_claude) == ['auth = "broker"', 'network = "none"', 'review = "on"']


def test_own_configuration_is_never_edited(with_claude: Box) -> None:
    file = with_claude.account.write(with_claude.account.home / ".claudebox/config.toml", 'hide = ["x"]\n')
    file.parent.chmod(0o700)
    done = with_claude.claudebox("--setup", "--yes", env=KEY)
    assert done.returncode == 125
    assert STRICT in done.stderr
    assert file.read_text() == 'hide = ["x"]\n'


def test_nothing_is_written_without_an_answer(with_claude: Box) -> None:
    done = with_claude.claudebox("--setup", env=KEY)
    assert done.returncode == 125
    assert not (with_claude.account.home / ".claudebox/config.toml").exists()
