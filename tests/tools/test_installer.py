"""How pip and uv are run: with the person's settings, few lines, and a cause in words for every way
in which they fail."""

from __future__ import annotations

import importlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def installer(monkeypatch):
    """The module, loaded afresh."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    monkeypatch.delitem(sys.modules, "installer", raising=False)
    for name in ("HTTPS_PROXY", "https_proxy", "UV_DEFAULT_INDEX", "UV_INDEX"):
        monkeypatch.delenv(name, raising=False)
    return importlib.import_module("installer")


# ---- pip's settings ------------------------------------------------------------------------------


def test_pips_settings_are_read_from_file_and_environment(
    installer, monkeypatch, tmp_path: Path
) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    (tmp_path / "pip.conf").write_text(
        "[global]\nindex-url = https://one.example/simple\nextra-index-url =\n   "
        " https://two.example\n    https://three.example\n[install]\nfind-links = /wheels\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.setenv("PIP_INDEX_URL", "https://me:secret@four.example/simple")
    settings = installer.read_pip_settings(sys.executable)
    assert settings["index-url"] == "https://me:secret@four.example/simple", (
        "the environment wins, as it does with pip"
    )
    assert (
        settings["extra-index-url"] == "https://two.example https://three.example"
        and settings["find-links"] == "/wheels"
    )


def test_uv_is_told_what_pip_is_told(installer, monkeypatch) -> None:
    for name in list(os.environ):
        if name.startswith("UV_") or name in ("SSL_CERT_FILE", "HTTP_PROXY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    settings = {
        "index-url": "https://a.example", "extra-index-url": "https://b.example https://c.example",
        "find-links": "/one /two",
        "cert": "/ca.pem", "client-cert": "/me.pem", "proxy": "http://p.example:3128",
        "trusted-host": "a.example", "default-timeout": "180.0",
        "cache-dir": "/large",
    }  # fmt: skip
    env = installer.uv_environment(settings)
    assert (env["UV_DEFAULT_INDEX"], env["UV_INDEX"], env["UV_FIND_LINKS"]) == (
        "https://a.example",
        "https://b.example https://c.example",
        "/one,/two",
    )
    assert (env["SSL_CERT_FILE"], env["SSL_CLIENT_CERT"], env["HTTPS_PROXY"]) == (
        "/ca.pem",
        "/me.pem",
        "http://p.example:3128",
    )
    assert (env["UV_INSECURE_HOST"], env["UV_HTTP_TIMEOUT"], env["UV_CACHE_DIR"]) == (
        "a.example",
        "180",
        "/large/uv",
    )
    assert "PYTHONPATH" not in env
    assert (
        not {"UV_DEFAULT_INDEX", "UV_FIND_LINKS", "UV_CACHE_DIR", "HTTPS_PROXY"}
        & installer.uv_environment({}).keys()
    )
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://uv.example")
    assert installer.uv_environment(settings)["UV_DEFAULT_INDEX"] == "https://uv.example", (
        "who sets uv's own variable means it"
    )


# ---- what is shown -------------------------------------------------------------------------------


def test_all_is_shown_as_it_comes_and_kept_as_plain_text(installer) -> None:
    shown = io.BytesIO()
    listener = installer.Listener(shown)
    pieces = [
        b"Coll",
        b"ecting torch\r\n\x1b[2m\xe2\xa0\x8b 10%",
        b"\r\x1b[2K100%\x1b[0m\nwarn",
        b"ing \x1b[",
    ]
    for number, piece in enumerate(pieces):
        listener.feed(piece)
        assert shown.getvalue() == b"".join(pieces[: number + 1])
    assert listener.text() == "Collecting torch\n100%\nwarning "


def test_while_uv_compiles_and_shows_nothing_that_is_said(installer) -> None:
    shown = io.BytesIO()
    listener = installer.Listener(shown)
    for piece in (b"Inst", b"alled 126 packages in 1s\n + tor", b"ch==2.13.0\n"):
        listener.feed(piece)
    assert shown.getvalue().count(b"course: compiling them to byte code") == 1


def test_the_lines_of_packages_are_kept_and_not_shown(installer) -> None:
    """They are more than a hundred, and the sentences before and after them are lost among them."""
    shown = io.BytesIO()
    listener = installer.Listener(shown)
    text = (
        b"Installed 3 packages in 1s\n + torch==2.13.0\n - \x1b[1msix\x1b[0m==1.17.0\n  x no"
        b" solution\n ~ a==1\n last"
    )
    for at in range(len(text)):
        listener.feed(text[at : at + 1])
    listener.end()
    lines = shown.getvalue().decode().splitlines()
    assert [line for line in lines if not line.startswith("course: ")] == [
        "Installed 3 packages in 1s",
        "  x no solution",
        " last",
    ]
    assert "torch==2.13.0" in listener.text()


@pytest.mark.parametrize("terminal", [True, False])
def test_uv_sees_a_terminal_where_there_is_one(
    installer, monkeypatch, tmp_path: Path, terminal: bool
) -> None:
    class Out(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    monkeypatch.setattr(sys, "stdout", Out())
    with (tmp_path / "lock").open("w") as lock:
        command = [sys.executable, "-c", "import sys; print(sys.stdout.isatty()); sys.exit(4)"]
        code, output = installer.run_shown(command, None, dict(os.environ), lock, out=io.BytesIO())
    assert (code, output.strip()) == (4, str(terminal))


# ---- why it failed: words that pip and uv printed when each of these was tried -------------------

CONFLICT = (
    "error: No solution found when resolving dependencies\n  cause: Because you require six==1.17.0"
    " and six==1.16.0, we can conclude"
)
REFUSED = (
    "error: Request failed after 3 retries in 6.6s\n  cause: Failed to fetch:"
    " http://127.0.0.1:9/simple/six/\n  cause: client error (Connect)\n"
)
PIP_REFUSED = (
    "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(... Failed"
    " to establish a new connection: {}')"
)
NO_MATCH = "\nERROR: No matching distribution found for uv==0.13.9"


@pytest.mark.parametrize(
    ("output", "code", "settings", "says"),
    [
        (REFUSED + "  cause: tcp connect error\n  cause: Connection refused (os error 111)", 2, {},
            "could not be reached"),
        (REFUSED + "  cause: dns error\n  cause: failed to lookup address information: Name or "
                   "service not known", 2, {}, "could not be reached"),
        (REFUSED + "  cause: tunnel error: failed to create underlying connection", 2, {},
            "could not be reached"),
        ("  cause: HTTP status server error (503 Service Unavailable) for url\nerror: Request "
         "failed after 1 retry", 2, {}, "could not be reached"),
        (PIP_REFUSED.format("[Errno 111] Connection refused") + NO_MATCH, 1, {},
            "could not be reached"),
        (PIP_REFUSED.format("[Errno 13] Permission denied") + NO_MATCH, 1, {},
            "could not be reached"),
        ("  cause: invalid peer certificate: UnknownIssuer", 2, {},
            "certificate that this machine does not trust"),
        ("SSLError(SSLCertVerificationError(1, 'CERTIFICATE_VERIFY_FAILED'))" + NO_MATCH, 1, {},
            "certificate that this machine"),
        (CONFLICT + "\nhint: An index URL could not be queried (401 Unauthorized)", 1, {},
            "refused access"),
        (CONFLICT + "\nhint: An index returned a 403 Forbidden error.", 1, {}, "refused access"),
        (REFUSED + "  cause: tunnel error: proxy authorization required", 2, {}, "refused access"),
        (CONFLICT, 1, {"no-index": "1", "find-links": "/wheels"},
            r"no package index.*(?s:.*)/wheels"),
        (NO_MATCH, 1, {"no-index": "true"}, "no package index.*(?s:.*)none named"),
        (CONFLICT, 1, {}, "contradict each other"),
        (CONFLICT + "\nBecause torch==2.13.0 has no wheels with a matching Python implementation "
                    "tag (e.g., `cp39`)", 1, {}, "no build for Python"),
        (NO_MATCH, 1, {}, "lacks a package that the course needs, see above, or does not let you "
                          "in"),
        ("ERROR: No matching distribution found for triton==3.7.1", 1, {}, "no build for Python"),
        ("OSError: Could not find a suitable TLS CA certificate bundle, invalid path: /x.pem", 1,
            {}, "is not there(?s:.*)PIP_CERT"),
        ("  cause: Because six was not found in the package registry", 1,
            {"index-url": "https://m.example"}, r"lacks a package(?s:.*)m\.example"),
        ("  cause: Because there is no version of six==99", 1, {}, "lacks a package"),
        ("  cause: failed to write to file `x`: No space left on device (os error 28)\n" + REFUSED,
            2, {}, "disk is full"),
        ("OSError: [Errno 28] No space left on device", 1, {}, "disk is full"),
        ("error: failed to create directory `small/t`: Read-only file system (os error 30)", 2, {},
            "could not be written"),
        ("error: Failed to initialize cache at `/x`\n  cause: Permission denied (os error 13)", 2,
            {}, "UV_CACHE_DIR"),
        ("  cause: Failed to extract archive: torch.whl\n  cause: Invalid zip file structure", 2,
            {}, "damaged"),
        ("  cause: Hash mismatch for `torch`", 2, {}, "damaged"),
        ("", -9, {}, "memory ran out"),
        ("  cause: The build backend returned an error", 1, {}, "no ready-made build"),
        ("something new", 3, {}, "exit code 3"),
    ],
)  # fmt: skip
def test_every_failure_has_a_cause_in_words(
    installer, output: str, code: int, settings: dict, says: str
) -> None:
    assert re.search(says, installer.find_cause(output, code, settings))


def test_passwords_are_not_shown(installer, monkeypatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://me:secret@p.example:3128")
    told = installer.find_cause(REFUSED, 2, {"index-url": "https://you:hidden@m.example/simple"})
    assert (
        "p.example:3128" in told
        and "m.example" in told
        and "secret" not in told
        and "hidden" not in told
    )


def test_no_network_is_recognised_with_the_real_pip(tmp_path: Path) -> None:
    """The one test with a real environment: pip against a port where nobody listens, and .venv a
    link to another disk."""
    root = tmp_path / "course"
    (root / "tools").mkdir(parents=True)
    (tmp_path / "large").mkdir()
    for name in ("bootstrap.py", "installer.py", "machine.py", "translation.py"):
        (root / "tools" / name).write_text((ROOT / "tools" / name).read_text())
    (root / "constraints.txt").write_text("torch==2.13.0\nuv==0.13.9\n")
    (root / "pyproject.toml").write_text('[project]\nname = "tiny"\n')
    (root / ".venv").symlink_to(tmp_path / "large")
    env = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    env |= {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": "http://me:secret@127.0.0.1:9/simple",
        "PIP_RETRIES": "0",
        "HOME": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, root / "tools" / "bootstrap.py"], capture_output=True, text=True, env=env
    )
    assert done.returncode == 1
    assert "could not be reached" in done.stderr
    assert "127.0.0.1:9" in done.stderr and "secret" not in done.stderr
