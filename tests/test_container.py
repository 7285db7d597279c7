"""The Dockerfile, the devcontainer and what Binder asks of them.

No container engine is needed. WORKBOOK_TEST_CONTAINER names a folder that a clean Debian is to be
made in (as root, by debootstrap, from the mirror that apt uses): there the Dockerfile's very steps
are executed, a lesson is run by the user they end with, and the server answers. It takes minutes.
"""

import fnmatch
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Image:
    """What the instructions of a Dockerfile make of a root file system at ``root``."""

    context: Path
    root: Path
    arguments: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(
        default_factory=lambda: {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/bin"}
    )
    user: str = "0"
    folder: str = "/"
    ports: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)

    def expand(self, text: str) -> str:
        known = {**self.arguments, **self.environment}
        return re.sub(r"\$\{(\w+)\}", lambda found: known[found.group(1)], text)

    def apply(self, instruction: str, rest: str) -> None:
        """Do what one instruction says; fails on one that the Dockerfile is not known to use."""
        getattr(self, f"do_{instruction.lower()}")(rest)

    def do_from(self, rest: str) -> None:
        self.arguments = {}  # a stage does not see the arguments of the one before

    def do_arg(self, rest: str) -> None:
        name, _, default = rest.partition("=")
        self.arguments[name] = self.expand(default)

    def do_env(self, rest: str) -> None:
        words = [self.expand(word).partition("=") for word in shlex.split(rest)]
        self.environment.update({name: value for name, _, value in words})

    def do_user(self, rest: str) -> None:
        self.user = self.expand(rest)

    def do_expose(self, rest: str) -> None:
        self.ports.append(rest)

    def do_cmd(self, rest: str) -> None:
        self.command = json.loads(rest)

    def do_workdir(self, rest: str) -> None:
        self.folder = self.expand(rest)
        self.inside(self.folder).mkdir(parents=True, exist_ok=True)

    def do_copy(self, rest: str) -> None:
        words = shlex.split(self.expand(rest))
        owner = next(int(w.partition("=")[2]) for w in words if w.startswith("--chown="))
        *sources, target = [word for word in words if not word.startswith("--")]
        into = self.inside(target)
        for name in given(self.context):
            for source in map(PurePosixPath, sources):
                tail = name.relative_to(source) if name.is_relative_to(source) else None
                if tail is None and len(name.parts) == 1 and name.match(str(source)):
                    tail = name
                if tail is None:
                    continue
                new = into / tail
                missing = [p for p in (new, *new.parents) if not p.exists()]
                new.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self.context / name, new)
                for path in {new, *missing}:
                    os.chown(path, owner, owner)

    def do_run(self, rest: str) -> None:
        self.run(rest, check=True)

    def inside(self, path: str) -> Path:
        return self.root / str(PurePosixPath(self.folder) / path).lstrip("/")

    def run(self, command: str, **options):
        """``sh -c command`` as the image's user, in its folder, with its environment alone."""
        environment = {**self.arguments, **self.environment}
        return subprocess.run(self.words(command), env=environment, text=True, **options)

    def words(self, command: str) -> list[str]:
        script = """
            mount -t proc proc "$1/proc"
            mount --rbind /dev "$1/dev"
            [ "$2" = 0 ] || mount --bind /etc/ssl/certs "$1/etc/ssl/certs"
            exec chroot --userspec="$2:$2" "$1" /bin/sh -c "$3"
        """
        alone = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "/bin/sh", "-ec", script]
        inner = f"cd {shlex.quote(self.folder)} && {command}"
        return [*alone, "sh", str(self.root), self.user, inner]


def instructions(text: str) -> list[tuple[str, str]]:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in joined.splitlines()]


def given(context: Path) -> list[PurePosixPath]:
    """The files that a build may see: all but what .dockerignore names."""
    patterns = [
        line
        for line in (context / ".dockerignore").read_text().splitlines()
        if line and not line.startswith("#")
    ]

    def ignored(name: PurePosixPath) -> bool:
        for path in (name, *name.parents):
            for pattern in patterns:
                if pattern.startswith("**/"):
                    if fnmatch.fnmatch(path.name, pattern[3:]):
                        return True
                elif path.parent == PurePosixPath(".") and fnmatch.fnmatch(path.name, pattern):
                    return True
        return False

    found = []
    for folder, folders, files in os.walk(context):
        here = PurePosixPath(Path(folder).relative_to(context).as_posix())
        folders[:] = sorted(name for name in folders if not ignored(here / name))
        found += [here / name for name in sorted(files) if not ignored(here / name)]
    return found


@pytest.fixture(scope="module")
def steps():
    return instructions((ROOT / "Dockerfile").read_text())


def ended(steps, **arguments):
    """The image as the instructions leave it that only set something."""
    image = Image(ROOT, ROOT)
    for instruction, rest in steps:
        if instruction == "ARG" and rest.partition("=")[0] in arguments:
            name = rest.partition("=")[0]
            image.arguments[name] = arguments[name]
        elif instruction == "WORKDIR":
            image.folder = image.expand(rest)
        elif instruction not in ("RUN", "COPY"):
            image.apply(instruction, rest)
    return image


def test_it_does_what_the_readme_does(steps):
    runs = [rest for instruction, rest in steps if instruction == "RUN"]
    assert "make check-env" in runs
    image = ended(steps)
    assert image.command == ["make", "lab"]
    assert "--no-browser" in image.environment["LABFLAGS"]
    assert image.ports == ["8888"]
    assert {name for name, _ in steps} <= {n[3:].upper() for n in dir(Image) if n.startswith("do_")}


def test_binder_can_use_it(steps):
    """A user of its choice by number, everything in that user's home, Jupyter on PATH."""
    image = ended(steps, NB_USER="jovyan", NB_UID="1234")
    assert image.user == "1234"
    assert image.environment["HOME"] == "/home/jovyan"
    assert image.folder.startswith("/home/jovyan/")
    assert image.environment["PATH"].startswith(f"{image.folder}/.venv/bin:")
    assert all(":latest" not in rest for name, rest in steps if name == "FROM")
    assert not [name for name, _ in steps if name == "ENTRYPOINT"]
    # Where one of these is, Binder looks for nothing at the top.
    assert not (ROOT / "binder").exists()
    assert not (ROOT / ".binder").exists()


def test_nothing_that_was_made_here_gets_into_an_image(tmp_path):
    shutil.copy(ROOT / ".dockerignore", tmp_path)
    kept = ["Makefile", "setup/setup.sh", "labs/01/01.ipynb", "helpers/grading/a.py", "x/.git"]
    lost = [".git/HEAD", ".venv/bin/python", ".deps/relay/a", ".state/a", "progress.json"]
    lost += ["helpers/__pycache__/a.pyc", "labs/01/.ipynb_checkpoints/01.ipynb", ".mypy_cache/a"]
    for name in kept + lost:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert {str(name) for name in given(tmp_path)} == {".dockerignore", *kept}


def test_the_devcontainer_uses_the_same_system_and_command(steps):
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    build = container["build"]
    assert (ROOT / ".devcontainer" / build["dockerfile"]).resolve() == ROOT / "Dockerfile"
    assert ("FROM", build["target"]) in [(name, rest.split()[-1]) for name, rest in steps]
    image = ended(steps)
    assert container["remoteUser"] == image.environment["USER"]
    assert list(map(str, container["forwardPorts"])) == image.ports
    assert ("RUN", container["postCreateCommand"]) in steps


def test_the_steps_make_a_workbook_that_runs(steps):
    place = os.environ.get("WORKBOOK_TEST_CONTAINER")
    if not place:
        pytest.skip("takes minutes: WORKBOOK_TEST_CONTAINER names a folder to make a Debian in")
    if os.geteuid() or not shutil.which("debootstrap"):
        pytest.skip("needs root and debootstrap")
    root, context = Path(place).absolute() / "root", Path(place).absolute() / "context"
    began = time.monotonic()
    took = {}

    def lap(name):
        nonlocal began
        took[name] = round(time.monotonic() - began)
        began = time.monotonic()

    found = ["apt-get", "indextargets", "--format", "$(SITE) $(CODENAME)", "Created-By: Packages"]
    sites = subprocess.run(found, capture_output=True, text=True, check=True).stdout.splitlines()
    suite = re.search(r"debian:(\w+)", steps[0][1]).group(1)
    mirror = next(site for site, _, name in (s.partition(" ") for s in sites) if name == suite)
    subprocess.run(["debootstrap", "--variant=minbase", suite, str(root), mirror], check=True)
    lap("debootstrap")
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(context)], check=True)
    image = Image(context, root)
    # What a container engine lets through: the way to the package indexes.
    way = re.compile(r"(?i)(PIP_CERT|SSL_CERT_FILE|PIP_INDEX_URL|(https?|no)_proxy)")
    image.environment |= {k: v for k, v in os.environ.items() if way.fullmatch(k)}
    for instruction, rest in steps:
        print(f"-- {instruction} {rest}", flush=True)
        image.apply(instruction, rest)
        if instruction == "RUN":
            lap(rest.split("&&")[0].strip())
    owners = {path.lstat().st_uid for path in image.inside(".").rglob("*")}
    assert owners == {1000}
    assert image.run("id -u", capture_output=True).stdout == "1000\n"
    assert not image.inside(".git").exists()

    lesson = "notebooks/03_operator_fusion.ipynb"
    code = "import nbformat, nbclient; page = nbformat.read('03_operator_fusion.ipynb', 4); "
    code += "nbclient.NotebookClient(page, timeout=600, kernel_name='python3').execute()"
    image.run(f'cd {Path(lesson).parent} && python -c "{code}"', check=True)
    lap(lesson)
    # The command that the image ends with, on another port than this machine may be using.
    image.environment["LABFLAGS"] += " --port=8899 --IdentityProvider.token=here"
    words = image.words(shlex.join(image.command))
    server = subprocess.Popen(words, env=image.environment, start_new_session=True)
    try:
        address = "http://127.0.0.1:8899/lab/tree/notebooks/00_start_here.ipynb?token=here"
        for _ in range(120):
            try:
                with urllib.request.urlopen(address, timeout=5) as answer:
                    assert b"jupyter-config-data" in answer.read()
                break
            except OSError:
                time.sleep(1)
        else:
            pytest.fail("the server does not answer")
    finally:
        # unshare does not heed SIGTERM, and a change of user takes --kill-child from its child.
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
    lap("server")
    print(took)
