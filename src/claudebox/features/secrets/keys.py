"""Chooses the worthless key that stands for a private key: of the same kind and size, so that programs can read it."""

from __future__ import annotations

from binascii import Error, a2b_base64, b2a_base64

PKCS8, RSA = "PRIVATE KEY", "RSA PRIVATE KEY"
LABELS = (PKCS8, RSA, "EC PRIVATE KEY", "OPENSSH PRIVATE KEY")
WIDTH = 64  # characters of a line
RSA_HEAD = 26  # bytes in PKCS #8 before a key of RSA as others write it
# How the names of kinds of keys are written in a key, in PKCS #8, in others, and by OpenSSH.
MARKS = (
    (bytes.fromhex("2a8648ce3d030107"), "p256"),
    (bytes.fromhex("2b81040022"), "p384"),
    (bytes.fromhex("2b81040023"), "p521"),
    (bytes.fromhex("2b8104000a"), "k256"),
    (bytes.fromhex("06032b6570"), "ed25519"),
    (b"ssh-ed25519", "ed25519"),
    (b"ecdsa-sha2-nistp256", "p256"),
    (b"ecdsa-sha2-nistp384", "p384"),
    (b"ecdsa-sha2-nistp521", "p521"),
)
BEGIN = "-----BEGIN "
RSA_NUMBER = 20  # bytes before the number that key and certificate have in common, or some after its beginning
PUBLIC_BYTES = 32  # of what they have in common, enough to tell
HEAD = 400  # bytes at the beginning of a key, among which its kind is named
# Bytes up to which a key of RSA has that many bits. OpenSSH writes more than others.
SIZES = ((1500, "rsa2048"), (2150, "rsa3072"), (1 << 20, "rsa4096"))
USUAL = {"EC PRIVATE KEY": "p256", "OPENSSH PRIVATE KEY": "ed25519"}


def throw_away_key(label: str, body: str) -> str:
    """A key for this label of a PEM block; "" if there is none of that kind."""
    shown = label if label in LABELS else PKCS8 if label == f"ENCRYPTED {PKCS8}" else ""
    return _block(shown, kind_of_key(label, body)) or _block(shown, USUAL.get(shown, "rsa2048"))


def throw_away_certificate(kind: str) -> str:
    """The certificate of the key of this kind."""
    return _block("CERTIFICATE", kind)


def _block(label: str, kind: str) -> str:
    from claudebox.features.secrets.throwaway import BLOCKS

    body = BLOCKS.get((PKCS8 if label == RSA else label, kind), "")
    if label == RSA and kind.startswith("rsa"):
        body = b2a_base64(a2b_base64(body)[RSA_HEAD:], newline=False).decode()
    lines = "".join(f"{body[start : start + WIDTH]}\n" for start in range(0, len(body), WIDTH))
    return f"-----BEGIN {label}-----\n{lines}-----END {label}-----\n" if body else ""


def throw_away_pair(key: bytes, certificate: bytes) -> bytes | None:
    """What stands for a certificate, in a file of its own, beside the worthless key; None if it is not of this key.

    A server does not start with a certificate that is not of its key.
    """
    kind, public = _public_part(key.decode(errors="replace"))
    first, *others = certificate.decode(errors="replace").split(BEGIN)[1:] or [""]
    label, _, rest = first.partition("-----")
    shown = throw_away_certificate(kind)
    if not public or not shown or label != "CERTIFICATE" or public not in _decoded(rest.partition("-----END")[0]):
        return None
    return (shown + "".join(f"{BEGIN}{other}" for other in others)).encode()


def _public_part(pem: str) -> tuple[str, bytes]:
    """The kind of the first private key, and some bytes of it that are in its certificate, too; none of Ed25519."""
    for piece in pem.split(BEGIN)[1:]:
        label, _, rest = piece.partition("-----")
        body = rest.partition("-----END")[0]
        kind, content = kind_of_key(label, body), _decoded(body)
        if label in (PKCS8, RSA) and kind.startswith("rsa"):
            start = RSA_NUMBER + (RSA_HEAD if label == PKCS8 else 0)
            return kind, content[start : start + PUBLIC_BYTES]
        if label in (PKCS8, "EC PRIVATE KEY") and kind in ("p256", "p384", "p521", "k256"):
            return kind, content[-PUBLIC_BYTES:]
    return "", b""


def _decoded(body: str) -> bytes:
    try:
        return a2b_base64("".join(line for line in body.replace("\\n", "\n").splitlines() if ":" not in line))
    except (Error, ValueError):
        return b""


def kind_of_key(label: str, body: str) -> str:
    content = _decoded(body)
    named = next((kind for mark, kind in MARKS if mark in content[:HEAD]), "")
    if named or not content or (label in USUAL and b"ssh-rsa" not in content[:HEAD]):
        return named or USUAL.get(label, "rsa2048")
    return next((kind for size, kind in SIZES if len(content) <= size), SIZES[-1][1])
