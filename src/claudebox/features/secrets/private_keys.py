"""Finds private keys in a text, and worthless ones that stand for them. Everybody has those: nothing may trust them.

The blocks are made by tools/throw-away-keys.
"""

from __future__ import annotations

from binascii import Error, a2b_base64, b2a_base64

FIRST = " \t\r\n\\"  # what a key begins with; a quote ends the mention of one
FEWEST = 12  # different characters
WIDTH = 64  # characters of a line
LONGEST_LABEL = 60
RSA_HEAD = 26  # bytes in PKCS #8 before a key of RSA as others write it
HEAD = 60  # bytes at the beginning, among which the kind of key is named
PKCS8_MARKS = ((bytes.fromhex("2a8648ce3d0201"), "p256"), (bytes.fromhex("06032b6570"), "ed25519"))
# By label, what stands for all other kinds.
USUAL = {"PRIVATE KEY": "rsa", "RSA PRIVATE KEY": "rsa", "EC PRIVATE KEY": "p256", "OPENSSH PRIVATE KEY": "ed25519"}


def find_blocks(text: str) -> tuple[list[tuple[int, int]], list[tuple[int, int, str]]]:
    """Where blocks of keys and certificates are; and of the secret ones what to replace, by what if it is not drawn.

    A certificate is replaced only with its key: no server starts with one that is not of its key.
    """
    blocks, secret, certificates, kind = [], [], [], ""
    place = text.find("BEGIN ")
    while place >= 0:
        label, dashes, _ = text[place + 6 : place + LONGEST_LABEL].partition("--")
        body, label = place + 6 + len(label), label.strip()
        end = text.find(f"END {label}", body) if dashes else -1
        last = end if end >= 0 else len(text)
        end = min(last + len(label) + 9, len(text))
        if dashes and text[max(place - 3, 0) : place].strip(" ") in ("---", "--"):
            start = max(place - 5, 0)
            blocks.append((start, end))
            is_body = (
                text[body:last].strip("-")[:1] in FIRST
                and len(set(text[body : min(last, body + LONGEST_LABEL)])) > FEWEST
            )
            if is_body and ("PRIVATE KEY" in label or "Static key" in label):
                found = _kind_of(label, text[body:last])
                made = _block(text, body + 5, label, found)
                kind = found if made else kind
                secret.append((start, end, made) if made else (body, last, ""))
            elif label == "CERTIFICATE":
                certificates.append((start, end, body))
        place = text.find("BEGIN ", end if dashes else body)
    if kind and certificates:  # the others are of those who signed it
        start, end, body = certificates[0]
        made = _block(text, body + 5, "CERTIFICATE", kind)
        if made:
            secret.append((start, end, made))
    if text.startswith("PuTTY-User-Key-File") and (place := text.find("Private-Lines:")) >= 0:
        blocks.append((0, len(text)))
        secret.append((text.find("\n", place), len(text), ""))
    return blocks, secret


def _kind_of(label: str, body: str) -> str:
    """Which worthless key stands for this block; "" if there is none, as for one with a password."""
    lines = body.strip("-").replace("\\r", "").replace("\\n", "\n").split("\n")
    try:
        content = a2b_base64("".join(lines))
    except (Error, ValueError):
        content = b""
    if label not in USUAL or any(":" in line for line in lines) or b"bcrypt" in content[:HEAD]:
        return ""
    marks = PKCS8_MARKS if label == "PRIVATE KEY" else ()
    return next((kind for mark, kind in marks if mark in content[:HEAD]), USUAL[label])


def _block(text: str, place: int, label: str, kind: str) -> str:
    """A worthless block with the ends of lines and the indentation that the real one has; "" if there is none."""
    body = BLOCKS.get(f"{kind} {'PRIVATE KEY' if label == 'RSA PRIVATE KEY' else label}", "")
    after = text[place : place + LONGEST_LABEL]
    feed = next((one for one in ("\\r\\n", "\\n", "\r\n", "\n") if after.startswith(one)), "")
    if not body or not feed:
        return ""
    if label == "RSA PRIVATE KEY":
        body = b2a_base64(a2b_base64(body)[RSA_HEAD:], newline=False).decode()
    after = after[len(feed) :]
    feed += after[: len(after) - len(after.lstrip(" \t"))]
    lines = [body[start : start + WIDTH] for start in range(0, len(body), WIDTH)]
    return feed.join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----"))


# ruff: noqa: E501
# The content of a PEM block, by the kind of key and the label.
BLOCKS = {
    "rsa PRIVATE KEY": "MIIEvAIBADANBgkqhkiG9w0BAQEFAASCBKYwggSiAgEAAoIBAQC2TZyd+FBl802dTbWJx0Tryg8HwQNdDVzw7sJs49QIjIZa+RPLjr/hwRhr1aWHh/ZYPuMpJ6vHxFU/hLMDQ5VF3gK7uVy4Lj8EOgKii7zK0jukitbxWMXybYJNIl1VClkiP60XJ16Dv+nFQRQDckMd7shldXBMUXZiQqBAAk6alLzDHvzNgtkoX9BsuUZQHsbBKBcRSdWVpWhArUK8x92YRBBHChrb3GP7+zrhsRky7sy3bHB4GSG99rUYY1Ohrh5jQertPeQLsxeePF6TWCwy6/FQTDAulERoUa8YoOnYyxqaERagJqDf1P011nHU2K37Q61iTHhXTvOofo6cTS8dAgMBAAECggEAC993owksUUt8g1FvkJLYEAQ3oOFm8u0/H5jpNDbNVSYzzOJ6cdAw+oa9LK68KlzGRD6KRGCnTSoiBDJEB2MkKmn4YxoCKiOm6oNNryDrMYlqJX/+WjcWI0ETEqt5iSOUpQihIQgpHWsHElf38faD3QPzbLouj2Xh0Cn3LlwIGwSXDfjMsdeChUEU5eJ/ygMHgY25ARbxZinJFnDXAGVkc5hJiqnjpy571J9UyVkx4QeXeC3fVhbsgk6wNxpQfo5jjdeRD1hMsz3DSIy/+FrEmSgaIXmIwD33PX/HmQQeOkk+dyjTR26kf6RZlj+yXpM7pXQZMlpUNqZD1J0bjArPoQKBgQDwoNIfQRUmv1bJT1sSt/w2lq3zriMdnq63L1yhznqjZZt/uZXXzI9+HaBk3k2EyqWnqsgFeONvCBt3IKAoFOTgr4ZHqQjQfg+yW+P8Y5e6GYSl+P2Kt295Aq8A8rBFRhcTSaYyfY7dw6P0wDIbjcs+JfuO2FnJWfzvOX26YZW0YQKBgQDB8vTiEYHAsvtQUc9HdhQbgRYTrzTIuNxQ/+z+e2QDVYGV/5xl5w/mW2YSgUiLzVXBTh4RH19JZ9QadWJM3D+lPWO/Cpts+kZxjQP6ien7rX3UJUp24EllocMP+/FRZ5iPBQIRmQnfu4BihnLdAFFNqiSeUwltFxyyxCU1++20PQKBgBn789TGLWeKv+9rL1V9IrIuYUhwJICdUxaa+bDLYDjmzvzi6IhuIYyn3FsoGkzdqTfK3GCi5kRmJrkdf830O6b7rU9ttHL3OfCztZHam1bQTJ+znIVvO41guc8rZdeFMxa1HEpVfqj56GmUm5SYIjtq1JhfSorQudyHY8lNomHhAoGAFNxV/I7XfuuBXnU+LziDFyY+QqXArqo7gDbWvdR1wGoNAx44Kzm8GxHPm8PuEqNmSuFlGIBgVlvlk2b2yL+T1OkSdnTknMcalpINUIBO+3QAqbXNGZYsLtNEUM7PeOsEnLV0MIJeboMTXwWJCz5CgHEBeUoDJIms24l/WxwayB0CgYBg6q2npO06/Z30qti0SM7PhAHeKZdk4pLjac9G9Mi154UCk8DF7250E4ljjdDh9QtxZz/aU48artFtKBckhvpDB4e92j2irhyItykAfAubNPvoLjYM+bfLttNwzraDmc69gAM63PngVLnKxyTcree3CvHRl/XkMkKXc7sYZbeGmA==",
    "rsa CERTIFICATE": "MIIDOzCCAiOgAwIBAgIUARmFy8rd/FANVQedNO/+f0Siq/IwDQYJKoZIhvcNAQELBQAwHjEcMBoGA1UEAwwTbWFza2VkLWJ5LWNsYXVkZWJveDAgFw0yNjExMTgxNDMzNTVaGA8yMTI2MTAyNTE0MzM1NVowHjEcMBoGA1UEAwwTbWFza2VkLWJ5LWNsYXVkZWJveDCCASIwDQYJKoZIhvcNAQEBBQADggEPADCCAQoCggEBALZNnJ34UGXzTZ1NtYnHROvKDwfBA10NXPDuwmzj1AiMhlr5E8uOv+HBGGvVpYeH9lg+4yknq8fEVT+EswNDlUXeAru5XLguPwQ6AqKLvMrSO6SK1vFYxfJtgk0iXVUKWSI/rRcnXoO/6cVBFANyQx3uyGV1cExRdmJCoEACTpqUvMMe/M2C2Shf0Gy5RlAexsEoFxFJ1ZWlaECtQrzH3ZhEEEcKGtvcY/v7OuGxGTLuzLdscHgZIb32tRhjU6GuHmNB6u095AuzF548XpNYLDLr8VBMMC6URGhRrxig6djLGpoRFqAmoN/U/TXWcdTYrftDrWJMeFdO86h+jpxNLx0CAwEAAaNvMG0wHQYDVR0OBBYEFOKGeqzL3wOM5HEy6HftSqUCXtV3MB8GA1UdIwQYMBaAFOKGeqzL3wOM5HEy6HftSqUCXtV3MA8GA1UdEwEB/wQFMAMBAf8wGgYDVR0RBBMwEYIJbG9jYWxob3N0hwR/AAABMA0GCSqGSIb3DQEBCwUAA4IBAQBKsAELPIb3hdIhgaZohj9oHPpgmb0V8htRfoeEBNEiFkVo1EgwlJtML1ZP7cBM80Ic6WveeJzCPqe3z+1pSWAxO1AfBnZW/D6erR8+Q10+f1f2HFnFd03yQLjWqatcZu3ehOGAJVqgSIx9Rq40y9QOKbJYHJ413LNiGDT+Q5cukHGXTB57V6JPUKx6FgnsMgpl0A99sQiqVgF4hzUR9DHzT2vf1yp00Uj/UEjyqKoRwSYO1jF+4zUiLKPniqUiZiLPGYpuwiZCYHcx8pQi4XpSCRwTX9g76oOLdDRiwRkkqlEQBI5drqXf9MnKsnDRmObPpKTdeQ3OSjh6VJjX9H+M",
    "p256 PRIVATE KEY": "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg10v9P2SraAzM06gNJo5lxlqzpW9ZmZPIOVd8/Mww1tGhRANCAASXx1ysywh1atjQI3q284Xhq+laiT0ZOn5q1IY/fCTsnkXEu9r8UgVDuhpg6xtULDlMWyHh6c6vjzvPaxEcxbNl",
    "p256 CERTIFICATE": "MIIBrjCCAVWgAwIBAgIUHrCP4cHwwD7s0vAkw+3exuZ4byEwCgYIKoZIzj0EAwIwHjEcMBoGA1UEAwwTbWFza2VkLWJ5LWNsYXVkZWJveDAgFw0yNjExMTgxNDMzNTVaGA8yMTI2MTAyNTE0MzM1NVowHjEcMBoGA1UEAwwTbWFza2VkLWJ5LWNsYXVkZWJveDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABJfHXKzLCHVq2NAjerbzheGr6VqJPRk6fmrUhj98JOyeRcS72vxSBUO6GmDrG1QsOUxbIeHpzq+PO89rERzFs2WjbzBtMB0GA1UdDgQWBBTcg5AODMNLstYqTDo+ur5xP7l02DAfBgNVHSMEGDAWgBTcg5AODMNLstYqTDo+ur5xP7l02DAPBgNVHRMBAf8EBTADAQH/MBoGA1UdEQQTMBGCCWxvY2FsaG9zdIcEfwAAATAKBggqhkjOPQQDAgNHADBEAiBNoTPlLxuaHP4FYiMGfghhaZGBdCSwFpGTFtP84PCKHQIgeEAqskijYMCksmWdGad4LsH329iVudOVNQxOrfLCO0o=",
    "p256 EC PRIVATE KEY": "MHcCAQEEINdL/T9kq2gMzNOoDSaOZcZas6VvWZmTyDlXfPzMMNbRoAoGCCqGSM49AwEHoUQDQgAEl8dcrMsIdWrY0CN6tvOF4avpWok9GTp+atSGP3wk7J5FxLva/FIFQ7oaYOsbVCw5TFsh4enOr487z2sRHMWzZQ==",
    "ed25519 PRIVATE KEY": "MC4CAQAwBQYDK2VwBCIEIEAgAjp4um70vy9ZBkeFbeSx5h5McXsRflWnKTZP7yz7",
    "ed25519 OPENSSH PRIVATE KEY": "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZWQyNTUxOQAAACDpiPysP1u/GZKlFulRsKfMmnTmOpWVdzB7SBMizIo35QAAAJjZiA8z2YgPMwAAAAtzc2gtZWQyNTUxOQAAACDpiPysP1u/GZKlFulRsKfMmnTmOpWVdzB7SBMizIo35QAAAEBoZOeBi3FRzigS7esQTbo+iC3fgFsL38FYAmOBl0Z8n+mI/Kw/W78ZkqUW6VGwp8yadOY6lZV3MHtIEyLMijflAAAAE21hc2tlZC1ieS1jbGF1ZGVib3gBAg==",
}
