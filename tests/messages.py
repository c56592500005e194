"""Every text with which the source tells a user that something is wrong, found by reading it.

A message is what is given to the constructor of an exception that reaches users, to a point of
``boinc_gahp check`` that failed or warns, to a hold, to a finding about a template or to a parser's
``error``, and what is printed to stderr. What varies is ``…``. Names are followed to what they
stand for as long as that is a text in the source: a variable of the function, a parameter (to all
that callers give), a constant, what a function returns, the values of a table. So a message that is
put together in several places is seen whole.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(__file__).parent.parent / "boinc_gahp"

#: What stands for a part that varies.
VARIES = "…"

#: Exceptions that users see, with all classes below them.
ROOTS = {
    "GahpError",
    # Shown as the reason why a file cannot be used.
    "NotOurs",
    "UsageError",
    "ArgumentTypeError",
    # Of a local project, shown by its commands as they are.
    "ProjectDirectoryError",
    "PluginError",
    "DatabaseError",
    "UnknownHost",
    # Shown behind the setting, file or attribute that they are about.
    "_Expected",
    # Shown behind the project's host.
    "RedirectRefused",
}

#: Other calls that make a text for users, and which of their arguments it is.
MAKERS = {
    "Hold": 0,
    "Finding": 1,  # cli/monitoring.py: what a person should look at
    "Problem": 1,
    "_Rule": 1,
    "kind": 0,  # rpc/judge.py: one of the classes of what a project refuses
}

#: ValueErrors of these are shown behind the setting or attribute that they are about.
VALUES = ("config/reading.py", "config/places.py", "blah/arguments.py", "blah/remaps.py")

#: Functions that return what they are given, made fit to be shown.
SHOWERS = {"redact", "shorten", "printable", "one_line"}

#: Where points of ``check`` are made, and the functions that make those that are no good.
POINTS = (
    "cli/check.py",
    "cli/condor_points.py",
    "cli/points.py",
    "cli/project_points.py",
    "cli/route_points.py",
)
BAD_POINTS = {"failed", "warning"}

#: More alternatives than this for one message are not told apart.
_MOST = 100
_DEPTH = 6

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Place(NamedTuple):
    """Where a message is made."""

    file: str
    function: str
    text: str


@dataclass(frozen=True)
class Context:
    """What names mean at a place."""

    file: str
    function: _Function | None


class Source:
    """The program's modules, parsed, with an index of what is called what."""

    def __init__(self, directory: Path = SOURCE) -> None:
        self.trees = {
            path.relative_to(directory).as_posix(): ast.parse(path.read_text("utf-8"))
            for path in sorted(directory.rglob("*.py"))
        }
        self.functions: dict[str, list[tuple[str, _Function]]] = defaultdict(list)
        self.constants: dict[tuple[str, str], ast.expr] = {}
        self.calls: dict[str, list[tuple[Context, ast.Call]]] = defaultdict(list)
        self.classes: dict[str, set[str]] = defaultdict(set)
        #: By file: the names that it imports, with the files that they come from.
        self.imported: dict[str, dict[str, str]] = {}
        for file, tree in self.trees.items():
            self._index(file, tree)
        self.visible = self._visible()
        #: Variables that are being followed.
        self._followed: set[tuple[str, int, str]] = set()

    def _index(self, file: str, tree: ast.Module) -> None:
        self.imported[file] = {}
        for statement in tree.body:
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                self.constants[file, statement.targets[0].id] = statement.value
            if isinstance(statement, ast.AnnAssign) and statement.value is not None:
                self.constants[file, _last_name(statement.target)] = statement.value
        self._visit(file, tree, None)

    def _visit(self, file: str, node: ast.AST, function: _Function | None) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, _Function):
                self.functions[child.name].append((file, child))
                self._visit(file, child, child)
                continue
            if isinstance(child, ast.ImportFrom):
                origin = _file_of(child.module or "")
                self.imported[file] |= {each.asname or each.name: origin for each in child.names}
            if isinstance(child, ast.ClassDef):
                self.classes[child.name] |= {_last_name(base) for base in child.bases}
            if isinstance(child, ast.Call):
                self.calls[_last_name(child.func)].append((Context(file, function), child))
            self._visit(file, child, function)

    def _visible(self) -> set[str]:
        visible = set(ROOTS)
        while True:
            more = {name for name, bases in self.classes.items() if bases & visible} - visible
            if not more:
                return visible
            visible |= more

    # -- where messages are made

    def made(self) -> Iterator[tuple[Context, ast.Call, ast.expr]]:
        """Yield each call that makes a message, and the expression that is the message."""
        for name, calls in self.calls.items():
            for context, call in calls:
                index = self._message_index(name, context.file, call)
                if index is None:
                    continue
                keyword = next((k.value for k in call.keywords if k.arg == "message"), None)
                given = call.args[index] if index < len(call.args) else keyword
                if given is not None and not isinstance(given, ast.Starred):
                    yield context, call, given

    def _message_index(self, name: str, file: str, call: ast.Call) -> int | None:
        of = call.func.value if isinstance(call.func, ast.Attribute) else None
        if name == "TemplateError":
            return None  # its problems are messages
        if name in MAKERS and (name != "kind" or file == "rpc/judge.py"):
            return MAKERS[name]
        is_one = (
            name in self.visible
            or (name == "ValueError" and file in VALUES)
            or (name in BAD_POINTS and file in POINTS and of is None)
            or (name == "error" and isinstance(of, ast.Name) and _is_parser(of.id, file))
            or (name == "print" and any(_is_stderr(each) for each in call.keywords))
            # Of settings: what was left out, shown by check.
            or (name == "append" and file.startswith("config/") and _last_name(of) == "problems")
        )
        return 0 if is_one else None

    @cached_property
    def _told(self) -> list[tuple[Place, list[str]]]:
        return [
            (self._place(context, call), self.texts(given, context))
            for context, call, given in self.made()
        ]

    def messages(self) -> dict[str, list[Place]]:
        """Return all messages, and where each is made."""
        found: dict[str, list[Place]] = defaultdict(list)
        for place, texts in self._told:
            for text in texts:
                if not only_varies(text):
                    found[text].append(place)
        return dict(found)

    def passed_on(self) -> list[Place]:
        """Return where a message is made of nothing that the source tells."""
        return sorted(place for place, texts in self._told if all(map(only_varies, texts)))

    def _place(self, context: Context, node: ast.expr) -> Place:
        function = "" if context.function is None else context.function.name
        return Place(context.file, function, ast.unparse(node))

    # -- what an expression stands for

    def texts(self, node: ast.expr, context: Context) -> list[str]:
        """Return the texts that ``node`` may be, each normalised."""
        return list(dict.fromkeys(map(normal, self._resolve(node, context, _DEPTH))))

    def _resolve(self, node: ast.expr | None, context: Context, depth: int) -> list[str]:
        if node is None or depth == 0:
            return [VARIES]
        match node:
            case ast.Constant():
                found = [_of_constant(node, context.file)]
            case ast.JoinedStr():
                found = _joined([self._part(value, context, depth) for value in node.values])
            case ast.BinOp(op=ast.Add()):
                sides = (node.left, node.right)
                found = _joined([self._resolve(side, context, depth) for side in sides])
            case ast.IfExp():
                found = self._either([node.body, node.orelse], context, depth)
            case ast.BoolOp():
                found = self._either(node.values, context, depth)
            case ast.Name():
                found = self._named(node.id, context, depth)
            case ast.Subscript():
                found = self._of_table(node.value, context, depth)
            case ast.Call():
                found = self._called(node, context, depth)
            case ast.Attribute():
                found = self._property(node, context, depth)
            case _:
                found = [VARIES]
        return found

    def _part(self, value: ast.expr, context: Context, depth: int) -> list[str]:
        if not isinstance(value, ast.FormattedValue):
            return self._resolve(value, context, depth)
        if value.conversion != -1 or value.format_spec is not None:
            return [VARIES]
        found = self._resolve(value.value, context, depth)
        # A plural's s, or an article: not worth two messages.
        short = any(len(each) < 8 for each in found if each != VARIES)
        # What is said whole, shown by another function.
        told = isinstance(value.value, ast.Call) and _last_name(value.value.func) in SHOWERS
        return [VARIES] if short and len(found) > 1 and not told else found

    def _either(self, nodes: list[ast.expr], context: Context, depth: int) -> list[str]:
        return [text for node in nodes for text in self._resolve(node, context, depth)]

    def _named(self, name: str, context: Context, depth: int) -> list[str]:
        function = context.function
        if function is not None:
            given = _assigned(function, name)
            here = (context.file, function.lineno, name)
            # What is made of itself had another value before: what the caller gave.
            if given and here not in self._followed:
                self._followed.add(here)
                try:
                    return self._either(given, context, depth - 1)
                finally:
                    self._followed.remove(here)
            if name in _parameters(function):
                return self._given_by_callers(function, name, context, depth - 1)
        constant = self.constants.get((context.file, name))
        origin = self.imported[context.file].get(name)
        if constant is None and origin is not None:
            constant = self.constants.get((origin, name))
        return self._resolve(constant, Context(origin or context.file, None), depth - 1)

    def _given_by_callers(
        self, function: _Function, name: str, context: Context, depth: int
    ) -> list[str]:
        position = _parameters(function).index(name)
        found: list[str] = []
        callers = self.calls.get(function.name, [])
        if function.name == "__init__" or len(self.functions.get(function.name, [])) > 1:
            # Several are called so: this one is called from its file, or from its room.
            room = context.file.rpartition("/")[0] + "/"
            near = context.file if function.name.startswith("_") else room
            callers = [each for each in callers if each[0].file.startswith(near)]
        for where, call in callers:
            if where.function is function:
                continue
            keyword = next((k.value for k in call.keywords if k.arg == name), None)
            at = call.args[position] if position < len(call.args) else keyword
            found += self._resolve(at, where, depth)
        return found or [VARIES]

    def _of_table(self, node: ast.expr, context: Context, depth: int) -> list[str]:
        if isinstance(node, ast.Name):
            table = self.constants.get((context.file, node.id))
            if isinstance(table, ast.Dict):
                return self._either(table.values, Context(context.file, None), depth - 1)
        return [VARIES]

    def _called(self, node: ast.Call, context: Context, depth: int) -> list[str]:
        name = _last_name(node.func)
        if name in SHOWERS and node.args:
            return self._resolve(node.args[0], context, depth)
        known = self.functions.get(name, [])
        origin = self.imported[context.file].get(name)
        own = [each for each in known if each[0] in (context.file, origin)]
        known = own or known
        if len(known) != 1:
            return [VARIES]
        file, function = known[0]
        return self._returned(Context(file, function), depth - 1)

    def _returned(self, context: Context, depth: int) -> list[str]:
        assert context.function is not None
        values = [each.value for each in _inside(context.function) if isinstance(each, ast.Return)]
        return [text for value in values for text in self._resolve(value, context, depth)]

    def _property(self, node: ast.Attribute, context: Context, depth: int) -> list[str]:
        of = node.value
        if isinstance(of, ast.Name) and of.id == "self":
            own = [each for each in self.functions.get(node.attr, []) if each[0] == context.file]
            if len(own) == 1:
                return self._returned(Context(*own[0]), depth - 1)
        return [VARIES]


def normal(text: str) -> str:
    """Return ``text`` on one line, with one ``…`` where several meet, without who says it."""
    whole = re.sub(rf"{VARIES}+", VARIES, " ".join(text.split()))
    return whole.removeprefix("boinc_gahp: ")


def _is_parser(name: str, file: str) -> bool:
    return name.endswith("parser") or (name == "self" and file == "cli/parsing.py")


def _is_stderr(keyword: ast.keyword) -> bool:
    return keyword.arg == "file" and ast.unparse(keyword.value) == "sys.stderr"


def only_varies(text: str) -> bool:
    """Tell whether nothing of a message is known but a short word or less."""
    return len(re.findall(r"[A-Za-z]", text)) < 7


def _of_constant(node: ast.Constant, file: str) -> str:
    if not isinstance(node.value, str):
        return VARIES
    # The rules of the border are formats.
    return re.sub(r"\{\w+\}", VARIES, node.value) if file == "rpc/border.py" else node.value


def _joined(parts: list[list[str]]) -> list[str]:
    """Return all ways to put ``parts`` together; too many are one with gaps."""
    count = 1
    kept = []
    for part in parts:
        different = list(dict.fromkeys(part))
        count *= len(different)
        kept.append(different if count <= _MOST else [VARIES])
        count = min(count, _MOST)
    return ["".join(each) for each in product(*kept)]


def _file_of(module: str) -> str:
    return module.removeprefix("boinc_gahp.").replace(".", "/") + ".py"


def _last_name(node: ast.expr | None) -> str:
    if isinstance(node, ast.Subscript):
        return _last_name(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _parameters(function: _Function) -> list[str]:
    arguments = function.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    if names[:1] in (["self"], ["cls"]):
        names = names[1:]
    return names + [each.arg for each in arguments.kwonlyargs]


def _inside(function: _Function) -> Iterator[ast.AST]:
    """Yield the nodes of a function, but not of the functions in it."""
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop(0)
        yield node
        if not isinstance(node, _Function | ast.Lambda | ast.ClassDef):
            todo.extend(ast.iter_child_nodes(node))


def _assigned(function: _Function, name: str) -> list[ast.expr]:
    """Return what a function gives to one of its variables by plain assignments."""
    return _assignments(function).get(name, [])


@cache
def _assignments(function: _Function) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = defaultdict(list)
    for node in _inside(function):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    found[target.id].append(node.value)
    return found
