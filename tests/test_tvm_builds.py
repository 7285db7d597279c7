"""Choosing one of two TVMs, and the repairs of the one with Relay: each has its test."""

import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from helpers import WorkbookError, targets, tvm_builds
from helpers.tvm_builds import RELAY_DIR, ROOT, chosen, machine_problem, native_log_quiet, use_tvm

LINE = r"Relay: TVM 0\.16\S* \(hhb-tvm 3\.2\.3\), devices: cpu(, cuda)?"


def python(source, path=()):
    """Run ``source`` in a process of its own that has imported no TVM."""
    where = os.pathsep.join([*map(str, path), str(ROOT), str(Path(__file__).parent)])
    return subprocess.run(
        [sys.executable, "-c", source],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": where, "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        timeout=300,
    )


def refused(source, path=()):
    """What ``source`` is refused with: the one line that ``exit_with_sentence`` leaves."""
    done = python(
        "from helpers import WorkbookError, tvm_builds, use_tvm\n"
        "from helpers.errors import exit_with_sentence\n"
        "try:\n    "
        + source.strip().replace("\n", "\n    ")
        + "\nexcept WorkbookError as error:\n    exit_with_sentence(error)",
        path,
    )
    assert done.returncode == 1, done
    assert len(done.stderr.splitlines()) == 1, done
    return done.stderr.strip()


# --- threads -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("asked", "threads"), [(None, 1), ("2", 2)])
def test_kernels_run_on_one_thread_unless_asked(monkeypatch, asked, threads):
    monkeypatch.delenv("TVM_NUM_THREADS")
    if asked:
        monkeypatch.setenv("TVM_NUM_THREADS", asked)
    done = python(
        "from helpers import use_tvm\n"
        "use_tvm(quiet=True)\n"
        "import tvm\n"
        "print(tvm.get_global_func('runtime.NumThreads')())"
    )
    assert done.stdout.strip() == str(threads), done


# --- choosing -------------------------------------------------------------------------------------


def test_one_line_says_which_tvm(relay, capsys):
    use_tvm("relay")
    use_tvm()
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert re.fullmatch(LINE, first)
    use_tvm("relay", quiet=True)
    assert capsys.readouterr().out == ""
    assert chosen().kind == "relay"
    tvm_builds.need_relay()


def test_the_other_tvm_is_refused_afterwards(relay):
    with pytest.raises(WorkbookError) as caught:
        use_tvm("relax")
    assert str(caught.value) == (
        "This kernel already uses the TVM with Relay, and one process can import only one TVM: "
        'restart the kernel and run use_tvm("relax") first.'
    )
    assert chosen().kind == "relay"


def test_relax_and_then_relay():
    done = python(
        """
from helpers import WorkbookError, tvm_builds, use_tvm
try:
    tvm_builds.chosen()
except WorkbookError as error:
    print(error)
use_tvm("relax")
for again in (lambda: use_tvm("relay"), tvm_builds.need_relay):
    try:
        again()
    except WorkbookError as error:
        print(error)
import tvm
print(hasattr(tvm, "relay"), tvm.__version__)
"""
    )
    assert done.returncode == 0, done.stderr
    none, line, refusal, need, last = done.stdout.splitlines()
    assert none == 'No TVM is chosen yet: run use_tvm("relay") first.'
    assert re.fullmatch(r"Relax: TVM 0\.27\S* \(apache-tvm 0\.27\S*\), devices: cpu(, cuda)?", line)
    assert refusal.startswith("This kernel already uses the TVM with Relax, and one process")
    assert need.startswith("This needs Relay, and the kernel uses Relax: restart the kernel")
    assert re.fullmatch(r"False 0\.27\S*", last)


def test_relay_after_a_plain_import_of_todays_tvm():
    sentence = refused("import tvm\nuse_tvm('relay')")
    assert "already uses the TVM with Relax" in sentence


@pytest.mark.parametrize("kind", ["Relay", "tvm", "", None, 3])
def test_a_wrong_argument(kind):
    with pytest.raises(WorkbookError, match='takes "relay" or "relax", not ' + repr(kind)):
        use_tvm(kind)


def test_a_missing_build(tmp_path):
    set_up = f"from pathlib import Path\ntvm_builds.RELAY_DIR = Path({str(tmp_path)!r})\n"
    assert refused(set_up + "use_tvm('relay')") == (
        "WorkbookError: The Relay build is not installed here: run `make lab` once."
    )
    assert refused("tvm_builds._tvm_on_path = lambda: None\nuse_tvm('relax')") == (
        "WorkbookError: apache-tvm is not installed here: run `make lab` once."
    )


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"__init__.py": "raise OSError('no libtvm.so')"}, "does not load (no libtvm.so)"),
        ({"__init__.py": "import no_such_package"}, "does not load (No module named 'no_such_pac"),
        ({}, "tvm.relay does not import (No module named 'tvm."),
    ],
)
def test_a_damaged_build(tmp_path, files, sentence):
    for name, text in ({"__init__.py": "", "relay/__init__.py": ""} | files).items():
        file = tmp_path / "tvm" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    found = refused("use_tvm('relay')", path=[tmp_path])
    assert sentence in found
    assert "install it again" in found


def test_a_tvm_of_your_own_with_relay_is_used(tmp_path):
    (tmp_path / "tvm").symlink_to(RELAY_DIR / "tvm")
    code = "from helpers import use_tvm; use_tvm(); import tvm; print(tvm.__file__)"
    done = python(code, path=[tmp_path])
    line, file = done.stdout.splitlines()
    assert re.fullmatch(r"Relay: TVM 0\.16\S* \(your own build\), devices: cpu(, cuda)?", line)
    assert Path(file).parent.parent == tmp_path
    sentence = refused("use_tvm('relax')", path=[tmp_path])
    assert "has Relay, not Relax: take it off PYTHONPATH" in sentence


def test_the_other_tvm_answers_from_a_process_of_its_own():
    assert tvm_builds.run_with("relax", "import tvm; print(tvm.__version__[:4])") == "0.27\n"
    with pytest.raises(WorkbookError, match="process with Relax failed: KeyError: 'x'"):
        tvm_builds.run_with("relax", "{}['x']")


# --- the machine ----------------------------------------------------------------------------------


def test_this_machine_is_fit():
    assert machine_problem() is None
    assert set(tvm_builds.REQUIRED_CPU_FLAGS) <= tvm_builds.cpu_flags()


@pytest.mark.parametrize(
    ("owner", "name", "value", "sentence"),
    [
        (sys, "version_info", (3, 13, 1), "3.10, 3.11 or 3.12, and this is Python 3.13:"),
        (sys, "version_info", (3, 9, 2), "3.10, 3.11 or 3.12, and this is Python 3.9:"),
        (sys, "platform", "darwin", "exists for Linux on x86-64 processors only"),
        (sys, "platform", "win32", "exists for Linux on x86-64 processors only"),
        (tvm_builds.platform, "machine", lambda: "aarch64", "and this is Linux on aarch64:"),
        (tvm_builds.platform, "libc_ver", lambda: ("glibc", "2.27"), "this system has glibc 2.27"),
        (tvm_builds.platform, "libc_ver", lambda: ("", ""), "this system has another C library"),
        (
            tvm_builds,
            "cpu_flags",
            lambda: frozenset({"sse4_2", "bmi1", "bmi2", "movbe", "fma"}),
            "This processor lacks avx2, f16c,",
        ),
    ],
)
def test_an_unfit_machine_gets_one_sentence(monkeypatch, owner, name, value, sentence):
    monkeypatch.setattr(owner, name, value)
    problem = machine_problem()
    assert sentence in problem
    assert "\n" not in problem
    with pytest.raises(WorkbookError, match=re.escape(problem)):
        tvm_builds.check_machine()


def test_an_unreadable_processor_is_given_the_benefit_of_the_doubt(monkeypatch):
    monkeypatch.setattr(tvm_builds, "cpu_flags", frozenset)
    assert machine_problem() is None


def test_an_unfit_machine_is_told_before_any_tvm_is_imported():
    set_up = "import platform, sys\nplatform.machine = lambda: 'riscv64'\n"
    assert "Linux on riscv64" in refused(set_up + "use_tvm('relay')")


@pytest.mark.parametrize(("system", "machine"), [("darwin", "arm64"), ("linux", "aarch64")])
def test_todays_tvm_is_not_refused_where_only_relays_build_is_missing(system, machine):
    fake = (
        f"import platform, sys\nsys.platform = {system!r}\nplatform.machine = lambda: {machine!r}\n"
    )
    refusal = refused(fake + "use_tvm('relay')")
    assert f"on {machine}: use such a machine" in refusal
    done = python(
        f"from helpers import use_tvm\nimport numpy\n{fake}"
        "from helpers import tvm_builds\nprint(tvm_builds.machine_problem('relax'))"
    )
    assert done.stdout == "None\n", done.stderr


# --- how an error looks ---------------------------------------------------------------------------


def test_a_notebook_shows_the_sentence_and_no_frames():
    done = python(
        """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_cell("from helpers import use_tvm\\nuse_tvm('tvm')")
"""
    )
    assert done.returncode == 0, done.stderr
    shown = (done.stdout + done.stderr).strip()
    assert shown == """WorkbookError: use_tvm() takes "relay" or "relax", not 'tvm'."""


# --- repair: schedules ----------------------------------------------------------------------------

REPAIRED = ("add", "subtract", "multiply", "divide", "reshape")


def held_inside():
    """Bytes that the fused kernel of three operators keeps in memory, for each repaired one."""
    import tvm
    from tvm import relay

    from helpers.fusion import intermediate_buffers

    held = {}
    for name in REPAIRED:
        x, c = relay.var("x", shape=(32, 32)), relay.var("c", shape=())
        if name == "reshape":
            y = relay.exp(relay.reshape(relay.exp(x), (1024,)))
        else:
            operator = getattr(relay, name)
            y = operator(operator(operator(x, c), c), c)
        mod = tvm.IRModule.from_expr(relay.Function([x, c], y))
        with tvm.transform.PassContext(opt_level=3):
            library = relay.build(mod, targets.TEACHING_CPU)
        (held[name],) = intermediate_buffers(library).values()
    return held


def run_on(target):
    """exp of four numbers, and 1 + 2 folded to 3, compiled for ``target`` and run here."""
    import tvm
    from tvm import relay
    from tvm.contrib import graph_executor

    x = relay.var("x", shape=(4,))
    body = relay.exp(x) + (relay.const(1.0) + relay.const(2.0))
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(tvm.IRModule.from_expr(relay.Function([x], body)), target)
    module = graph_executor.GraphModule(library["default"](tvm.cpu()))
    module.run(x=np.arange(4, dtype="float32"))
    return module.get_output(0).numpy()


def noisy():
    """Builds that log: through TVM's C++ code three times, through Python once."""
    import tvm
    from tvm import relay
    from tvm.relay import transform
    from tvm.relay.loops import while_loop

    x = relay.var("x", shape=(1, 8, 16, 16))
    mod = transform.InferType()(tvm.IRModule.from_expr(relay.nn.max_pool2d(x)))
    with tvm.transform.PassContext(opt_level=3):
        transform.ConvertLayout({"nn.dense": ["NHWC", "default"]})(mod)

    a = relay.var("a", shape=(4,))
    taken = relay.take(a, relay.const([1, 2]), mode="fast")
    relay.build(tvm.IRModule.from_expr(taken), targets.TEACHING_CPU)

    rows = relay.var("rows", shape=(relay.Any(), 4))
    dense = relay.nn.dense(rows, relay.const(np.ones((8, 4), "float32")))
    relay.vm.compile(tvm.IRModule.from_expr(dense), targets.TEACHING_CPU)

    i, y = relay.var("i", shape=(), dtype="int32"), relay.var("y", shape=(4,))
    loop = while_loop(
        lambda i, y: relay.less(i, relay.const(3)), [i, y], lambda i, y: [i + relay.const(1), y + y]
    )
    body = relay.TupleGetItem(loop(relay.const(0), a), 1)
    relay.vm.compile(tvm.IRModule.from_expr(relay.Function([a], body)), targets.TEACHING_CPU)


NOISE = (
    "Desired layout(s) not specified for op: nn.max_pool2d",
    "Fast mode segfaults when there are out-of-bounds indices",
    "Cannot find config for target=llvm",
    "letlist not used",
)


@pytest.fixture(scope="module")
def unrepaired():
    """What the same functions give in a process whose Relay build is as the vendor made it."""
    done = python(
        """
import json, sys
from helpers import tvm_builds
tvm_builds._repair_relay = lambda: None
tvm_builds.use_tvm("relay", quiet=True)
import test_tvm_builds as tests
try:
    plain = tests.run_on("llvm").tolist()
except Exception as error:
    plain = str(error).splitlines()[-1]
held = tests.held_inside()
print("-- noise", file=sys.stderr, flush=True)
tests.noisy()
print(json.dumps({"held": held, "plain": plain}))
"""
    )
    assert done.returncode == 0, done.stderr
    noise = done.stderr.split("-- noise\n")[1]
    return {**json.loads(done.stdout.splitlines()[-1]), "noise": noise}


def test_fused_kernels_keep_nothing_in_memory(relay, unrepaired):
    assert held_inside() == dict.fromkeys(REPAIRED, 0)
    # One buffer of 32 x 32 float32, which both intermediate results are written to in turn.
    assert unrepaired["held"] == dict.fromkeys(REPAIRED, 4096)


@pytest.mark.parametrize(
    "target",
    [
        "llvm",
        " llvm -mcpu=x86-64-v3",
        {"kind": "llvm"},
        {"kind": "llvm", "mcpu": "x86-64-v3", "host": {"kind": "llvm"}},
        {"cpu": "llvm"},
    ],
    ids=str,
)
def test_plain_llvm_means_this_machine(relay, unrepaired, target):
    np.testing.assert_allclose(run_on(target), np.exp(np.arange(4)) + 3, rtol=1e-6)
    assert "architecture mismatch" in unrepaired["plain"]


def test_a_target_object_with_a_host_means_this_machine(relay):
    from tvm.target import Target

    for target in (
        Target("llvm", host="llvm"),
        Target("llvm -mcpu=x86-64-v3", "llvm"),
        Target({"kind": "llvm", "host": "llvm"}),
    ):
        assert target.attrs["mtriple"] == target.host.attrs["mtriple"] == "x86_64-linux-gnu"
        np.testing.assert_allclose(run_on(target), np.exp(np.arange(4)) + 3, rtol=1e-6)


def test_a_triple_that_is_given_stays(relay):
    from tvm.target import Target

    triple = "riscv64-unknown-linux-gnu"
    for target in (f"llvm -mtriple={triple}", {"kind": "llvm", "mtriple": triple}):
        assert Target(target).attrs["mtriple"] == triple
    given = {"kind": "llvm"}
    Target(given)
    assert given == {"kind": "llvm"}


# --- repair: logs ---------------------------------------------------------------------------------


def test_builds_log_nothing(relay, unrepaired, capfd, caplog):
    caplog.set_level(logging.WARNING)
    noisy()
    shown = capfd.readouterr()
    assert (shown.out, shown.err, caplog.records) == ("", "", [])
    for phrase in NOISE:
        assert phrase in unrepaired["noise"]


def test_what_the_program_itself_writes_is_kept(capfd):
    with native_log_quiet():
        print("mine", file=sys.stderr)
        with native_log_quiet():
            os.write(2, b"[12:30:01] /src/relay/x.cc:99: Warning: letlist not used\n")
            os.write(2, b"raw [12:30:01]\n")
    print("after", file=sys.stderr)
    assert capfd.readouterr().err == "mine\nraw [12:30:01]\nafter\n"


def test_an_exception_passes_through_and_what_was_written_stays(capfd):
    @native_log_quiet()
    def fail():
        print("before it", file=sys.stderr)
        raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        fail()
    os.write(2, b"and after\n")
    assert capfd.readouterr().err == "before it\nand after\n"


def test_an_error_of_a_build_passes_through_with_its_message(relay, capfd):
    import tvm

    x = relay.var("x", shape=(64,))
    y = x
    for i in range(12):
        y = relay.add(y, relay.const(float(i + 1)))
    with pytest.raises(tvm.error.TVMError, match="Observed 100 rewrite passes"):
        relay.build(tvm.IRModule.from_expr(y), targets.TEACHING_CPU)
    a, b = relay.var("a", shape=(3,)), relay.var("b", shape=(4,))
    with pytest.raises(tvm.error.DiagnosticError):
        relay.build(tvm.IRModule.from_expr(relay.add(a, b)), targets.TEACHING_CPU)
    assert "Incompatible broadcast type" in capfd.readouterr().err


# --- targets --------------------------------------------------------------------------------------


def test_names_of_targets(relay):
    import tvm

    teaching = tvm.target.Target(targets.TEACHING_CPU)
    assert str(targets.resolve()) == str(targets.resolve("teaching")) == str(teaching)
    assert targets.resolve(teaching) is teaching
    assert str(targets.resolve({"kind": "llvm", "mcpu": "x86-64-v3"})) == str(teaching)
    host = targets.resolve("host")
    assert (host.kind.name, host.attrs["mtriple"]) == ("llvm", "x86_64-linux-gnu")
    np.testing.assert_allclose(run_on(host), np.exp(np.arange(4)) + 3, rtol=1e-6)
    assert targets.device_for("teaching") == targets.device_for("host") == tvm.cpu(0)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("nosuch", 'Target kind "nosuch" is not defined.'),
        ("", "Cannot parse empty target string."),
        ("llvm -nosuch=3", "Cannot recognize 'nosuch'."),
        ({"mcpu": "x86-64-v3"}, 'Field "kind" is not found.'),
        (7, "has to be a string or dictionary."),
        ([1], "has to be a string or dictionary."),
    ],
)
def test_what_tvm_does_not_understand_gets_one_sentence(relay, target, reason):
    with pytest.raises(WorkbookError) as caught:
        targets.resolve(target)
    assert str(caught.value).startswith(f"TVM does not understand the target {target!r}: ")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("target", ["cuda", "cuda -arch=sm_90", {"kind": "cuda"}])
def test_cuda_where_there_is_none(relay, monkeypatch, target):
    build = tvm_builds.TvmBuild("relay", "0.16", "hhb-tvm 3.2.3", ("cpu",))
    monkeypatch.setattr(tvm_builds, "_chosen", build)
    with pytest.raises(WorkbookError, match=r"CUDA was asked for, and hhb-tvm 3\.2\.3 finds no"):
        targets.resolve(target)


def test_the_host_target_leaves_out_what_the_machine_hides(relay, monkeypatch):
    """A virtual machine's processor may lack features that LLVM counts to its name."""
    import tvm

    from helpers import targets

    def hides_avx512(name, **options):
        found = original(name, **options)
        if name != "tvm.codegen.llvm.GetHostCPUFeatures":
            return found
        return lambda: {**dict(found().items()), "avx512f": False}

    original = tvm.get_global_func
    assert targets.missing_features(targets.resolve("host")) == []
    monkeypatch.setattr(tvm, "get_global_func", hides_avx512)
    strong = targets.resolve("llvm -mcpu=skylake-avx512")
    assert "avx512f" in targets.missing_features(strong)
    named = targets.resolve("llvm -mcpu=skylake-avx512 -mattr=-avx512f")
    assert "avx512f" not in targets.missing_features(named)
    assert targets.missing_features(targets.resolve("host")) == []
