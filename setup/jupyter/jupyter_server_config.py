"""Settings of the server that JSON cannot hold."""

from helpers import saving

c = get_config()  # type: ignore[name-defined]  # noqa: F821 - Jupyter defines it
c.ContentsManager.pre_save_hook = saving.drop_views
