"""Functions and file-scope items of the source, as a Metal header has them."""

from __future__ import annotations

import re

from tree_sitter import Node

from translator.cuda_source import walk
from translator.metal_writer import declarations
from translator.metal_writer.expressions import call_arguments
from translator.metal_writer.flow import called, calls_in
from translator.metal_writer.groups import group_size
from translator.metal_writer.lines import mark
from translator.metal_writer.names import FUNCTIONS, KEYWORDS, local_names, renamed, template_name
from translator.metal_writer.passes import IN_FUNCTIONS, Pass, Rendered, SharedParameter
from translator.metal_writer.program import TYPES, Routine, Variable
from translator.metal_writer.refused import Refused
from translator.metal_writer.renderer import Renderer
from translator.metal_writer.types import vector_parts

_OPERATORS = re.compile(r"operator\s*([-+*/]=?)\Z")


def write_function(shared: Pass, routine: Routine) -> None:
    """Write one function, its callees being written already; a refusal is noted, and then it isn't there to call."""
    if _is_built_in(shared, routine):
        return
    name = renamed(routine.name, FUNCTIONS | KEYWORDS) if not routine.name.startswith("operator") else routine.name
    name += f"_{routine.copy_of}" if routine.copy_of else ""
    called = local_names((variable.name for variable in routine.all_variables()), KEYWORDS)
    names = {variable: called[variable.name] for variable in routine.all_variables()}
    renderer = FunctionRenderer(shared, routine, names)
    before = len(shared.findings)
    try:
        text = renderer.whole(name)
    except Refused as refused:
        shared.refuse(refused.node, refused.reason, refused.advice)
        return
    if len(shared.findings) == before:
        comment = comment_before(renderer, routine.outer)
        attributes = tuple(name for name in IN_FUNCTIONS if name in renderer.attributes)
        twice = {at: modes for at, p in enumerate(routine.parameters) if (modes := halves(renderer, p))}
        shared.functions[routine] = Rendered(comment + text, name, attributes, tuple(renderer.threadgroup), twice,
                                             renderer.explicit)  # fmt: skip


def _is_built_in(shared: Pass, routine: Routine) -> bool:
    """Operators on vectors are there in Metal; refuse one of the source that does something else than componentwise."""
    match = _OPERATORS.match(routine.name)
    if match is None or not all(
        p.type.name in ("float", "int") or vector_parts(p.type.name) for p in routine.parameters
    ):
        return False
    parts = next((parts for p in routine.parameters if (parts := vector_parts(p.type.name))), None)
    if parts is not None and not _is_componentwise(shared, routine, match[1][0], parts[1]):
        shared.refuse(routine.node, f"'{routine.name}' of vectors is not componentwise", "give it a name of its own")
    return True


def _is_componentwise(shared: Pass, routine: Routine, sign: str, count: int) -> bool:
    """Whether an operator does to each component what its sign says, and nothing else."""
    body = re.sub(r"\s|\breturn\b", "", shared.program.source.text_of(routine.body))
    names = [parameter.name for parameter in routine.parameters]
    one, other = names if len(names) == 2 else ("", names[0])
    parts, changes = [], []
    for component in "xyzw"[:count]:
        left, right = rf"{one}(?:\.{component})?" if one else "", rf"{other}(?:\.{component})?"
        turned = f"|{right}{re.escape(sign)}{left}" if sign in "+*" and one else ""
        parts.append(f"(?:{left}{re.escape(sign)}{right}{turned})")
        changes.append(f"{one}\\.{component}{re.escape(sign)}={right};")
    value = rf"(?:\w+)?[({{]{','.join(parts)}[)}}]"
    forms = [f"{value};", f"{one}={value};(?:{one};)?", f"{''.join(changes)}(?:{one};)?"]
    forms.append(f"{one}={one}{re.escape(sign)}{other};(?:{one};)?")
    return any(re.fullmatch(rf"\{{{form}\}}", body) for form in forms)


class FunctionRenderer(Renderer):
    """Writes a function of the header: its parameters get address spaces, and what CUDA has everywhere.

    ``explicit``: its template arguments don't follow from the arguments any more, as pointers have types of their own.
    """

    explicit = False

    def whole(self, name: str) -> str:
        """Return the function's text."""
        node = self.routine.node
        pointers: list[str] = []
        given = [parameter for parameter in self.routine.parameters if group_size(self.program, parameter) is None]
        parameters = [text for parameter in given for text in self._with_halves(parameter, pointers)]
        body = self.render(self.routine.body)
        parameters += [
            IN_FUNCTIONS[a].split()[0] + " " + self.attribute(a) for a in IN_FUNCTIONS if a in self.attributes
        ]
        parameters += [self._shared_parameter(shared) for shared in self.threadgroup]
        template = [self._template_parameter(parameter) for parameter in self.routine.template]
        template += [f"typename {pointer}" for pointer in pointers]
        named = (rf"\b{template_name(self.text(each))}\b" for each in self.routine.template)
        written = ", ".join(self.text(parameter.declaration) for parameter in given)
        self.explicit = any(re.search(n, written) and not re.search(n, ", ".join(parameters)) for n in named)
        before = f"template <{', '.join(template)}>\n" if template or self.routine.outer is not node else ""
        special = self.render(self.routine.special) if self.routine.special is not None else ""
        head = f"inline {self._returned()} {name}{special}"
        before = self._prototype(name) + before if special else before
        line = node.start_point[0] + 1
        return mark(f"{before}{head}({', '.join(parameters)}) ", line) + body

    def _with_halves(self, parameter: Variable, pointers: list[str]) -> list[str]:
        """Return a parameter, and those for the written half and the flags of an array that is changed in place."""
        modes = halves(self, parameter)
        if not modes:
            return [parameter_text(self, parameter, pointers)]
        kinds = {(space, self.is_split({(space, array)}), array in self.shared.flags)
                 for space, array in parameter.origins}  # fmt: skip
        if len(kinds) > 1:
            raise Refused(parameter.node, f"'{parameter.name}' is given an array that is changed in place, and others",
                          "write one function for each")  # fmt: skip
        node = next(child for child in parameter.declaration.children if child.type in TYPES)
        word, sign = declarations.type_name(self, node), "&" if parameter.type.reference else "*"
        split, texts = self.is_split(parameter.origins), []
        for flagging in [False] * split + [True] * bool(self.flags_of(parameter)):
            name = self.in_mode(lambda _: self.name_of(parameter), parameter.node, True, flagging)
            template = any(word in self.text(each).split() for each in self.routine.template)
            if flagging and template and sign == "*":  # the launch's type may be a vector
                pointers.append(_pointer_type(name))
                texts.append(f"{_pointer_type(name)} {name}")
                continue
            kind = "bool" if template else declarations.flag_type(parameter.node, word)
            texts.append(f"device {kind if flagging else word}{sign} {name}")
        if split and parameter.type.reference:
            return [f"{word} {self.names[parameter]}", *texts]
        return [parameter_text(self, parameter, pointers), *texts]

    def _prototype(self, name: str) -> str:
        """Return the template that the function specialises, once, where the source only declares it."""
        outer = self.program.prototypes.get(self.routine.name)
        if outer is None or name in self.shared.prototypes:
            return ""
        self.shared.prototypes.add(name)
        text = re.sub(r"__\w+__\s*|\binline\s*|\bstatic\s*", "", self.text(outer))
        if "*" in text or "&" in text:
            raise Refused(outer, f"'{name}' is declared with pointers and specialised", "overload it instead")
        return self.leaf(outer, re.sub(r"^(template <[^>]*>) ", r"\1\ninline ", text)) + "\n\n"

    def _template_parameter(self, parameter: Node) -> str:
        return re.sub(r"\bunsigned long long\b", "ulong", self.text(parameter))

    def _returned(self) -> str:
        node = self.routine.node
        kind = next((child for child in node.children if child.type in TYPES), None)
        if kind is None:
            raise Refused(node, f"the type that '{self.routine.name}' returns is not known", "write it plainly")
        text = declarations.type_name(self, kind)
        declarator = node.child_by_field_name("declarator")
        if declarator is not None and declarator.type == "pointer_declarator":
            origins = set()
            for inner in walk(self.routine.body):
                if inner.type == "return_statement" and inner.named_children:
                    origins |= self.reader.origins_of(inner.named_children[0])
            space = self.space(origins, declarator)
            const = "const " if space == "input" or any(self.text(c) == "const" for c in node.children) else ""
            return f"{const}{'device' if space == 'input' else space} {text}*"
        if declarator is not None and declarator.type == "reference_declarator":
            raise Refused(node, f"'{self.routine.name}' returns a reference", "return the value")
        return text

    def _shared_parameter(self, shared: SharedParameter) -> str:
        if shared.routine is self.routine:
            kind = self.element_name(shared)
            extents = "".join(f"[{extent}]" for extent in shared.variable.type.extents)
        else:
            kind, extents = hoisted(self.shared, shared)
        if not extents:
            return f"threadgroup {kind}& {shared.name}"
        inner = extents[extents.index("]") + 1 :]
        return f"threadgroup {kind} (*{shared.name}){inner}" if inner else f"threadgroup {kind}* {shared.name}"

    def element_name(self, shared: SharedParameter) -> str:
        """Return the type of a shared array's elements, respelled."""
        kind = next(child for child in shared.variable.declaration.children if child.type in TYPES)
        return declarations.type_name(self, kind)

    def share(self, variables: list[Variable]) -> None:
        """Make threadgroup memory that the function declares a parameter of it."""
        for variable in variables:
            self.threadgroup.append(SharedParameter(variable, self.routine, self.names[variable]))

    def pass_on(self, shared: SharedParameter) -> str:
        """Return the name of a callee's threadgroup array here, and ask our own callers for it."""
        for own in self.threadgroup:
            if own.variable is shared.variable:
                return own.name
        name = renamed(shared.name, self.taken)
        self.taken.add(name)
        self.threadgroup.append(SharedParameter(shared.variable, shared.routine, name))
        return name


def parameter_text(renderer: Renderer, parameter: Variable, pointers: list[str]) -> str:
    """Return a parameter with its address space; one for several memories gets a type of its own in ``pointers``."""
    node = parameter.declaration
    kind = next((child for child in node.children if child.type in TYPES), None)
    declarator = node.child_by_field_name("declarator")
    if kind is None or declarator is None:
        raise Refused(node, f"'{renderer.text(node)}' is not understood", "write the parameter plainly")
    if any(renderer.text(child) == "volatile" for child in node.children):
        declarations.check_volatile(renderer, node)
    word = declarations.type_name(renderer, kind)
    const = "const " if parameter.type.const else ""
    name = renderer.names[parameter]
    if not parameter.type.points and not parameter.type.reference:
        return f"{const}{word} {name}"
    spaces = renderer.spaces(parameter.origins)
    if parameter.type.reference and not parameter.type.extents:
        if parameter.type.const:
            return (
                f"const {word} {name}"
                if spaces - {"thread"} or word in ("int", "float")
                else f"const thread {word}& {name}"
            )
        space = renderer.space(parameter.origins or {("thread", "")}, parameter.node)
        return f"{'device' if space == 'input' else space} {word}& {name}"
    several = len(spaces - {"input"}) > 1 or (bool(spaces - {"input", "device"}) and "input" in spaces)
    if (
        (several or "input" in spaces)
        and not parameter.type.extents
        and not (not several and _is_cast(renderer, parameter))
    ):
        own = _pointer_type(name)
        pointers.append(own)
        return f"{own} {name}"
    space = renderer.space(parameter.origins, parameter.node)
    if space == "input":
        space, const = "device", "const "
    if space == "constant":
        const = ""
    extents = parameter.type.extents
    before = f"{const}{space} {word}"
    inner = "".join(f"[{extent}]" for extent in (extents if parameter.type.pointers else extents[1:]))
    if parameter.type.reference:
        return f"{before} (&{name}){''.join(f'[{extent}]' for extent in extents)}"
    for extent in extents:
        declarations_used(renderer, extent)
    return f"{before} (*{name}){inner}" if inner else f"{before}* {name}"


def _pointer_type(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_") if part) + "Pointer"


def halves(renderer: Renderer, parameter: Variable) -> list[tuple[bool, bool]]:
    """Return the modes, `writing` and `flagging`, in which a parameter is handed on besides as it is read."""
    if parameter.type.reference and parameter.type.const:
        return []
    return [(True, False)] * renderer.is_split(parameter.origins) + [(True, True)] * bool(renderer.flags_of(parameter))


def declarations_used(renderer: Renderer, extent: str) -> None:
    """Note the constants that an extent names."""
    for word in re.findall(r"[A-Za-z_]\w*", extent):
        if word in renderer.program.items or word in renderer.program.macros:
            renderer.shared.used[word] = None


def _is_cast(renderer: Renderer, parameter: Variable) -> bool:
    """Whether a function casts the pointer that it is given to one of another type."""
    for node in walk(renderer.routine.body):
        target = node.child_by_field_name("value") if node.type == "cast_expression" else None
        if node.type == "call_expression" and "_cast" in renderer.text(node.child_by_field_name("function") or node):
            target = next(iter(call_arguments(node)), None)
        if node.type == "call_expression" and renderer.text(node).startswith("__pipeline_memcpy_async"):
            target = next(iter(call_arguments(node)[1:]), None)
        if target is not None and renderer.reader.origins_of(target) & parameter.origins:
            return True
    return False


def hoisted(shared: Pass, parameter: SharedParameter) -> tuple[str, str]:
    """Return type and extents of a function's threadgroup array for the kernel, template parameters put in."""
    variable, routine = parameter.variable, parameter.routine
    kind = next(child for child in variable.declaration.children if child.type in TYPES)
    owner = FunctionRenderer(shared, routine, {})
    word = declarations.type_name(owner, kind)
    extents = list(variable.type.extents)
    for extent in extents:
        declarations_used(owner, extent)
    names = [owner.text(p).replace("=", " ").split() for p in routine.template]
    for position, words in enumerate(names):
        own = words[1] if len(words) > 1 else words[0]
        if own == word or any(own in re.findall(r"\w+", extent) for extent in extents):
            given = _template_argument(shared, routine, position, own, variable.declaration)
            word = given if word == own else word
            extents = [re.sub(rf"\b{own}\b", given, extent) for extent in extents]
    return word, "".join(f"[{extent}]" for extent in extents)


def _template_argument(shared: Pass, routine: Routine, position: int, name: str, node: Node) -> str:
    found = set()
    for caller, reader in shared.readers.items():
        for call in calls_in(caller.node):
            if routine not in called(shared.program, call):
                continue
            function = call.child_by_field_name("function")
            given = function.child_by_field_name("arguments") if function is not None else None
            if function is not None and function.type == "template_function" and given is not None \
                    and position < given.named_child_count:  # fmt: skip
                found.add(reader.text(given.named_children[position]))
                continue
            for parameter, argument in zip(routine.parameters, call_arguments(call), strict=False):
                if parameter.type.name == name:
                    found.add(reader.type_of(argument).name)
    if len(found) != 1 or "" in found:
        raise Refused(node, f"shared memory in '{routine.name}' depends on '{name}', which is not one thing",
                      "declare the array in the kernel and pass it")  # fmt: skip
    return found.pop()


def comment_before(renderer: Renderer, node: Node) -> str:
    """Return the comments that stand right before a definition, each on its own lines."""
    comments: list[Node] = []
    at = node
    while (above := at.prev_sibling) is not None and above.type == "comment" and \
            at.start_point[0] - above.end_point[0] <= 1:  # fmt: skip
        if above.prev_sibling is not None and above.prev_sibling.end_point[0] == above.start_point[0]:
            break
        comments.insert(0, above)
        at = above
    return "".join(renderer.render(comment) + "\n" for comment in comments)
