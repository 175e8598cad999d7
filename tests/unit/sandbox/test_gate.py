"""A mask counts only if it lies on the very file that was found, wherever an agent has moved directories meanwhile."""

from pathlib import Path

import pytest

from claudebox.sandbox.gate import Expected, _is_right
from claudebox.sandbox.judge import Judge, Mounts

pytestmark = pytest.mark.req("SEC-01")


def identity(path: Path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_dev, status.st_ino


def box(process: Path, root: Path, options: str) -> Judge:
    """What the judge knows of a box with one mount below its root."""
    process.mkdir(exist_ok=True)
    (process / "root").unlink(missing_ok=True)
    (process / "root").symlink_to(root)
    lines = ["30 1 0:30 / / ro - tmpfs x rw"] + [f"31 30 0:31 / /shop/.env {options} - ext4 x rw"] * bool(options)
    (process / "mountinfo").write_text("".join(f"{line}\n" for line in lines))
    judge = Judge.__new__(Judge)
    judge.process, judge.box, judge.layers = str(process), Mounts(str(process)), {}
    return judge


def test_mask_has_to_lie_on_the_secret(tmp_path: Path) -> None:
    """The root of the box, with the mask in it: at its path is another file than the secret, in the same directory."""
    root, process = tmp_path.resolve() / "box", tmp_path / "process"
    root.mkdir()
    for name in ("shop", "elsewhere"):
        (root / name).mkdir()
        (root / name / ".env").write_text("made up\n")
    (root / "secret").write_text("real\n")
    shop, elsewhere, secret = identity(root / "shop"), identity(root / "elsewhere"), identity(root / "secret")

    def is_right(where: tuple[int, int], secret: tuple[int, int]) -> bool:
        each = Expected("/shop/.env", True, -1, covered=(where, secret))
        return _is_right(each, box(process, root, "ro,nosuid"))

    assert is_right(shop, secret)
    assert not is_right(elsewhere, secret), "the directory is another one"
    assert not is_right(shop, identity(root / "shop/.env")), "the secret itself is in sight"
    (root / "shop/.env").unlink()
    assert not is_right(shop, secret), "nothing is there"
    assert not _is_right(Expected("/shop/.env", True, -1), box(process, root, "rw"))
    assert not _is_right(Expected("/shop/.env", True, -1), box(process, root, ""))
