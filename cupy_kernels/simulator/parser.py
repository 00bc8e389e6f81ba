"""PTX text to ``ptx.Module``: declarations, scopes, instructions with their source places.

Inline assembly is copied into PTX verbatim, so one kernel may hold the same label and register
names many times, each inside its own ``{ }``. Every such scope gets unique names here, so that
later stages see one flat instruction list.
"""

from __future__ import annotations

import re
from functools import lru_cache

from .faults import PtxError
from .ptx import (
    TYPE_BYTES,
    Address,
    Function,
    Imm,
    Instruction,
    Label,
    Module,
    Operand,
    Reg,
    Special,
    Symbol,
    Variable,
    Vector,
)
from .source_lines import SourceLines, read_file_table

_TOKEN = re.compile(r'"[^"]*"|[%$.\w](?:[\w$.%]|::)*|\S')
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TIGHT_BEFORE = re.compile(r" ([,;\])}|+])")
_TIGHT_AFTER = re.compile(r"([\[({@!|+-]) ")
_NUMBERED = re.compile(r"^(.*?)(\d+)$")
_SPECIALS = {
    *(f"%{name}.{axis}" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"),
    *("%laneid", "%warpid", "%nwarpid", "%smid", "%nsmid", "%gridid", "%clock", "%clock_hi"),
    *("%clock64", "%globaltimer", "%globaltimer_lo", "%dynamic_smem_size", "%total_smem_size"),
    *(f"%lanemask_{kind}" for kind in ("eq", "le", "lt", "ge", "gt")),
}
_SPACES = {"shared", "local", "const", "global", "param"}


class _Tokens:
    """The words of a PTX text with their line numbers, and a cursor.

    ``.loc``, ``.file`` and ``.section`` directives have no semicolon; each is one token.
    """

    def __init__(self, ptx: str):
        self.words: list[str] = []
        self.lines: list[int] = []
        ptx = _COMMENT.sub(lambda m: "\n" * m.group().count("\n"), ptx)
        for number, line in enumerate(ptx.split("\n"), 1):
            if "." in line and line.lstrip().startswith((".loc\t", ".loc ", ".file", ".section")):
                found = [line.strip()]
            else:
                found = _TOKEN.findall(line)
            self.words += found
            self.lines += [number] * len(found)
        self.words += ["", ""]
        self.lines += [len(self.lines) and self.lines[-1]] * 2
        self.at = 0

    @property
    def text(self) -> str:
        return self.words[self.at]

    @property
    def line(self) -> int:
        return self.lines[self.at]

    @property
    def ended(self) -> bool:
        return self.at >= len(self.words) - 2

    def take(self) -> str:
        self.at += 1
        return self.words[self.at - 1]

    def accept(self, text: str) -> bool:
        if self.words[self.at] == text:
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise PtxError(f"PTX line {self.line}: expected {text!r}, found {self.text!r}")

    def skip_braces(self) -> None:
        depth = 0
        while not self.ended:
            depth += {"{": 1, "}": -1}.get(self.take(), 0)
            if depth == 0:
                return

    def skip_statement(self) -> None:
        while not self.ended and self.take() != ";":
            pass


@lru_cache(maxsize=64)
def parse(ptx: str, source: str = "", filename: str = "kernel.cu") -> Module:
    """Parse one PTX module; raise ``PtxError`` on anything the grammar does not know.

    The result is shared between equal texts and must not be changed.
    """
    return _Parser(ptx, source, filename).module


class _Parser:
    def __init__(self, ptx: str, source: str, filename: str):
        self.tokens = _Tokens(ptx)
        self.source, self.filename = source, filename
        self.module = Module(files=read_file_table(ptx))
        self.unique = 0
        while not self.tokens.ended:
            self.top_level()

    def top_level(self) -> None:
        tokens = self.tokens
        word = tokens.text
        if word.startswith((".file", ".section")):
            tokens.take()
            if word.startswith(".section") and tokens.text == "{":
                tokens.skip_braces()
            return
        if word in (".version", ".address_size"):
            tokens.at += 2
        elif word == ".target":
            tokens.take()
            self.module.target = tokens.take()
            while tokens.accept(","):
                tokens.take()
        elif word in (".visible", ".extern", ".weak", ".common"):
            tokens.take()
        elif word in (".entry", ".func"):
            self.function()
        elif word.split(".")[1:2] and word.split(".")[1] in _SPACES:
            variable = self.variable()
            self.module.variables[variable.name] = variable
        elif word == ".alias":
            tokens.skip_statement()
        else:
            raise PtxError(f"PTX line {tokens.line}: unknown directive {word!r}")

    # ---- declarations -------------------------------------------------------------------------

    def variable(self) -> Variable:
        """``.space [.align n] .type name[n][m] [= init];`` (the ``;`` only outside parameters)."""
        tokens = self.tokens
        variable = self.declarator()
        if tokens.accept("="):
            self.initialiser(variable)
        tokens.expect(";")
        return variable

    def declarator(self) -> Variable:
        tokens = self.tokens
        words = [w for w in tokens.take().split(".") if w]
        space, align, kind, natural = words[0], 0, "", True
        words = words[1:]
        while not kind or tokens.text.startswith("."):
            word = words.pop(0) if words else tokens.take().lstrip(".")
            if word == "align":
                align = int(tokens.take())
            elif word in TYPE_BYTES:
                kind = word
            elif word not in ("ptr", "global", "shared", "const", "local", "attribute", "managed"):
                raise PtxError(f"PTX line {tokens.line}: unknown type or attribute {word!r}")
        name = tokens.take()
        count, dynamic = 1, False
        while tokens.accept("["):
            natural = False
            if tokens.accept("]"):
                dynamic, count = True, 0
                continue
            count *= int(tokens.take(), 0)
            tokens.expect("]")
        size = count * TYPE_BYTES[kind]
        if space == "param" and natural:
            align = 0  # ".ptr .align n" speaks of the pointee
        return Variable(
            name, space, size, align or TYPE_BYTES[kind], type=kind, dynamic=dynamic and size == 0
        )

    def initialiser(self, variable: Variable) -> None:
        tokens, values = self.tokens, []
        width = TYPE_BYTES[variable.type]
        depth = 0
        while tokens.text != ";":
            word = tokens.take()
            if word in "{}":
                depth += 1 if word == "{" else -1
            elif word == "-":
                values.append(-self.number(tokens.take()).value)
            elif word[0].isdigit():
                values.append(self.number(word).value)
            elif word == "generic":
                tokens.expect("(")
                variable.symbols.append((len(values) * width, tokens.take()))
                tokens.expect(")")
                values.append(0)
            elif word not in ",":
                variable.symbols.append((len(values) * width, word))
                values.append(0)
        mask = (1 << 8 * width) - 1
        data = b"".join((v & mask).to_bytes(width, "little") for v in values)
        variable.data = data.ljust(variable.size, b"\0")

    def parameter_list(self) -> list[Variable]:
        tokens, params = self.tokens, []
        tokens.expect("(")
        while not tokens.accept(")"):
            params.append(self.declarator())
            tokens.accept(",")
        return params

    def function(self) -> None:
        tokens = self.tokens
        is_entry = tokens.take() == ".entry"
        returns = self.parameter_list() if tokens.text == "(" else []
        function = Function(tokens.take(), is_entry, returns=returns)
        if tokens.text == "(":
            function.params = self.parameter_list()
        while tokens.text not in ("{", ";"):
            self.performance_directive(function)
        self.module.functions.setdefault(function.name, function)
        if tokens.accept(";"):
            return
        function.has_body = True
        self.module.functions[function.name] = function
        _Body(self, function).read()

    def performance_directive(self, function: Function) -> None:
        tokens = self.tokens
        word = tokens.take()
        numbers = []
        while tokens.text.isdigit():
            numbers.append(int(tokens.take()))
            tokens.accept(",")
        if word == ".maxntid":
            function.max_threads = _product(numbers)
        elif word == ".reqntid":
            function.required_threads = tuple((*numbers, 1, 1, 1)[:3])
            function.max_threads = _product(numbers)
        elif word not in (".minnctapersm", ".maxnreg", ".noreturn", ".pragma"):
            raise PtxError(f"PTX line {tokens.line}: unknown function directive {word!r}")
        elif word == ".pragma":
            tokens.skip_statement()

    def number(self, word: str) -> Imm:
        lower = word.lower()
        try:
            if lower.startswith("0f"):
                return Imm(int(word[2:], 16), "f32")
            if lower.startswith("0d"):
                return Imm(int(word[2:], 16), "f64")
            return Imm(int(lower.rstrip("u"), 0))
        except ValueError:
            raise PtxError(f"PTX line {self.tokens.line}: bad number {word!r}") from None


class _Body:
    """Reads one function body into ``function.body``."""

    def __init__(self, parser: _Parser, function: Function):
        self.parser, self.tokens, self.function = parser, parser.tokens, function
        self.lines = SourceLines(parser.module.files, parser.source, parser.filename)
        self.ranges: dict[str, str] = {}  # "%r" -> "b32"
        self.scopes: list[dict[str, str]] = [{}]
        self.plain: dict[str, Reg] = {}  # numbered registers already seen

    def read(self) -> None:
        tokens = self.tokens
        tokens.expect("{")
        depth = 1
        while depth:
            if tokens.text.startswith((".loc\t", ".loc ")):
                self.lines.follow(tokens.take())
            elif tokens.accept("{"):
                self.open_scope()
                depth += 1
            elif tokens.accept("}"):
                self.scopes.pop()
                depth -= 1
            elif tokens.ended:
                raise PtxError(f"PTX line {tokens.line}: the text ends inside {self.function.name}")
            elif not tokens.accept(";"):
                self.statement()

    def open_scope(self) -> None:
        """Rename the labels that this scope declares (they may be used before they stand)."""
        scope: dict[str, str] = {}
        words, at, depth = self.tokens.words, self.tokens.at, 1
        self.parser.unique += 1
        while depth and at < len(words) - 2:
            text = words[at]
            depth += {"{": 1, "}": -1}.get(text, 0)
            if depth == 1 and words[at + 1] == ":":
                scope[text] = f"{text}@{self.parser.unique}"
            at += 1
        self.scopes.append(scope)

    def resolve(self, name: str) -> str:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return name

    def statement(self) -> None:
        tokens = self.tokens
        word, line = tokens.text, tokens.line
        if tokens.words[tokens.at + 1] == ":":
            tokens.at += 2
            self.label(self.resolve(word))
        elif word.startswith(".reg"):
            self.registers()
        elif word.startswith(".pragma"):
            tokens.skip_statement()
        elif word.startswith(".") and word.split(".")[1] in _SPACES:
            self.local_variable()
        elif word.startswith("."):
            raise PtxError(f"PTX line {line}: unknown directive {word!r} in a function body")
        else:
            self.function.body.append(self.instruction())

    def label(self, name: str) -> None:
        tokens = self.tokens
        if tokens.text != ".branchtargets":
            self.function.body.append(Label(name))
            return
        tokens.take()
        targets = [self.resolve(tokens.take())]
        while tokens.accept(","):
            targets.append(self.resolve(tokens.take()))
        tokens.expect(";")
        self.function.branch_tables[name] = targets

    def local_variable(self) -> None:
        variable = self.parser.variable()
        plain = variable.name
        if len(self.scopes) > 1:
            variable.name = f"{plain}@{self.parser.unique}"
            self.scopes[-1][plain] = variable.name
        self.function.variables[variable.name] = variable

    def registers(self) -> None:
        tokens = self.tokens
        kinds = [w for w in tokens.take().split(".") if w][1:]
        while not kinds or tokens.text.startswith("."):
            kinds.append(tokens.take().lstrip("."))
        kind = kinds[-1]
        if kind not in TYPE_BYTES:
            raise PtxError(f"PTX line {tokens.line}: unknown register type .{kind}")
        while not tokens.accept(";"):
            name = tokens.take()
            if tokens.accept("<"):
                tokens.take()
                tokens.expect(">")
                self.ranges[name] = kind
            else:
                unique = name if len(self.scopes) == 1 else f"{name}@{self.parser.unique}"
                self.scopes[-1][name] = unique
                self.function.registers[unique] = kind
            tokens.accept(",")

    # ---- instructions -------------------------------------------------------------------------

    def instruction(self) -> Instruction:
        tokens = self.tokens
        start, line = tokens.at, tokens.line
        guard, negated = None, False
        if tokens.accept("@"):
            negated = tokens.accept("!")
            guard = self.operand()
        root, *modifiers = tokens.take().split(".")
        operands: list = []
        negations = set()
        target = ""
        if root == "call":
            target = self.call(operands)
        else:
            while tokens.text != ";":
                if tokens.accept("!"):
                    negations.add(len(operands))
                operands.append(self.operand())
                if tokens.accept("|"):
                    operands[-1] = Vector((operands[-1], self.operand()))
                if tokens.text != ";":
                    tokens.expect(",")
        tokens.expect(";")
        if root in ("bra", "brx"):
            target = operands.pop().name
        words = tokens.words[start : tokens.at]
        return Instruction(
            root,
            tuple(modifiers),
            operands,
            guard,
            negated,
            self.lines.current,
            line,
            _pretty(words),
            frozenset(negations),
            target,
        )

    def call(self, operands: list) -> str:
        """``call (ret), name, (args);`` -> operands [[ret...], [args...]]; returns the name."""
        tokens = self.tokens
        returns = self.names_in_parentheses()
        tokens.accept(",")
        name = tokens.take()
        if name.startswith("%"):
            raise PtxError(
                f"PTX line {tokens.line}: a call through a function pointer is not simulated; "
                "call the device function by its name"
            )
        tokens.accept(",")
        operands += [returns, self.names_in_parentheses()]
        return name

    def names_in_parentheses(self) -> list[str]:
        names = []
        if self.tokens.accept("("):
            while not self.tokens.accept(")"):
                names.append(self.resolve(self.tokens.take()))
                self.tokens.accept(",")
        return names

    def operand(self) -> Operand:
        tokens = self.tokens
        known = self.plain.get(tokens.text) if len(self.scopes) == 1 else None
        if known is not None:
            tokens.at += 1
            return known
        if tokens.accept("{"):
            items = []
            while not tokens.accept("}"):
                items.append(self.operand())
                tokens.accept(",")
            return Vector(tuple(items))
        if tokens.accept("["):
            base = self.operand()
            offset = self.signed_offset()
            tokens.expect("]")
            if isinstance(base, Symbol):
                return Address(Symbol(base.name), base.offset + offset)
            return Address(base, offset)
        if tokens.accept("-"):
            return Imm(-self.parser.number(tokens.take()).value)
        word = tokens.take()
        if word[0].isdigit():
            return self.parser.number(word)
        name = self.resolve(word)
        if name in self.function.registers or word == "_":
            return Reg(name)
        if name.startswith("%"):
            return self.register_or_special(name)
        return Symbol(name, self.signed_offset())

    def register_or_special(self, name: str) -> Reg | Special:
        match = _NUMBERED.match(name)
        if match and match.group(1) in self.ranges:
            self.function.registers[name] = self.ranges[match.group(1)]
            self.plain[name] = Reg(name)
            return self.plain[name]
        if name in _SPECIALS:
            return Special(name[1:])
        raise PtxError(f"PTX line {self.tokens.line}: unknown register {name}")

    def signed_offset(self) -> int:
        tokens, offset = self.tokens, 0
        while tokens.text in ("+", "-"):
            sign = 1 if tokens.take() == "+" else -1
            if tokens.accept("-"):
                sign = -sign
            offset += sign * self.parser.number(tokens.take()).value
        return offset


def _product(numbers: list[int]) -> int:
    result = 1
    for n in numbers:
        result *= n
    return result


def _pretty(words: list[str]) -> str:
    text = _TIGHT_BEFORE.sub(r"\1", " ".join(words))
    return _TIGHT_AFTER.sub(r"\1", text)
