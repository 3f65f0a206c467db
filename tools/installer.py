"""Runs pip and uv for ``bootstrap.py``: with the person's own pip settings, shown as they work, and
with a cause in words when they fail."""

import ast
import errno
import os
import platform
import re
import ssl
import subprocess
import sys

from translation import gettext as _
from translation import mark as N_

AGAIN = N_("Then run the same command again")
# (pattern in what pip or uv printed, what happened and what to do). The first that fits is told: a
# full disk also breaks connections
CAUSES = (
    (
        "no space left on device|disk quota exceeded",
        N_(
            "the disk is full. Three places need room: this folder, uv's cache and the folder for"
            " temporary files.\n  `df -h . ~/.cache /tmp` shows which one is full; UV_CACHE_DIR and"
            " TMPDIR move the last two. {again}."
        ),
    ),
    (
        "failed to initialize cache",
        N_(
            "uv cannot write its cache, see above. Name another folder: `export"
            " UV_CACHE_DIR=/tmp/uv-cache`. {again}."
        ),
    ),
    (
        "(?m)^(?!.*connect).*(read-only file system|permission denied)",
        N_(
            "a file could not be written, see above. If an earlier run was started with sudo, give"
            ' the folder back to yourself (`sudo chown -R "$USER" .`). {again}.'
        ),
    ),
    (
        (
            "hash mismatch|do not match the hashes|invalid zip file|failed to extract"
            " archive|badzipfile"
        ),
        N_(
            "a package arrived damaged, see above. `.venv/bin/uv cache clean` throws away what was"
            " kept of it; if the file lies in a folder of yours, replace it. {again}."
        ),
    ),
    (
        "could not find a suitable TLS CA certificate bundle",
        N_(
            "the file with certificates that pip is told to use is not there, see above. Correct"
            " PIP_CERT, or `cert` in pip's settings. {again}."
        ),
    ),
    (
        "certificate|CERTIFICATE_VERIFY_FAILED|SSLError",
        N_(
            "the package index showed a certificate that this machine does not trust. Behind a"
            " company's proxy, name its certificate file: `export PIP_CERT=/path/to/ca.pem`."
            " Otherwise check this machine's clock. {again}."
        ),
    ),
    (
        "40[137] (unauthorized|forbidden|proxy|client error)|proxy authorization required",
        N_(
            "the package index or a proxy refused access (401, 403 or 407). Check the name and the"
            " password in it.\n  Set here: {places}."
        ),
    ),
    (
        (
            "dns error|client error|request failed after|failed to fetch|tunnel error|timed"
            " out|NewConnectionError|failed to establish|name resolution|name or service not"
            " known|network is unreachable|connection (refused|reset|broken)|ProxyError|max retries"
        ),
        N_(
            "the package index could not be reached: the network is away, or a proxy or a mirror is"
            " set wrongly.\n  Set here: {places}.\n  Behind a proxy: `export HTTPS_PROXY=...`; with"
            " a mirror: `export PIP_INDEX_URL=...`. {again}: what was fetched is kept."
        ),
    ),
    (
        (
            "not found in the package registry|there is no version of|no matching distribution"
            " found for uv\\b"
        ),
        N_(
            "the package index lacks a package that the course needs, see above, or does not let"
            " you in.\n  Set here: {places}.\n  If a mirror is set, ask who runs it, or name"
            " another one in PIP_INDEX_URL. {again}."
        ),
    ),
    (
        "no wheels with a matching|only found wheels for|no matching distribution found",
        N_(
            "a package has no build for Python {python} on {machine}, see above. Name another"
            " Python (3.11 to 3.14): `make lab PYTHON=python3.12`."
        ),
    ),
    (
        "no solution found|ResolutionImpossible|conflicting dependencies",
        N_(
            "the versions contradict each other, see above. If you changed constraints.txt or"
            " pyproject.toml, take the change back; if not, this is a fault of the course: report"
            " the lines above."
        ),
    ),
    (
        "failed to build|build backend|failed building wheel|subprocess-exited-with-error",
        N_(
            "a package has no ready-made build for Python {python} on {machine} and could not be"
            " built here. Name another Python (3.11 to 3.14): `make lab PYTHON=python3.12`."
        ),
    ),
)


def clean_environment():
    """The environment for pip, for uv and for the check: nothing from outside may shadow what is
    installed."""
    ours = ("PYTHONPATH", "PYTHONHOME", "PIP_USER", "PIP_TARGET", "PIP_PREFIX")
    env = {name: value for name, value in os.environ.items() if name not in ours}
    env["PIP_USER"] = "0"
    if env.get("PIP_RETRIES") == "0":  # pip names a broken connection only when it tries again
        env["PIP_RETRIES"] = "1"
    return env


def read_pip_settings(python):
    """pip's settings, from its files and the environment, by their long option's name:
    {'extra-index-url': '...', 'no-index': '1'}."""
    done = subprocess.run(
        [python, "-m", "pip", "config", "list"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
        env=clean_environment(), timeout=60, check=False,
    )  # fmt: skip
    settings_found = re.findall(
        r"(?m)^(global|install|:env:)\.([a-z-]+)=(.*)$", done.stdout.decode("utf-8", "replace")
    )
    winning_last = sorted(
        settings_found, key=lambda setting: ("global", "install", ":env:").index(setting[0])
    )
    return {name: " ".join(ast.literal_eval(value).split()) for _, name, value in winning_last}


def is_on(settings, name):
    return settings.get(name, "").lower() in ("1", "true", "yes", "on")


def uv_environment(settings):
    """The environment in which uv finds packages where pip would. uv reads no setting of pip's; its
    own variables, where set, win."""
    timeout = settings.get("timeout") or settings.get("default-timeout")
    cache = settings.get("cache-dir")
    cafile = ssl.get_default_verify_paths().cafile
    systems = (
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem",
        cafile,
    )
    translated = {
        "UV_DEFAULT_INDEX": settings.get("index-url"),
        "UV_INDEX": settings.get("extra-index-url"),
        # as pip does: look for a version in all indexes, not in the first that knows the name
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_FIND_LINKS": ",".join(settings.get("find-links", "").split()),
        "UV_INSECURE_HOST": settings.get("trusted-host"),
        "UV_HTTP_TIMEOUT": timeout and str(int(float(timeout))),
        "UV_CACHE_DIR": cache and os.path.join(cache, "uv"),
        "UV_NO_CACHE": "1" if is_on(settings, "no-cache-dir") else None,
        "SSL_CLIENT_CERT": settings.get("client-cert"),
        "HTTPS_PROXY": settings.get("proxy"),
        "HTTP_PROXY": settings.get("proxy"),
        # a bare container has no certificates of its own; uv then takes those that it brings
        "UV_SYSTEM_CERTS": "1" if any(path and os.path.exists(path) for path in systems) else None,
    }
    env = {name: value for name, value in translated.items() if value}
    env.update(clean_environment())
    if settings.get("cert"):  # more deliberate than a variable that every program reads
        env["SSL_CERT_FILE"] = settings["cert"]
    return env


# a colour or a move of the cursor; at the end, half of one
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b(\[[0-9;?]*)?$")


# a line of uv's for a package that it installed, changed or removed
_PACKAGE = re.compile(r" [+~-] \S+==")


class Listener:
    """Takes output in pieces, passes it on at once, keeps the last lines as plain text. Does not
    show the hundred lines of packages."""

    def __init__(self, out):
        self.out = out
        self.lines = []
        self._line = b""  # the line that nothing has ended yet
        self._shown = 0  # bytes of it that were passed on

    def feed(self, data):
        *ended, rest = (self._line + data).split(b"\n")
        lines = []
        for line in ended:
            lines.append(_make_plain(line))
            if self._shown or not _PACKAGE.match(lines[-1]):
                self.out.write(line[self._shown :] + b"\n")
            self._shown = 0
        self.lines = [*self.lines, *lines][-2000:]
        # what may become a line of a package is held back
        if self._shown or not rest.startswith(b" "):
            self.out.write(rest[self._shown :])
            self._shown = len(rest)
        self._line = rest
        # uv compiles now, and shows nothing while it does
        if any(line.startswith("Installed ") for line in lines):
            words = _("compiling them to byte code, so that the first start is quick.")
            self.out.write(("course: %s\n" % words).encode())
        self.out.flush()

    def end(self):
        """Show a last line that was held back because nothing ended it."""
        self.out.write(self._line[self._shown :])
        self.out.flush()

    def text(self):
        return "\n".join([*self.lines, _make_plain(self._line)])


def _make_plain(line):
    """The line without colours. A progress bar draws its line again after each \\r: the last
    drawing counts."""
    return _CONTROL.sub("", line.decode("utf-8", "replace")).rstrip("\r").rsplit("\r", 1)[-1]


def open_channel(env):
    """Where a child writes to: (what we read, what it writes to, its environment). On a terminal it
    gets one of its own, which keeps its progress bar."""
    if not sys.stdout.isatty():
        return (*os.pipe(), env)
    import fcntl
    import pty
    import termios

    reader, writer = pty.openpty()
    try:  # the bar is drawn as wide as the window
        fcntl.ioctl(
            writer,
            termios.TIOCSWINSZ,
            fcntl.ioctl(sys.stdout.fileno(), termios.TIOCGWINSZ, b"\0" * 8),
        )
    except OSError:
        env = dict(env, COLUMNS="80")
    return reader, writer, env


def run_shown(command, cwd, env, lock, out=None):
    """Run ``command`` and show its output as it comes; it inherits ``lock``, an open file. Returns
    (exit code, output)."""
    listener = Listener(out or sys.stdout.buffer)
    reader, writer, env = open_channel(env)
    try:
        child = subprocess.Popen(
            command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=writer, stderr=writer,
            pass_fds=(lock.fileno(),)
        )  # fmt: skip
    finally:
        os.close(writer)
    try:
        while True:
            try:
                data = os.read(reader, 65536)
            except OSError as error:
                # how a pseudo-terminal says that the other side is gone
                if error.errno != errno.EIO:
                    raise
                break
            if not data:
                break
            listener.feed(data)
        listener.end()
        return child.wait(), listener.text()
    except BaseException:
        child.terminate()
        try:
            child.wait(timeout=10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        raise
    finally:
        os.close(reader)


def find_cause(output, code, settings):
    """One paragraph: why pip or uv failed and what to do, from what it printed."""
    if code in (-9, 137):
        return _(
            "the installer was killed, most likely because memory ran out. Close other programs (2"
            " GB of free memory are plenty). {again}."
        ).format(again=_(AGAIN))
    if is_on(settings, "no-index") and re.search(
        "no matching distribution|no solution found", output, re.IGNORECASE
    ):
        return _(
            "pip is told to use no package index (PIP_NO_INDEX, or no-index in its settings), and a"
            " package is missing in the folders that are left (find-links: {folders}).\n  Unset it,"
            " or put the missing package there."
        ).format(folders=settings.get("find-links") or _("none named"))
    places = [
        "%s: %s" % (name, settings[name])
        for name in ("index-url", "extra-index-url", "find-links", "proxy")
        if settings.get(name)
    ]
    places += [
        name + ": " + os.environ[name]
        for name in ("HTTPS_PROXY", "https_proxy", "UV_DEFAULT_INDEX", "UV_INDEX")
        if os.environ.get(name)
    ]
    words = {
        "again": _(AGAIN),
        "places": (
            re.sub(r"//[^/@ ]*@", "//***@", ", ".join(places)) or _("neither a proxy nor a mirror")
        ),
        "python": platform.python_version(),
        "machine": platform.machine(),
    }
    for pattern, cause in CAUSES:
        if re.search(pattern, output, re.IGNORECASE):
            return _(cause).format(**words)
    return _(
        "the installer failed (exit code {code}) for a reason that is not among the known ones; its"
        " own words are above."
    ).format(code=code)
