"""A machine with systemd and JupyterHub, made for a trial and thrown away: see ``__main__``.

Its files are an overlay over those of this machine, in an image of their own: nothing here changes.
It shares the network, the processors and the memory, so that what is measured is this machine.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from helpers.errors import WorkbookError
from helpers.kernels import ROOT
from tools import release

NEEDED = ("systemd-nspawn", "npm", "mkfs.ext4", "make", "useradd", "/usr/bin/python3")
INSTALLATION = Path("opt/relay-workbook")
IMAGE_BYTES = 16 << 30  # of a sparse file
FIRST_UID = 61_000
PASSWORD = "a class of ten"
CONTROLLERS = ("memory", "cpu", "cpuacct", "pids")

# systemd-nspawn mounts the controllers read-only where there are cgroups of version 1.
INIT = f"""#!/bin/sh
for name in {" ".join(CONTROLLERS)}; do
    mount -o remount,bind,rw /sys/fs/cgroup/$name 2>/dev/null
done
exec /lib/systemd/systemd "$@"
"""
TARGET = """[Unit]
Requires=basic.target
Wants=dbus.service systemd-user-sessions.service relay-hub.service
After=basic.target
AllowIsolate=yes
"""
# The last student's server is slow to start: nobody else may wait for it.
SETTINGS = """import asyncio
load_subconfig("/opt/relay-workbook/setup/hub/jupyterhub_config.py")
c.JupyterHub.bind_url = "http://127.0.0.1:{ports[0]}"
c.JupyterHub.hub_port = {ports[1]}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{ports[2]}"
async def slow(spawner):
    if spawner.user.name == {slow!r}:
        await asyncio.sleep(20)
c.Spawner.pre_spawn_hook = slow
"""


class Machine:
    """The files of the machine are kept in ``folder`` from one trial to the next."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "disk" / "root"
        self.process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def mount(self) -> None:
        """Put the machine's files in place."""
        disk, image = self.folder / "disk", self.folder / "image"
        disk.mkdir(parents=True, exist_ok=True)
        if not image.exists():
            with image.open("wb") as file:
                file.truncate(IMAGE_BYTES)
            _run("mkfs.ext4", "-q", "-m", "0", str(image))
        _run("mount", "-o", "loop", str(image), str(disk))
        parts = {name: disk / name for name in ("up", "work", "root")}
        for part in parts.values():
            part.mkdir(exist_ok=True)
        options = f"lowerdir=/,upperdir={parts['up']},workdir={parts['work']}"
        _run("mount", "-t", "overlay", "overlay", "-o", options, str(self.root))

    def install(self) -> float:
        """Install the workbook's last commit as ``docs/hub.md`` says; the seconds it took.

        What is there and has not changed is left as it is.
        """
        began = time.monotonic()
        source, copy = self.folder / "source", self.folder / "class"
        for old in (source, copy, copy.with_suffix(".tar.gz")):
            shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)
        _run("git", "clone", "-q", "--shared", str(ROOT), str(source))
        release.release(copy, source)
        _run("cp", "-a", "--no-preserve=ownership", f"{copy}/.", str(self.root / INSTALLATION))
        self._inside("make", "hub", "PYTHON=/usr/bin/python3")
        return time.monotonic() - began

    def warm(self, *lessons: str) -> float:
        """Compile the models of the lessons for all; the seconds it took."""
        began = time.monotonic()
        self._inside(".venv/bin/python", "setup/hub/warm.py", *lessons)
        return time.monotonic() - began

    def forget_warmth(self) -> None:
        """Take away what :meth:`warm` made."""
        shutil.rmtree(self.root / INSTALLATION / ".state", ignore_errors=True)

    def students(self, count: int) -> list[str]:
        """Users of the system with empty homes, the only ones there."""
        names = [f"student{number:02}" for number in range(1, count + 1)]
        shutil.rmtree(self.root / "home", ignore_errors=True)
        (self.root / "home").mkdir()
        script = "groupadd -f relay-workbook\n"
        for number, name in enumerate(names, 1):
            script += f"""id {name} 2>/dev/null >&2 ||
                useradd -u {FIRST_UID + number} -G relay-workbook -K HOME_MODE=0700 -M {name}
            mkdir -m 700 /home/{name}; chown {name}: /home/{name}
            echo '{name}:{PASSWORD}' | chpasswd
            """
        _run("chroot", str(self.root), "/bin/sh", "-euc", script)
        return names

    def start(self, slow: str) -> None:
        """Boot, and wait for the Hub; the server of the student ``slow`` takes 20 s longer."""
        ports = _free_ports(3)
        self.url = f"http://127.0.0.1:{ports[0]}"
        system = self.root / "etc" / "systemd" / "system"
        settings = self.root / "etc" / "relay-hub" / "jupyterhub_config.py"
        settings.parent.mkdir(exist_ok=True)
        settings.write_text(SETTINGS.format(ports=ports, slow=slow))
        unit = self.root / INSTALLATION / "setup" / "hub" / "relay-hub.service"
        shutil.copy(unit, system / "relay-hub.service")
        shutil.rmtree(self.root / "var" / "lib" / "relay-hub", ignore_errors=True)
        (system / "trial.target").write_text(TARGET)
        init = self.root / "usr" / "local" / "sbin" / "trial-init"
        init.write_text(INIT)
        init.chmod(0o755)
        command = [
            *self._container("--kill-signal=SIGRTMIN+3"),
            "/usr/local/sbin/trial-init",
            "systemd.unit=trial.target",
        ]
        with (self.folder / "console.log").open("wb") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "0"}
                if Path("/sys/fs/cgroup/memory").is_dir()
                else None,
            )
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", ports[0])) == 0 and self._answers():
                    return
            time.sleep(0.2)
        raise WorkbookError(f"The Hub does not start: see {self.folder / 'console.log'}.")

    def _answers(self) -> bool:
        import requests

        try:
            return requests.get(f"{self.url}/hub/api/", timeout=5).ok
        except requests.RequestException:
            return False

    def stop(self) -> None:
        """Shut the machine down."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def unmount(self) -> None:
        """Take the machine's files out of the way; the image stays."""
        for place in (self.root, self.folder / "disk"):
            subprocess.run(["umount", str(place)], check=False, capture_output=True)

    def _container(self, *options: str) -> list[str]:
        return [
            *("systemd-nspawn", "--quiet", "--directory", str(self.root), "--machine=relay-trial"),
            *("--register=no", "--keep-unit", "--resolv-conf=off", "--link-journal=no", *options),
        ]

    def _inside(self, *command: str) -> None:
        """Run a command as root in the installation, with this machine's network settings."""
        prefixes = ("PIP_", "UV_", "SSL_", "REQUESTS_", "NODE_", "npm_", "HTTP", "http")
        known = [f"--setenv={k}={v}" for k, v in os.environ.items() if k.startswith(prefixes)]
        _run(*self._container("--pipe", f"--chdir=/{INSTALLATION}", *known), *command)


def missing() -> str | None:
    """Why no such machine can be made here; ``None`` where it can."""
    if os.geteuid():
        return "making users and a machine of its own needs root"
    lacking = [name for name in NEEDED if not shutil.which(name)]
    return f"{', '.join(lacking)} is not installed" if lacking else None


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip())[-400:]
        raise WorkbookError(f"{' '.join(command)[-200:]} failed: {said}")
