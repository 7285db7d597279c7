"""The VM's program: the listing by heart, and a run of it against the VM itself."""

import re
import subprocess
import sys

import numpy as np
import pytest

from helpers import WorkbookError, build, bytecode, counters, fusion, storage, zoo
from helpers.tvm_builds import ROOT

DYNAMIC = [
    ("encoder", {"layers": 1, "hidden": 64}, (1, 20)),
    ("lstm", {"hidden": 64}, (1, 7)),
    ("early_exit", {"layers": 2}, (None,)),
    ("greedy_search", {}, (1, 9)),
    ("beam_search", {"beams": 3}, (9,)),
    ("mlp", {"batch": "batch"}, (1, 5)),
]
STATIC = ["mlp", "voice_activity", "file_type"]


@pytest.fixture(scope="module", autouse=True)
def _use_relay(relay):
    return relay


def compiled(body, *params):
    from tvm import relay

    return build.compile(relay.Function(list(params), body), "vm")


def straight_line():
    from tvm import relay

    x = relay.var("x", shape=(4,))
    return compiled(relay.sum(relay.tanh(relay.exp(x))), x)


def choice():
    from tvm import relay

    c, x = relay.var("c", shape=(), dtype="bool"), relay.var("x", shape=(4,))
    return compiled(relay.If(c, x * relay.const(2.0), x - relay.const(1.0)), c, x)


def any_rows():
    from tvm import relay

    x = relay.var("x", shape=(relay.Any(), 4))
    return compiled(relay.sum(relay.tanh(relay.exp(x)), axis=[1]), x)


def doubled_n_times():
    from tvm import relay
    from tvm.relay.loops import while_loop

    n, x = relay.var("n", shape=(), dtype="int32"), relay.var("x", shape=(4,))
    i, a = relay.var("i", shape=(), dtype="int32"), relay.var("a", shape=(4,))
    loop = while_loop(
        lambda i, a: relay.less(i, n),
        [i, a],
        lambda i, a: [i + relay.const(1, "int32"), a * relay.const(2.0)],
    )
    return compiled(relay.TupleGetItem(loop(relay.const(0, "int32"), x), 1), n, x)


def start(made, **inputs):
    return bytecode.decode(made).start(**inputs)


def same(outputs, wanted):
    for got, want in zip(outputs, wanted, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


# --- the listing ---------------------------------------------------------------------------------


def test_listing_of_a_straight_line():
    assert str(bytecode.decode(straight_line())).splitlines() == [
        "main(x): 5 registers, 8 instructions",
        " 0  $1 = load_const const[0]                    # int64 4",
        " 1  $2 = alloc_storage of $1 bytes, float32",
        " 2  $3 = load_const const[1]                    # int64 0",
        " 3  $4 = alloc_tensor $2 at $3, float32[]",
        " 4  kill_register $2",
        " 5  invoke_packed fused_exp_tanh_sum($0) -> $4",
        " 6  kill_register $0",
        " 7  ret $4",
    ]


def test_jumps_go_forward_to_the_places_they_name():
    program = bytecode.decode(choice())
    (main,) = program.functions
    (jump,) = [(pc, i) for pc, i in enumerate(main.instructions) if i.op == "if"]
    (go,) = [(pc, i) for pc, i in enumerate(main.instructions) if i.op == "goto"]
    assert (jump[1].then, go[0] + 1) == (jump[0] + 1, jump[1].otherwise)
    assert go[1].pc > go[0]
    moves = [i for i in main.instructions if i.op == "move"]
    assert len({move.dst for move in moves}) == 1, "both branches give one register its value"


@pytest.mark.parametrize("name", ["lstm", "greedy_search", "mlp"])
def test_listing_agrees_with_tvms_own(name):
    """Opcodes, counts and names; TVM's numbers and addresses are its own affair."""
    options = {entry[0]: entry[1] for entry in DYNAMIC}[name]
    made = build.compile(zoo.load(name, **options), "vm")
    program = bytecode.decode(made)
    raw = made.library.bytecode
    assert sum(program.opcodes.values()) == len(re.findall(r"^ *\d+: ", raw, re.MULTILINE))
    for op, count in program.opcodes.items():
        assert len(re.findall(rf"# {op}(?![a-z_])", raw)) == count
    registers = map(int, re.findall(r"reg file size = (\d+)", raw))
    assert sorted(function.registers for function in program.functions) == sorted(registers)
    assert {kernel.symbol for kernel in program.kernels} == set(made.library.primitive_ops)
    assert len({kernel.name for kernel in program.kernels}) == len(program.kernels)
    assert not re.search(r"\d{6,}", str(program)), "an address"


def test_listing_is_the_same_in_every_process():
    code = (
        "from helpers import build, bytecode, use_tvm, zoo\n"
        "use_tvm('relay', quiet=True)\n"
        "import sys\n"
        "if sys.argv[1] == '2': build.compile('mlp', 'vm')\n"
        "made = build.compile(zoo.load('lstm', hidden=32), 'vm', opt_level=2, cache=False)\n"
        "print(bytecode.decode(made))"
    )
    listings = [
        subprocess.run(
            [sys.executable, "-c", code, seed],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "TVM_NUM_THREADS": "1", "PYTHONPATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "12"
    ]
    assert "lifted_1(steps, x, i, h, c)" in listings[0]
    assert listings[0] == listings[1]


def test_marked_line_and_one_function():
    program = bytecode.decode(doubled_n_times())
    assert [function.name for function in program.functions] == ["main", "lifted_1"]
    (line,) = [text for text in program.text("main", mark=1).splitlines() if text[0] == ">"]
    assert line.startswith(">1  kill_register $0")
    assert program.text("lifted_1").splitlines()[0].startswith("lifted_1(n, i, a): ")


def test_kernels_can_be_called_by_hand():
    import tvm

    program = bytecode.decode(straight_line())
    (call,) = [i for i in program.functions[0].instructions if i.op == "invoke_packed"]
    x, out = tvm.nd.array(np.ones(4, np.float32)), tvm.nd.empty((), "float32")
    program.kernel_functions[call.kernel](x, out)
    assert out.numpy() == pytest.approx(4 * np.tanh(np.e))


def test_constants_are_those_of_the_model():
    model = zoo.load("mlp")
    made = build.compile(model, "vm")
    program = bytecode.decode(made)
    weights = [constant for constant in program.constants if constant.bytes > 1000]
    assert sum(constant.bytes for constant in program.constants) == made.sizes["parameters"]
    assert [constant.dtype for constant in weights] == ["float32"] * len(weights)
    assert sum(c.value.nbytes for c in program.constants) == made.sizes["parameters"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float32(0.1), "float32 0.1"),
        (np.float32(-1e-9), "float32 -1e-09"),
        (np.array([1.5, -2e20], np.float32), "float32[2] [1.5, -2e+20]"),
        (np.array([[True, False]]), "bool[1, 2] [[True, False]]"),
        (np.array([123456789012]), "int64[1] [123456789012]"),
        (np.full(2, np.inf, np.float32), "float32[2] [inf, inf]"),
        (np.zeros(5, np.float32), "float32[5]"),
        (np.zeros((0, 3), np.float32), "float32[0, 3] []"),
    ],
)
def test_few_numbers_are_shown(value, text):
    import tvm

    assert bytecode.shown(tvm.nd.array(value)) == text


def test_what_a_kernel_is_called_for():
    program = bytecode.decode(any_rows())
    calls = [i for i in program.functions[0].instructions if i.op == "invoke_packed"]
    assert [call.purpose for call in calls] == [
        "shape function",
        "storage size",
        "storage size",
        "operator",
    ]
    assert [call.kernel for call in calls][1:3] == ["fused_prod", "fused_multiply"]


# --- a run against the VM ------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "options", "lengths"), DYNAMIC)
def test_results_are_the_vms_on_dynamic_models(name, options, lengths):
    made = build.compile(zoo.load(name, **options), "vm")
    program = bytecode.decode(made)
    for length in lengths:
        for seed in range(2):
            inputs = zoo.load(name, seed=seed, sample_length=length, **options).inputs
            same(program.start(**inputs).to_end(), made.run(**inputs))


@pytest.mark.parametrize("name", STATIC)
def test_results_are_the_vms_on_static_models(name):
    model = zoo.load(name)
    made = build.compile(model, "vm")
    same(start(made, **model.inputs).to_end(), made.run(**model.inputs))


def test_a_program_that_was_saved_and_loaded(tmp_path):
    made = build.compile(zoo.load("lstm", hidden=64), "vm")
    made.save(tmp_path / "lstm")
    loaded = build.load(tmp_path / "lstm")
    inputs = zoo.load("lstm").inputs
    assert str(bytecode.decode(loaded)) == str(bytecode.decode(made))
    same(start(loaded, **inputs).to_end(), made.run(**inputs))
    same(made.run(**inputs), loaded.run(**inputs))  # stepping left both as they were


def test_branch_that_is_taken():
    made = choice()
    for value in (True, False):
        x = np.array([1, 2, 3, 4], np.float32)
        run = start(made, c=value, x=x)
        events = list(run)
        (jump,) = [event for event in events if event.instruction.op == "if"]
        assert jump.branch is value
        taken = jump.instruction.then if value else jump.instruction.otherwise
        assert jump.next == ("main", taken)
        assert f"goes to {taken}" in str(jump)
        kernels = [event.kernel for event in events if event.kernel]
        assert kernels == (["fused_multiply"] if value else ["fused_subtract"])
        same(run.result, [x * 2 if value else x - 1])


def test_sequence_of_the_program_counter():
    run = start(doubled_n_times(), n=3, x=np.ones(4))
    places = [(event.function, event.pc) for event in run]
    assert run.result[0].tolist() == [8, 8, 8, 8]
    body = run.program.by_name["lifted_1"].instructions
    jump = next(pc for pc, i in enumerate(body) if i.op == "if")
    assert places.count(("lifted_1", jump)) == 4
    assert places[0] == ("main", 0)
    assert places[-1] == ("main", len(run.program.by_name["main"].instructions) - 1)
    assert len(places) == run.counters.instructions
    assert run.at is None
    assert run.finished


def test_depth_grows_with_the_turns_of_a_loop():
    """A loop is a function that calls itself: 5000 frames, far beyond Python's own limit."""
    run = start(doubled_n_times(), n=5000, x=np.zeros(4))
    deepest = 0
    while not run.finished:
        deepest = max(deepest, run.depth)
        run._advance()
    assert deepest == 5001
    assert run.result[0].tolist() == [0, 0, 0, 0]


def test_tuples_go_in_and_out():
    from tvm import relay

    pair = relay.var("pair", relay.TupleType([relay.TensorType((2,)), relay.TensorType((2,))]))
    left, right = relay.TupleGetItem(pair, 0), relay.TupleGetItem(pair, 1)
    made = compiled(relay.Tuple([left + right, relay.Tuple([left, right - left])]), pair)
    inputs = {"pair": (np.array([1, 2], np.float32), np.array([10, 20], np.float32))}
    run = start(made, **inputs)
    assert [array.tolist() for array in run.to_end()] == [[11, 22], [1, 2], [9, 18]]
    same(run.result, made.run(**inputs))


def list_module(body):
    """A list of numbers as a data type, and @total(list), which calls itself; ``body(module)``."""
    import tvm
    from tvm import relay

    module = tvm.IRModule()
    name = relay.GlobalTypeVar("numbers")
    scalar = relay.TensorType((), "float32")
    end = relay.Constructor("end", [], name)
    item = relay.Constructor("item", [scalar, name()], name)
    module[name] = relay.TypeData(name, [], [end, item])
    total = relay.GlobalVar("total")
    numbers, head, rest = relay.var("numbers", name()), relay.var("head"), relay.var("rest")
    matched = relay.PatternConstructor(item, [relay.PatternVar(head), relay.PatternVar(rest)])
    clauses = [
        relay.Clause(relay.PatternConstructor(end, []), relay.const(0.0)),
        relay.Clause(matched, head + total(rest)),
    ]
    module[total] = relay.Function([numbers], relay.Match(numbers, clauses), scalar)
    module["main"] = body(total, end, item)
    return module


def test_matching_and_functions_that_call_themselves():
    from tvm import relay

    def body(total, end, item):
        x = relay.var("x", shape=())
        return relay.Function([x], total(item(x, item(x * x, end()))))

    made = build.compile(list_module(body), "vm")
    program = bytecode.decode(made)
    assert {"invoke", "get_tag", "get_field", "alloc_data", "if", "fatal"} <= set(program.opcodes)
    run = program.start(x=3.0)
    tags = [e.wrote[e.instruction.writes] for e in run if e.instruction.op == "get_tag"]
    assert run.result[0] == 12
    # Of a tag the upper byte tells the type; each clause is tried in turn, "end" first.
    numbers = [int(re.search(r"\[(-?\d+)\]$", text)[1]) & 0xFFFFFF for text in tags]
    assert numbers == [1, 1, 1, 1, 0]
    same(run.result, made.run(x=3.0))


def test_no_clause_of_a_match_fits():
    import tvm
    from tvm import relay

    def body(total, end, item):
        x = relay.var("x", shape=())
        only_end = [relay.Clause(relay.PatternConstructor(end, []), x)]
        return relay.Function([x], relay.Match(item(x, end()), only_end, complete=False))

    made = build.compile(list_module(body), "vm", disabled_pass=["PartialEval"])
    with pytest.raises(WorkbookError, match="no clause of a match fits"):
        start(made, x=1.0).to_end()
    with pytest.raises(tvm.TVMError):
        made.run(x=1.0)


def test_kernel_of_an_empty_tensor_is_not_called():
    run = start(any_rows(), x=np.zeros((0, 4), np.float32))
    events = list(run)
    assert run.result[0].shape == (0,)
    assert run.counters.kernels == 0
    assert "fused_exp_tanh_sum" not in [event.kernel for event in events]


def test_program_without_inputs():
    made = compiled(_constant_body())
    program = bytecode.decode(made)
    assert program.functions[0].name == "main"
    assert program.functions[0].params == ()
    same(program.start().to_end(), made.run())


def _constant_body():
    from tvm import relay

    return relay.const(np.array([1.0, 2.5], np.float32))


# --- what can be seen on the way -----------------------------------------------------------------


def test_registers_and_values_on_the_way():
    run = start(straight_line(), x=np.zeros(4))
    assert run.registers == {0: "float32[4] [0, 0, 0, 0]"}
    for _ in range(4):
        run.step()
    assert run.registers[2] == "storage of 4 bytes"
    assert run.registers[4] == "float32[], not filled yet"
    assert run.next_instruction.op == "kill_register"
    with pytest.raises(WorkbookError, match=r"\$2 holds no tensor now, but a storage of 4 bytes"):
        run.value(2)
    event = run.step()
    assert event.wrote == {2: "nothing"}
    assert 2 not in run.registers
    with pytest.raises(WorkbookError, match=r"\$2 holds no tensor now, but nothing"):
        run.value(2)
    event = run.step()
    assert event.kernel == "fused_exp_tanh_sum"
    assert run.value(4) == pytest.approx(4 * np.tanh(1))
    assert str(event).endswith("# $4: float32 3.046")
    with pytest.raises(WorkbookError, match="no result yet: call to_end"):
        _ = run.result


def test_until_and_the_stack():
    run = start(doubled_n_times(), n=2, x=np.ones(4))
    event = run.until(lambda event: event.instruction.op == "alloc_data")
    assert event.depth == 3
    assert [name for name, _ in run.stack] == ["main", "lifted_1", "lifted_1", "lifted_1"]
    assert run.until(lambda event: False) is None
    assert run.finished
    assert run.stack == []


def test_allocated_and_freed_bytes_add_up():
    run = start(any_rows(), x=np.ones((5, 4), np.float32))
    events = list(run)
    assert sum(event.allocated for event in events) == run.counters.allocated_bytes
    live = 0
    for event in events:
        live += event.allocated - event.freed
        assert event.live_bytes == live
    assert live == run.live_bytes == 5 * 4  # the result
    assert max(event.live_bytes for event in events) == run.counters.peak_bytes


# --- counters ------------------------------------------------------------------------------------


@pytest.mark.parametrize("turns", [0, 1, 10])
def test_counters_of_a_loop_by_hand(turns):
    """Each turn: less, add, multiply. Alive until it returns: the flag, i + 1 and a * 2.

    The scalar constants are inside of the kernels.
    """
    counted = counters.count(doubled_n_times(), n=turns, x=np.ones(4))
    assert counted.kernels == counted.allocations == 3 * turns + 1
    assert counted.allocated_bytes == counted.peak_bytes == 21 * turns + 1
    assert counted.pool_bytes == 4096 * counted.allocations
    assert counted.moved_bytes == (4 + 4 + 1) * (turns + 1) + (4 + 4 + 16 + 16) * turns
    assert counted.dispatches == counted.kernels


def test_counters_of_unknown_shapes_by_hand():
    counted = counters.count(any_rows(), x=np.ones((5, 4), np.float32))
    assert (counted.kernels, counted.shape_functions, counted.size_kernels) == (1, 1, 2)
    assert counted.instructions == 30
    assert counted.dispatches == 4
    # the result's shape, its elements, its bytes, and the result
    assert counted.allocated_bytes == 8 + 8 + 8 + 5 * 4


@pytest.mark.parametrize("name", STATIC)
def test_graph_and_vm_agree_where_both_know(name):
    model = zoo.load(name)
    graph = counters.count(build.compile(model, "graph"))
    vm = counters.count(build.compile(model, "vm"), **model.inputs)
    assert (graph.kernels, graph.moved_bytes) == (vm.kernels, vm.moved_bytes)
    assert graph.peak_bytes == vm.peak_bytes
    assert graph.allocations == 0 < vm.allocations
    assert graph.pool_bytes == storage.plan(build.compile(model, "graph")).planned_bytes
    assert graph.moved_bytes == fusion.ledger(build.compile(model, "graph")).total


def test_aot_hides_its_memory():
    model = zoo.load("mlp")
    made = build.compile(model, "aot")
    counted = counters.count(made)
    assert counted.kernels == len(made.kernels)
    assert counted.peak_bytes is counted.allocations is counted.moved_bytes is None
    lines = str(counted).splitlines()
    assert lines[0].split() == ["aot"]
    assert [line.split()[-1] for line in lines[1:]] == ["5", "0", "0", "0", *"?????"]


def test_table_of_counters():
    model = zoo.load("mlp")
    made = {name: build.compile(model, name) for name in ("graph", "vm")}
    both = {name: counters.count(item, **model.inputs) for name, item in made.items()}
    lines = counters.table(both).splitlines()
    assert lines[0].split() == ["graph", "vm"]
    assert len(lines) == 1 + len(counters.LABELS)
    assert len(set(map(len, lines))) == 1


def test_pools_are_what_the_process_takes():
    """The simulated allocator against the memory that the operating system sees grow."""
    build.compile(zoo.load("lstm", hidden=64), "vm")  # so that the process below has it at hand
    code = (
        "import numpy as np, psutil\n"
        "from helpers import build, counters, use_tvm, zoo\n"
        "use_tvm('relay', quiet=True)\n"
        "made = build.compile(zoo.load('lstm', hidden=64), 'vm')\n"
        "x = np.zeros((2000, 1, 64), np.float32)\n"
        "made.run(x=x[:9])\n"
        "before = psutil.Process().memory_info().rss\n"
        "made.run(x=x)\n"
        "grown = psutil.Process().memory_info().rss - before\n"
        "print(grown / counters.count(made, x=x).pool_bytes)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert 0.7 < float(run.stdout) < 1.6


# --- errors --------------------------------------------------------------------------------------


def test_what_has_no_bytecode():
    with pytest.raises(
        WorkbookError, match="compiled for 'graph': compile it with executor=\"vm\""
    ):
        bytecode.decode(build.compile("mlp", "graph"))
    with pytest.raises(WorkbookError, match=r"decode takes a compiled model, not Model: build"):
        bytecode.decode(zoo.load("mlp"))
    with pytest.raises(WorkbookError, match="Counters are those of a compiled model, not of int"):
        counters.count(3)


def test_wrong_requests_are_answered_in_a_sentence():
    program = bytecode.decode(straight_line())
    with pytest.raises(WorkbookError, match="inputs are missing: x"):
        program.start()
    with pytest.raises(WorkbookError, match="wrong shape"):
        program.start(x=np.zeros(5))
    with pytest.raises(WorkbookError, match="no function 'f'; it has main"):
        program.text("f")
    run = program.start(x=np.zeros(4))
    with pytest.raises(WorkbookError, match="has not ended after 3 instructions"):
        run.to_end(3)
    with pytest.raises(WorkbookError, match="limit is a whole number"):
        run.to_end(0)
    with pytest.raises(WorkbookError, match="register is a whole number"):
        run.value(-1)
    run.to_end()
    with pytest.raises(WorkbookError, match=r"has returned: start\(\) begins a new run"):
        run.step()
    with pytest.raises(WorkbookError, match="holds no tensor now, but nothing"):
        run.value(99)
