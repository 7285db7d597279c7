#!/bin/sh
# Find a Python that can run the workbook, newest supported first, and let install.py do the rest.
# Every directory of PATH is looked at: version managers leave commands behind that do not start.
# With --preflight the work is preflight.py's, and any Python 3.8 or newer can say what is amiss.
set -u
here=$(cd "$(dirname "$0")" && pwd)
work=install
if [ "${1:-}" = --preflight ]; then work=preflight; fi

say() { printf '%s\n' "$*" >&2; }

if [ "$(uname -s)" != Linux ] || [ "$(uname -m)" != x86_64 ]; then
    say "The Relay build of TVM exists for Linux on x86-64 processors only, and this is $(uname -s) on $(uname -m): use such a machine, a virtual machine or a container (on Windows, WSL 2)."
    exit 1
fi

uv=$(command -v uv 2>/dev/null) || uv=
if [ -n "$uv" ] && ! "$uv" --version >/dev/null 2>&1; then uv=; fi

seen=
lacking=
unfit=
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
        case "$version" in 3.[89] | 3.1[0-9]) unfit=$1 ;; esac
        return 0
        ;;
    esac
    if [ "${answer#* }" = no ] && [ -z "$uv" ]; then
        lacking=$version
        unfit=$1
        return 0
    fi
    exec "$1" "$here/$work.py" ${uv:+--uv "$uv"}
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
    problem="Python $lacking is here but cannot make a virtual environment: install its venv package (Debian, Ubuntu: apt install python$lacking-venv) or uv, and run make again."
elif [ -n "$seen" ]; then
    problem="The workbook runs on Python 3.10, 3.11 or 3.12, and only Python $seen was found: install one of the three and run make again."
else
    problem="No Python was found: install Python 3.10, 3.11 or 3.12 and run make again."
fi
if [ "$work" = preflight ] && [ -n "$unfit" ]; then
    exec "$unfit" "$here/preflight.py" ${uv:+--uv "$uv"} --python-problem "$problem"
fi
say "$problem"
exit 1
