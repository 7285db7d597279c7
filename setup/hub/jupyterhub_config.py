"""JupyterHub for a class on one machine; ``docs/hub.md`` says how to install and start it.

The Hub runs as root, each student's server as the student, in a unit of its own under systemd with
limits of its own. Write your settings into a file of yours that begins with this one::

    load_subconfig("/opt/relay-workbook/setup/hub/jupyterhub_config.py")
    c.SystemdSpawner.mem_limit = "3G"
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BIN = Path(sys.executable).parent

c = get_config()  # type: ignore[name-defined]  # noqa: F821 - JupyterHub defines it

# Loopback only: a web server in front of it has the certificate and speaks HTTPS.
c.JupyterHub.bind_url = "http://127.0.0.1:8000"
c.ConfigurableHTTPProxy.command = [
    str(ROOT / ".deps" / "hub" / "node_modules" / ".bin" / "configurable-http-proxy")
]

# Users of the system who are in the group, with the passwords of the system.
c.JupyterHub.authenticator_class = "pam"
c.PAMAuthenticator.allowed_groups = {"relay-workbook"}
c.PAMAuthenticator.open_sessions = False

# What a student gets. One kernel of a large lesson takes up to 0.6 GB, and several can be open.
c.JupyterHub.spawner_class = "systemd"
c.SystemdSpawner.mem_limit = "2G"
c.SystemdSpawner.cpu_limit = 2.0
# A kernel that wants more is killed; without this systemd would end the whole server with it.
c.SystemdSpawner.unit_extra_properties = {"OOMPolicy": "continue"}
c.SystemdSpawner.isolate_tmp = True
c.SystemdSpawner.disable_user_sudo = True
c.Spawner.cmd = [sys.executable, str(ROOT / "setup" / "hub" / "server.py")]
c.Spawner.default_url = "/lab/tree/notebooks/00_start_here.ipynb"
c.Spawner.args = [
    # JupyterLab keeps the kernel of a lesson that was closed: end it after an hour without work.
    "--MappingKernelManager.cull_idle_timeout=3600",
    "--MappingKernelManager.cull_interval=300",
]

# A class comes all at once, and a start is seconds of work for a core: waiting is better than the
# error page that a student gets beyond a limit on starts.
c.JupyterHub.concurrent_spawn_limit = 0
c.Spawner.start_timeout = 300
c.Spawner.http_timeout = 300

# A server without anybody at it ends after two hours; the files stay.
c.JupyterHub.services = [
    {
        "name": "idle-culler",
        "command": [str(BIN / "jupyterhub-idle-culler"), "--timeout=7200", "--cull-every=300"],
    }
]
c.JupyterHub.load_roles = [
    {
        "name": "idle-culler",
        "scopes": ["list:users", "read:users:activity", "read:servers", "delete:servers"],
        "services": ["idle-culler"],
    }
]
