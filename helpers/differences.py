"""What a pass changed: the difference of two programs, as text and as marks on their graphs.

A pass makes a new program, in which also what it left alone has other numbers in Relay's text and
other positions in the graph. So the parts of the two programs are matched first.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from helpers import ir


@dataclass(frozen=True)
class _Items:
    """The lines or nodes of a program in order: three descriptions of each, ever less exact, and
    the positions of those that define its arguments (``None``: not in the list)."""

    exact: Sequence[Any]
    loose: Sequence[Any]
    operator: Sequence[Any]
    arguments: Sequence[Sequence[int | None]]


def _matched(a: _Items, b: _Items) -> dict[int, int]:
    """Which item of ``b`` is which item of ``a``: {position in b: position in a}.

    First, in order, those that are described exactly alike; between those the ones that are loosely
    alike; then what matched items take as their arguments, where the operator is the same, and what
    takes matched items as its first argument; at last what is left, by operator and in order.
    """
    pairs: list[tuple[int, int]] = []
    for old, new in ((a.exact, b.exact), (a.loose, b.loose)):
        fixed = [(-1, -1), *pairs, (len(old), len(new))]
        for (i, j), (k, m) in pairwise(fixed):
            pairs += _in_order(range(i + 1, k), range(j + 1, m), old, new)
        pairs.sort()
    found = {j: i for i, j in pairs}
    _follow_arguments(a, b, found)
    _follow_results(a, b, found)
    taken = set(found.values())
    rest_a = [i for i in range(len(a.exact)) if i not in taken]
    rest_b = [j for j in range(len(b.exact)) if j not in found]
    found.update((j, i) for i, j in _in_order(rest_a, rest_b, a.operator, b.operator))
    return found


def _in_order(
    here: Sequence[int], there: Sequence[int], old: Sequence[Any], new: Sequence[Any]
) -> Iterator[tuple[int, int]]:
    """Pairs of positions whose items are equal, in order, as ``difflib`` finds them."""
    parts = [old[i] for i in here], [new[j] for j in there]
    for block in difflib.SequenceMatcher(None, *parts, autojunk=False).get_matching_blocks():
        for n in range(block.size):
            yield here[block.a + n], there[block.b + n]


def _follow_arguments(a: _Items, b: _Items, found: dict[int, int]) -> None:
    taken = set(found.values())
    waiting = list(found.items())
    while waiting:
        j, i = waiting.pop()
        for k, m in zip(a.arguments[i], b.arguments[j], strict=False):
            if k is None or m is None or k in taken or m in found:
                continue
            if a.operator[k] == b.operator[m]:
                found[m] = k
                taken.add(k)
                waiting.append((m, k))


def _follow_results(a: _Items, b: _Items, found: dict[int, int]) -> None:
    taken = set(found.values())
    users: dict[Any, list[int]] = {}  # (operator, its first argument) -> unmatched items of a
    for i, arguments in enumerate(a.arguments):
        if i not in taken and arguments:
            users.setdefault((a.operator[i], arguments[0]), []).append(i)
    for j, arguments in enumerate(b.arguments):
        first = found.get(arguments[0]) if arguments and arguments[0] is not None else None
        if j not in found and first is not None and users.get((b.operator[j], first)):
            found[j] = users[b.operator[j], first].pop(0)


def _nodes(graph: ir.Graph) -> _Items:
    def loose(node: ir.Node) -> tuple[str, ...]:
        attrs = sorted(node.attrs.items(), key=lambda item: item[0])
        return node.kind, node.op, node.name if node.kind == "input" else "", repr(attrs)

    return _Items(
        [(*loose(node), node.type) for node in graph.nodes],
        [loose(node) for node in graph.nodes],
        [(node.kind, node.op) for node in graph.nodes],
        [node.inputs for node in graph.nodes],
    )


@dataclass(frozen=True)
class Pictures:
    """The graphs before and after a pass, and a word for each node that differs.

    "removed" and "new" nodes are in one of the graphs only; a "changed" node has other attributes
    or another type in the other one. ``is_part`` says that the pictures show a part of the graphs.
    """

    before: ir.Picture
    after: ir.Picture
    marks_before: dict[int, str]
    marks_after: dict[int, str]
    is_part: bool

    @classmethod
    def of(cls, before: Any, after: Any, max_boxes: int, whole: bool) -> Pictures:
        """Of two modules, in at most about ``max_boxes`` boxes each.

        Where that is too few, the pictures show the part with the first change; or all of the
        graphs if ``whole``, folded as in :func:`helpers.ir.picture`.
        """
        old, new = ir.picture(before, fold=False), ir.picture(after, fold=False)
        a, b = _nodes(old.graph), _nodes(new.graph)
        partner = _matched(a, b)
        kept = set(partner.values())
        other = {j: i for j, i in partner.items() if a.exact[i] != b.exact[j]}
        marks_before = {k: "removed" for k in range(len(a.exact)) if k not in kept}
        marks_before |= dict.fromkeys(other.values(), "changed")
        marks_after = {k: "new" for k in range(len(b.exact)) if k not in partner}
        marks_after |= dict.fromkeys(other, "changed")
        is_part = not whole and max(len(old.boxes), len(new.boxes)) > max_boxes
        if is_part:
            old, new = _first_change(old, new, partner, marks_before, marks_after, max_boxes)
        elif whole:
            old = ir.picture(before, max_boxes=max_boxes)
            new = ir.picture(after, max_boxes=max_boxes)
        return cls(old, new, marks_before, marks_after, is_part)


def _first_change(
    old: ir.Picture,
    new: ir.Picture,
    partner: Mapping[int, int],
    marks_before: Collection[int],
    marks_after: Collection[int],
    max_boxes: int,
) -> tuple[ir.Picture, ir.Picture]:
    """As many boxes in a row, from the one before the first change on, as fit both pictures."""
    here = [box.nodes[0] for box in old.boxes]
    there = [box.nodes[0] for box in new.boxes]
    place = {node: k for k, node in enumerate(here)}
    start, last = len(here), 0
    for node in there:
        last = place.get(partner.get(node, -1), last)
        if node in marks_after:
            start = min(start, last)
            break
    start = min([start, *(k for k, node in enumerate(here) if node in marks_before)])
    start = 0 if start == len(here) else max(0, start - 1)
    best = _cut(old, range(start, start + 1)), _cut(new, ())
    for stop in range(start + 1, min(start + max_boxes, len(here)) + 1):
        window = set(here[start:stop])
        found = [k for k, node in enumerate(there) if partner.get(node) in window]
        found = _with_unmatched(new, found, {k for k, n in enumerate(there) if n not in partner})
        if len(found) > max_boxes:
            break
        best = _cut(old, range(start, stop)), _cut(new, found)
    return best


def _with_unmatched(
    picture: ir.Picture, positions: Sequence[int], unmatched: Collection[int]
) -> list[int]:
    """The positions, and the unmatched boxes that are joined to them by unmatched boxes."""
    beside: dict[int, set[int]] = {}
    for one, other in picture.arrows:
        beside.setdefault(one, set()).add(other)
        beside.setdefault(other, set()).add(one)
    found, waiting = set(positions), list(positions)
    while waiting:
        for k in beside.get(waiting.pop(), ()):
            if k in unmatched and k not in found:
                found.add(k)
                waiting.append(k)
    return sorted(found)


def _cut(picture: ir.Picture, positions: Sequence[int]) -> ir.Picture:
    """The picture of some of the boxes."""
    place = {old: new for new, old in enumerate(positions)}
    return ir.Picture(
        picture.graph,
        [picture.boxes[k] for k in positions],
        [(place[a], place[b]) for a, b in picture.arrows if a in place and b in place],
        {place[k]: group for k, group in picture.groups.items() if k in place},
        "part",
    )


# --- the difference of two programs as text -------------------------------------------------------

_NAME = re.compile(r"%[A-Za-z_0-9]+")
_WIDTH = 96


def text(before: Any, after: Any, context: int = 2) -> str:
    """The unified difference of the texts of two modules; ``""`` when they are alike.

    A value of ``after`` has the name that the same value has in ``before``; a value that ``before``
    does not have gets a name that is free there. ``context`` is the number of unchanged lines
    around a change.
    """
    return "\n".join(_difference(before, after, context))


def _difference(before: Any, after: Any, context: int) -> Iterator[str]:
    old, new = _texts(before), _texts(after)
    for name in dict.fromkeys([*old, *new]):
        a, b = old.get(name, ([], [])), new.get(name, ([], []))
        renamed = _renamed(a[0], b[0], _matched(_lines(*a), _lines(*b)))
        where = "" if len(old) == len(new) == 1 else f" {name}"
        lines = difflib.unified_diff(a[0], renamed, n=context, lineterm="")
        for k, line in enumerate(lines):
            if k < 2:
                yield f"{line.strip()} {('before', 'after')[k]}{where}"
            elif line.startswith("@@"):
                yield line
            else:
                yield from (line[:1] + part for part in ir.wrap(line[1:], _WIDTH))


def named(before: Any, after: Any) -> tuple[dict[int, str], dict[int, str]]:
    """The name that :func:`text` gives to a vertex of each graph, by the vertex's index.

    For the main functions of two modules. The result of a function has no name; what lies in a
    fused function or an inner scope is left out.
    """
    old, new = _texts(before)["@main"], _texts(after)["@main"]
    renamed = _renamed(old[0], new[0], _matched(_lines(*old), _lines(*new)))
    return _names(ir.graph(before), old[0]), _names(ir.graph(after), renamed)


def _names(graph: ir.Graph, lines: Sequence[str]) -> dict[int, str]:
    """From the result on, the names in a line are those of the vertex's arguments, in order."""
    bound = {found.group(1): line for line in lines if (found := _BOUND.match(line.strip()))}
    names: dict[int, str] = {}
    result = next(line for line in reversed(lines) if line.strip() != "}")
    waiting = [(result, graph.output)]
    while waiting:
        line, index = waiting.pop()
        node = graph.nodes[index]
        sources = [k for k in node.inputs if graph.nodes[k].kind != "constant"]
        if line is result and _FIELD.fullmatch(_bare(line)):
            sources = [index]
        elif node.group or (node.op and _callee(line) != node.op):
            continue
        for name, source in zip(_NAME.findall(_bare(line)), sources, strict=False):
            while graph.nodes[source].kind == "tuple_get":
                source = graph.nodes[source].inputs[0]
            while field := _FIELD.fullmatch(_bare(bound.get(name, ""))):
                name = field.group(1)
            if name in bound and source not in names and not graph.nodes[source].group:
                names[source] = name
                waiting.append((bound[name], source))
    return names


def _texts(module: Any) -> dict[str, tuple[list[str], list[str]]]:
    """(lines, the same lines with types) of each Relay function, by its name."""
    plain, typed = ({}, {})  # type: dict[str, list[str]], dict[str, list[str]]
    for types, found in ((False, plain), (True, typed)):
        for part in ir.text(module, types=types, width=10**6).split("\n\ndef @"):
            name = re.split(r"\W", part.removeprefix("def @"), maxsplit=1)[0]
            found[f"@{name}"] = part.splitlines()
    return {name: (plain[name], typed[name]) for name in plain}


def _lines(plain: Sequence[str], typed: Sequence[str]) -> _Items:
    if len(plain) != len(typed):
        typed = plain
    where = {name: k for k, line in enumerate(plain) for name in _binds(line)}
    return _Items(
        [_shape(line) for line in typed],
        [_shape(line) for line in plain],
        [_callee(line) for line in plain],
        [[where.get(name) for name in _NAME.findall(_bare(line))] for line in plain],
    )


_BOUND = re.compile(r"^(?:let )?(%\w+)(?: {[^}]*})?(?:: .*?)? = ")
_FIELD = re.compile(r"(%\w+)(?:\.\d+)?")
_PARAMETER = re.compile(r"(%\w+)(?: {[^}]*})?: ")


def _bare(line: str) -> str:
    """A line without the name that it binds its value to."""
    return _BOUND.sub("", line.strip()).rstrip(";")


def _shape(line: str) -> str:
    return _NAME.sub("%", _bare(line))


def _callee(line: str) -> str:
    return _shape(line).split("(")[0]


def _binds(line: str) -> list[str]:
    """The names that a line defines: the value's, and a function's parameters."""
    bound = _BOUND.match(line.strip())
    names = [bound.group(1)] if bound else []
    return names + _PARAMETER.findall(_bare(line))


def _renamed(a: Sequence[str], b: Sequence[str], matched: Mapping[int, int]) -> list[str]:
    """The lines of ``b``, with the names that matched lines give to their values in ``a``."""
    names: dict[str, str] = {}
    for j, i in matched.items():
        old, new = _binds(a[i]), _binds(b[j])
        if len(old) == len(new):
            names.update(zip(new, old, strict=True))
    used = set(names.values()) | {name for line in a for name in _NAME.findall(line)}
    numbers = (int(name[1:]) for name in used if name[1:].isdigit())
    fresh = max(numbers, default=-1)
    for name in dict.fromkeys(name for line in b for name in _NAME.findall(line)):
        if name in names:
            continue
        own, number = name, 0
        if _GENERATED.fullmatch(name):
            fresh += 1
            own = f"%{fresh}"
        while own in used:
            number += 1
            own = f"{name}_{number}"
        used.add(own)
        names[name] = own
    return [_NAME.sub(lambda found: names[found.group()], line) for line in b]


# Numbers are the printer's; x_ and a number is what ToANormalForm calls a value, counting on from
# whatever was compiled before.
_GENERATED = re.compile(r"%(x_)?\d+")
