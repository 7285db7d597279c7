"""Students who come at once, on a real JupyterHub: ``python -m bench.hub [STUDENTS ...]``.

Needs root, systemd-nspawn (Debian: ``systemd-container``), npm, and the Python of the system. Boots
a machine of its own with systemd (see :mod:`bench.hub.machine`), installs the last commit there as
``docs/hub.md`` says, and lets students log in with their passwords, start their servers, open
lesson 03 and run all its cells, all at the same moment. Of the last class, the first student does
so in Chromium, where there is one. The kernel of each class's second student is killed half-way,
and the server of its last one is slow to start. Then it is tried whether a student can reach the
files of another, or take more memory than allowed. Exit status 1 when anything is not as it should
be.

The machine is kept in ``--folder``: the next time only what has changed is installed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import threading
from pathlib import Path

from bench.hub import memory
from bench.hub.browser import BrowserStudent, chromium
from bench.hub.machine import FIRST_UID, PASSWORD, Machine, missing
from bench.hub.memory import MB, Use
from bench.hub.student import Student
from helpers.errors import WorkbookError, exit_with_sentence

LESSON = "notebooks/03_operator_fusion.ipynb"
SPIED = """
import os, signal
def reached(what, attempt):
    try:
        attempt()
    except (PermissionError, ProcessLookupError):
        pass
    else:
        print("reached:", what)
other, installed = "/home/{other}", "/opt/relay-workbook"
reached("another's folder", lambda: os.listdir(other))
reached("another's lesson", lambda: open(other + "/workbook/{lesson}").read())
reached("the helpers", lambda: open(installed + "/helpers/quiz.py", "a"))
reached("the installation", lambda: open(installed + "/new", "w"))
reached("the Hub's database", lambda: os.listdir("/var/lib/relay-hub"))
reached("the Hub's process", lambda: os.kill({hub}, 0))
"""
GREEDY = "block = bytearray(4 << 30); block[::4096] = bytes(len(block) >> 12)"


def trial(machine: Machine, count: int, *, browser: bool, hard: bool) -> list[str]:
    """One class of ``count`` students; prints a row of the table, gives what went wrong."""
    names = machine.students(count)
    machine.start(slow=names[-1] if count > 1 else "")
    kinds = [BrowserStudent if browser and number == 0 else Student for number in range(count)]
    class_ = [
        kind(name, PASSWORD, machine.url, LESSON) for kind, name in zip(kinds, names, strict=True)
    ]
    if isinstance(class_[0], BrowserStudent):
        class_[0].home = machine.root / "home" / names[0]
    if count > 1:
        class_[1].crash_after = 6
    together = threading.Barrier(count)
    threads = [threading.Thread(target=one.run, args=(together,), daemon=True) for one in class_]
    with memory.Watch() as watch:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        uses = memory.by_kind(range(FIRST_UID + 1, FIRST_UID + count + 1))
        hub = memory.of_hub()
    _print_row(count, class_, uses, hub, watch)
    wrong = [f"{one.name}: {what}" for one in class_ for what in one.wrong]
    if count > 1 and class_[1].restarts != 1:
        wrong.append(f"{names[1]}: the killed kernel was started again {class_[1].restarts} times")
    if hard and not wrong:
        wrong += _attacks(class_)
    machine.stop()
    return wrong


def _print_row(
    count: int,
    class_: list[Student],
    uses: dict[int, dict[str, Use]],
    hub: Use,
    watch: memory.Watch,
) -> None:
    def seconds(kind: str) -> str:
        values = [getattr(one.times, kind) for one in class_]
        return f"{statistics.median(values):.0f}, {max(values):.0f}"

    def mb(kind: str, measure: str) -> str:
        values = [getattr(user.get(kind, Use()), measure) / MB for user in uses.values()]
        return f"{statistics.mean(values or [0]):.0f}, {max(values or [0]):.0f}"

    cells = [
        *(f"{count}", seconds("server"), seconds("first_cell"), seconds("whole")),
        *(mb("server", "pss"), mb("kernel", "pss"), mb("kernel", "uss"), mb("other", "pss")),
        *(f"{hub.pss / MB:.0f}", f"{watch.taken / MB:.0f}", f"{watch.load:.1f}"),
    ]
    print(f"| {' | '.join(cells)} |", flush=True)


def _attacks(class_: list[Student]) -> list[str]:
    """What a student can do that they should not, tried in their kernels."""
    wrong = []
    spy, other = class_[-1], class_[0]
    kernel = spy.kernel("spy.ipynb")
    code = SPIED.format(other=other.name, lesson=LESSON, hub=_hub_in_machine())
    printed, error = kernel.ask(code)
    wrong += [f"{spy.name}: {text}" for text in (printed.strip(), error) if text]
    status = spy.ask("GET", f"/user/{other.name}/api/contents").status_code
    if status not in (403, 404):
        wrong.append(f"{spy.name}: {other.name}'s server answers with {status}")
    kernel.ask(GREEDY)
    if kernel.restarts != 1:
        wrong.append(f"{spy.name}: 4 GB could be taken in spite of the limit")
    printed, error = kernel.ask("print(6 * 7)")
    if printed != "42\n":
        wrong.append(f"{spy.name}: no kernel after the limit: {error}")
    kernel.close()
    for one in class_:
        if not one.ask("GET", f"/user/{one.name}/api/status").ok:
            wrong.append(f"{one.name}: the server was lost to what {spy.name} did")
    return wrong


def _hub_in_machine() -> int:
    """The Hub's process number as the machine's own processes see it."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes()
            if b"/opt/relay-workbook/.venv/bin/jupyterhub\0--config" in line:
                text = (folder / "status").read_text()
                return int(next(r for r in text.splitlines() if r.startswith("NSpid")).split()[-1])
        except OSError:
            continue
    raise WorkbookError("The Hub's process is not there.")


def main(arguments: list[str]) -> int:
    """Entry of the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.hub", description=__doc__)
    parser.add_argument("students", type=int, nargs="*", default=[1, 5, 10])
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp/relay-hub-trial"))
    parser.add_argument("--cold", action="store_true", help="nothing was compiled beforehand")
    options = parser.parse_args(arguments)
    if reason := missing():
        raise WorkbookError(f"A Hub cannot be tried here: {reason}.")
    machine = Machine(options.folder.absolute())
    wrong: list[str] = []
    machine.mount()
    try:
        print(f"Installed in {machine.install():.0f} s.", flush=True)
        if options.cold:
            machine.forget_warmth()
        else:
            print(f"Lesson 03 compiled in {machine.warm('03'):.0f} s.", flush=True)
        cores = len(os.sched_getaffinity(0))
        print(f"{cores} cores; seconds: median, most; MB: mean, most; load at the most\n")
        print(
            "| students | server ready, s | first cell, s | lesson, s | server PSS, MB "
            "| kernel PSS | kernel USS | other PSS | Hub PSS | machine, MB | load |"
        )
        print(f"|{' ---: |' * 11}", flush=True)
        for count in options.students:
            last = count == options.students[-1] and count > 1
            wrong += trial(machine, count, browser=last and chromium() is not None, hard=last)
    finally:
        machine.stop()
        machine.unmount()
    for sentence in wrong:
        print(f"  - {sentence}")
    print("Not as it should be, see above." if wrong else "All as it should be.")
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except WorkbookError as error:
        exit_with_sentence(error)
