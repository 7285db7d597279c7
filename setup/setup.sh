#!/bin/sh
# Find a Python that can run the workbook, newest supported first, and let install.py do the rest.
# Every directory of PATH is looked at: version managers leave commands behind that do not start.
set -u
here=$(cd "$(dirname "$0")" && pwd)

say() { printf '%s\n' "$*" >&2; }

if [ "$(uname -s)" != Linux ] || [ "$(uname -m)" != x86_64 ]; then
    say "The workbook needs Linux on an x86-64 processor, and this is $(uname -s) on $(uname -m): use a Linux x86-64 machine, virtual machine or container."
    exit 1
fi

uv=$(command -v uv 2>/dev/null) || uv=
if [ -n "$uv" ] && ! "$uv" --version >/dev/null 2>&1; then uv=; fi

seen=
lacking=
# Prints "3.11 yes" where the Python starts; the second word says whether it can make an environment.
probe='
import sys
def has(name):
    try:
        __import__(name)
    except Exception:
        return False
    return True
able = has("venv") and (has("ensurepip") or has("pip"))
print("%d.%d %s" % (sys.version_info[0], sys.version_info[1], "yes" if able else "no"))
'

try() { # try COMMAND: hands over to install.py and does not return where COMMAND will do
    answer=$("$1" -c "$probe" 2>/dev/null) || return 0
    version=${answer% *}
    case "$version" in
    3.10 | 3.11 | 3.12) ;;
    *)
        seen="${seen:+$seen, }$version"
        return 0
        ;;
    esac
    if [ "${answer#* }" = no ] && [ -z "$uv" ]; then
        lacking=$version
        return 0
    fi
    exec "$1" "$here/install.py" ${uv:+--uv "$uv"}
}

if [ -n "${PYTHON:-}" ]; then
    try "$PYTHON"
    say "PYTHON=$PYTHON does not start, or is not Python 3.10, 3.11 or 3.12 with venv and pip: leave PYTHON out, or name another one."
    exit 1
fi
for name in python3.12 python3.11 python3.10 python3 python; do
    rest=${PATH:-}:
    while [ -n "$rest" ]; do
        folder=${rest%%:*}
        rest=${rest#*:}
        if [ -n "$folder" ] && [ -x "$folder/$name" ] && [ ! -d "$folder/$name" ]; then try "$folder/$name"; fi
    done
done
if [ -n "$uv" ]; then
    found=$("$uv" python find --no-python-downloads --no-project '>=3.10,<3.13' 2>/dev/null) && [ -n "$found" ] && try "$found"
fi
if [ -n "$lacking" ]; then
    say "Python $lacking is here but cannot make a virtual environment: install its venv package (Debian, Ubuntu: apt install python$lacking-venv) or uv, and run make again."
elif [ -n "$seen" ]; then
    say "The workbook runs on Python 3.10, 3.11 or 3.12, and only Python $seen was found: install one of the three and run make again."
else
    say "No Python was found: install Python 3.10, 3.11 or 3.12 and run make again."
fi
exit 1
