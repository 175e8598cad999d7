"""A mask counts only if it lies on the very file that was found, wherever an agent has moved directories meanwhile."""

from pathlib import Path

import pytest

from claudebox.sandbox.gate import Expected, _is_right

pytestmark = pytest.mark.req("SEC-01")


def identity(path: Path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_dev, status.st_ino


def row(options: bytes) -> list[bytes]:
    return [b"30", b"1", b"0:30", b"/", b"/shop/.env", options, b"- ext4 x rw"]


def test_mask_has_to_lie_on_the_secret(tmp_path: Path) -> None:
    """The root of the box, with the mask in it: at its path is another file than the secret, in the same directory."""
    root = tmp_path.resolve()
    for name in ("shop", "elsewhere"):
        (root / name).mkdir()
        (root / name / ".env").write_text("made up\n")
    (root / "secret").write_text("real\n")
    shop, elsewhere, secret = identity(root / "shop"), identity(root / "elsewhere"), identity(root / "secret")
    rows = {b"/shop/.env": row(b"ro,nosuid")}

    def is_right(where: tuple[int, int], secret: tuple[int, int]) -> bool:
        each = Expected("/shop/.env", True, -1, covered=(where, secret))
        return _is_right(each, rows, str(root), {})

    assert is_right(shop, secret)
    assert not is_right(elsewhere, secret), "the directory is another one"
    assert not is_right(shop, identity(root / "shop/.env")), "the secret itself is in sight"
    (root / "shop/.env").unlink()
    assert not is_right(shop, secret), "nothing is there"
    assert not _is_right(Expected("/shop/.env", True, -1), {b"/shop/.env": row(b"rw")}, str(root), {})
    assert not _is_right(Expected("/shop/.env", True, -1), {}, str(root), {})
