"""What is done with each explorer, and what it must say then, known from elsewhere.

A program of three elementwise operators is one kernel of 8 kB, by hand. A walk must end where TVM's
own pass ends, a plan made as TVM plans must take TVM's bytes.
"""

import re

from controls import Explorer, Move, drag, enter, keys, press

from helpers.widgets import layout_explorer


def exactly(words: str) -> str:
    return "^" + re.escape("".join(words.splitlines())) + "$"


def in_layout(channels: int, layout: str, *, hidden: bool, guess: int = 0) -> str:
    dims = {**layout_explorer.DIMS, "C": channels}
    state = layout_explorer.State(dims, layout, "C", layout_explorer.BLOCK, layout_explorer.ELEMENT)
    return exactly(layout_explorer.words(state, hidden=hidden, guess=guess))


def walk(word: str, tvms_pass: str) -> tuple[Move, ...]:
    return (
        Move(keys("Step:", "ArrowRight"), "^Step 1 of"),
        Move(keys("Step:", "ArrowRight", "ArrowRight"), f"^Step 3 of .*{word} so far: v"),
        Move(
            keys("Step:", "End"), rf"^What is left: (.+)\. Gone: .* TVM's {tvms_pass} leaves \1\.$"
        ),
        Move(drag("Step:", -600), "^[0-9]+ vertices will be visited"),
        Move(keys("Program:", "ArrowDown"), "^[0-9]+ vertices will be visited"),
        # The slider's End key still means the other program's last step; its end is where it is.
        Move(drag("Step:", 600), rf"^What is left: (.+)\. Gone: .* TVM's {tvms_pass} leaves \1\.$"),
    )


CHOICE = "N, requests"
WEIGHT = "λ, weight of the time"
GUESS = "Your guess of the cache lines (0: none yet)"

MOVES = {
    "02": (
        "pass_microscope.explorer(",
        (
            # The static form says the same of this pass.
            Move(keys("Pass:", "ArrowRight"), "^FoldConstant, level 2: operators 16 to 7;"),
            Move(keys("Pass:", "End"), "^LabelOps, level 1: "),
            Move(press("only passes that changed the program"), r"^\w+, level \d: "),
            Move(drag("Pass:", 150), r"^\w+, level \d: "),
        ),
    ),
    "03": (
        "fusion_explorer.explorer(",
        (
            Move(enter("Your guess, kernels:", "2"), "Enter both guesses", draws=False),
            Move(
                enter("kB read and written:", "8"),
                r"Kernels: 1, and you said 2\. kB: right, 8\.1 kernel, 8 kB read and written; "
                "without fusion 3, 24 kB",
            ),
            Move(keys("First operator:", "ArrowDown"), "^3 operators: .*Enter both guesses"),
            Move(
                press("show without a guess"),
                r"^1 kernel, 8\.04 kB read and written; without fusion 3, 24\.04 kB",
            ),
            Move(
                keys("Program:", "ArrowDown"),
                r"^1 kernel, 8\.04 kB read and written; without fusion 4, 36\.04 kB",
            ),
            Move(
                drag("max_depth:", -400),
                r"^4 kernels, 36\.04 kB read and written; without fusion 4, 36\.04 kB",
            ),
        ),
    ),
    "04": ("folding_steps.explorer(", walk("Constant", "FoldConstant")),
    "05": ("folding_steps.explorer(", walk("Live", "DeadCodeElimination")),
    "06": (
        "layout_explorer.explorer(",
        (
            Move(keys("C, channels", "ArrowRight"), in_layout(17, "NCHW", hidden=True)),
            # Channels are 8 elements apart: 17 of them reach over 9 lines of 16 elements.
            Move(enter(GUESS, "9"), in_layout(17, "NCHW", hidden=False, guess=9)),
            Move(keys("C, channels", "ArrowLeft"), in_layout(16, "NCHW", hidden=True)),
            Move(keys("Layout", "ArrowDown"), in_layout(16, "NHWC", hidden=True)),
            # Side by side, and beginning where a line begins.
            Move(
                press("Guess before the loop is shown"),
                "They lie in 1 of 8 cache lines",
            ),
            Move(drag("H, rows", 60), "They lie in 1 of"),
        ),
    ),
    "09": (
        "memory_planner.explorer(",
        (
            Move(press("A pool for each"), "legal, and takes more than TVM's", draws=False),
            Move(press("As TVM plans"), r"^Your plan: ([\d,]+ B) in .*TVM's plan: \1\. "),
            Move(press("Show a smallest plan"), "It is legal, and "),
            Move(press("A pool for each"), "legal, and takes more than TVM's"),
            Move(
                keys(re.compile(r"^1 \("), "ArrowUp"),
                "not legal. Tensors needed at the same time: 0 and 1 in pool A",
            ),
            Move(keys("Tensor", "ArrowRight"), "Tensor 1, "),
            Move(keys("Program", "ArrowDown"), "^[0-9]+ tensors of"),
            Move(drag("Tensor", 200), r"Tensor \d+, "),
        ),
    ),
    "10": (
        "vm_stepper.explorer(",
        (
            Move(press("Step"), "^Step 1 of "),
            Move(press("To the branch"), r"^Step \d+ of .*Next: \w+ \d+: if"),
            Move(press("Step"), r"^Step \d+ of .*Done: .*goes to"),
            Move(keys("Instructions done", "End"), "Next: nothing: main has returned"),
            Move(press("Step back"), r"Next: main \d+: ret"),
            Move(keys("Model", "ArrowDown"), "^Step 0 of"),
            Move(press("To the next kernel"), r"Next: \w+ \d+: invoke_packed"),
            Move(drag("Instructions done", 60), r"^Step [1-9]\d* of"),
        ),
    ),
    "13": (
        "chooser.explorer(",
        (
            Move(keys(WEIGHT, "End"), r"^E\* = buckets .* λ = 1 \(score 1;", draws=False),
            Move(keys(WEIGHT, "Home"), r"^E\* = padded .* λ = 0 \("),
            Move(keys(CHOICE, "End"), r"^E\* = .* N = 10,000,000, "),
            Move(drag(CHOICE, -60), r"^E\* = .* N = [\d,]+, "),
            Move(keys("Lengths", "ArrowDown"), r"^E\* = "),
            Move(keys("Model", "ArrowDown"), r"^E\* = "),
        ),
    ),
}
"""By lesson: the code that displays its explorer, and the moves."""


def open_explorer(notebook) -> tuple[Explorer, tuple[Move, ...]] | None:
    """The explorer of a lesson's page, with what is done with it; None where there is none."""
    number = notebook.file.stem.split("_")[0]
    if "notebooks/" not in notebook.path or number not in MOVES:
        return None
    source, moves = MOVES[number]
    return Explorer(notebook, source), moves
