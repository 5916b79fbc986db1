"""Rules on placeholders: forms that one reader sees and another does not, and values that change on the way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from harness.gate.context import Context, EntryView
from harness.gate.edits import set_value
from harness.gate.model import Edit, Severity
from harness.gate.rule import Hit, entry_rule
from harness.gate.wording import SHOWN_CHARACTERS, labels, placeholder_shown
from harness.inputs.document import Pointer
from harness.reference.secrets.blank import is_blank
from harness.reference.secrets.placeholders import (
    ANY_BRACED,
    PLACEHOLDER,
    SCANNED_TABLES,
    UNSCANNED_MEMBERS,
    ForeignPlaceholder,
    foreign_placeholders,
    scanned_texts,
)

HOST_PLACEHOLDER = re.compile(r"\$\{env:([A-Z_][A-Z0-9_]*)\}")
"""Cursor's and VS Code's spelling of a variable."""

UNRESOLVED_FIELDS = ("title", "description", "unavailable", "default_in_roots")

ALWAYS_REFUSED = re.compile(r"\$\{(?![A-Za-z_][A-Za-z0-9_]*(?::-.*)?\})", re.DOTALL)
"""A braced text that AIR's own resolver cannot fill either, whatever is in its environment."""


@entry_rule(
    "MH301",
    Severity.ERROR,
    "a placeholder that readiness cannot see",
    why=(
        "Zimmer looks for ${NAME} and ${NAME:-default} with upper-case names, in env, headers, args and url. AIR's last"
        " check refuses any ${...} that is left anywhere in the written config. A form between the two shows the"
        " server as ready, and then `air prepare` fails: not this server is missing, the whole session does not start."
    ),
    fix="Write ${NAME} in upper case, in env, headers or args; write a command out.",
    requirements=("secrets-foreign-placeholder-lint",),
    covers=("MH805",),
)
def foreign_placeholder(context: Context, view: EntryView) -> Iterator[Hit]:
    for found in unseen_placeholders(view):
        pointer = (view.name, *found.at)
        if found.at[0] in UNSCANNED_MEMBERS:
            why = f"readiness does not look into {found.at[0]}"
        else:
            why = "readiness takes it for plain text"
        when = "" if ALWAYS_REFUSED.match(found.text) else " where AIR's environment lacks it"
        yield Hit(
            pointer,
            f"{placeholder_shown(found.text)} in {place_shown(found.at)}{whose(found.text)}: {why} and shows the server"
            f" as ready, then `air prepare` refuses it{when} and the WHOLE session fails, on every runtime.",
            fix=what_to_write(found),
            edits=in_own_grammar(context, view, pointer),
            at_value=True,
            subject=placeholder_shown(found.text),
        )


_EDITOR_VARIABLE = re.compile(
    r"\$\{(?:(?:workspaceFolder|workspaceRoot|fileWorkspaceFolder)\w*(?::[^}]*)?|userHome|pathSeparator|/|cwd|file\w*"
    r"|relativeFile\w*|lineNumber|selectedText|execPath|(?P<kind>input|env|command|config):(?P<of>[^}]*))\}"
)
_OPERATOR_FORM = re.compile(r"\$\{([A-Z_][A-Z0-9_]*)(:?[-+=?])")
_OTHER_CASE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-[^}]*)?\}")


def whose(text: str) -> str:
    """Whose spelling a braced text is, where that is known."""
    return " (a variable of VS Code and Cursor)" if _EDITOR_VARIABLE.fullmatch(text) else ""


def what_to_write(found: ForeignPlaceholder) -> str:
    """What to write in place of a form that readiness cannot see, by what it was meant to be."""
    editor, operator, name = (pattern.match(found.text) for pattern in (_EDITOR_VARIABLE, _OPERATOR_FORM, _OTHER_CASE))
    if editor and editor["kind"] is None:
        return (
            "Nothing here expands VS Code's and Cursor's variables: a server starts in the session's clone, so write a"
            " path below it, or one that every machine has."
        )
    if found.at[0] in UNSCANNED_MEMBERS:
        return f"Write the value out: nothing is resolved in {found.at[0]}."
    if editor and editor["kind"] in ("env", "input"):
        return f"Write {own_spelling(editor['of'])} and seed that secret: only an editor knows `{editor['kind']}:`."
    if operator:
        form = f"${{{operator[1]}:-default}}" if operator[2][-1] in "-=" else f"${{{operator[1]}}}"
        return f"Write {form}: a shell's other forms are unknown here."
    if name:
        return f"Write {own_spelling(name[1])}, in upper case, and seed the secret under that name."
    return ""


def own_spelling(name: str) -> str:
    """`${NAME}` for a name in any case and with dashes; the bare form where that makes none."""
    plain = f"${{{re.sub(r'[^A-Za-z0-9_]', '_', name).upper()}}}"
    return plain if PLACEHOLDER.fullmatch(plain) and len(plain) <= SHOWN_CHARACTERS else "${NAME}"


def unseen_placeholders(view: EntryView) -> Iterator[ForeignPlaceholder]:
    """The forms that only AIR sees, each once a place, without those that MH303 tells."""
    for found in dict.fromkeys(foreign_placeholders(view.fields)):
        text = text_at(view, found.at)
        if not is_nested_default(text) or found.text in without_nested_defaults(text):
            yield found


def text_at(view: EntryView, at: Pointer) -> str:
    """The text at a path within the entry."""
    value = view.raw
    for step in at:
        value = value[step]
    return str(value)


def in_own_grammar(context: Context, view: EntryView, pointer: Pointer) -> tuple[Edit, ...]:
    """Another host's `${env:NAME}` as `${NAME}`, where that is all that is wrong with the text."""
    text = text_at(view, pointer[1:])
    mended = HOST_PLACEHOLDER.sub(r"${\1}", text)
    left = ANY_BRACED.search(PLACEHOLDER.sub("", mended))
    resolved_there = pointer[1] not in UNSCANNED_MEMBERS
    return set_value(context.document, pointer, mended) if mended != text and not left and resolved_there else ()


def place_shown(at: Pointer) -> str:
    """A path within an entry as people write it."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in at).removeprefix(".")


@entry_rule(
    "MH302",
    Severity.NOTE,
    "a placeholder that nobody resolves",
    why=(
        "Only values in env, headers, args and url are resolved. In a title, a description or a key a placeholder"
        " stays as it is written: people read it in the lists, and a server gets a variable or header of that very"
        " name."
    ),
    fix="Write the text or the name out.",
)
def unresolved_place(_context: Context, view: EntryView) -> Iterator[Hit]:
    for pointer, braced in braced_in_fields(view):
        yield Hit(
            pointer,
            f"{placeholder_shown(braced)} in {place_shown(pointer[1:])} is resolved by nobody: it is read as written.",
            at_value=True,
        )
    for pointer, braced in braced_in_keys(view):
        yield Hit(
            pointer,
            f"{placeholder_shown(braced)} stands in a name: nobody resolves it, the server gets the name as written.",
        )


def braced_in_fields(view: EntryView) -> Iterator[tuple[Pointer, str]]:
    """The first braced text of each string that is meant for people or roots."""
    for pointer, text in view.strings():
        braced = ANY_BRACED.search(text)
        if braced and len(pointer) > 1 and pointer[1] in UNRESOLVED_FIELDS:
            yield pointer, braced[0]


def braced_in_keys(view: EntryView) -> Iterator[tuple[Pointer, str]]:
    """Names of the server, its variables and its headers that hold a braced text."""
    names: list[Pointer] = [view.pointer]
    for table in SCANNED_TABLES:
        members = view.fields.get(table)
        names += [(view.name, table, key) for key in members] if isinstance(members, dict) else []
    for pointer in names:
        braced = ANY_BRACED.search(str(pointer[-1]))
        if braced:
            yield pointer, braced[0]


@entry_rule(
    "MH303",
    Severity.WARNING,
    "a default inside a default",
    why=(
        "A default ends at the first closing brace. ${A:-${B}} is A with the default `${B`, followed by a brace:"
        " with A set, a stray brace is glued to its value; without it, the text ${B} is left and AIR fails the"
        " session."
    ),
    fix="Give one plain default, or none.",
)
def nested_default(_context: Context, view: EntryView) -> Iterator[Hit]:
    for at, text in scanned_texts(view.fields):
        if is_nested_default(text):
            yield Hit(
                (view.name, *at),
                f"the default in {place_shown(at)} is cut at its first brace: the server gets a value"
                " with a stray `}`, or the whole session fails at prepare, on every runtime.",
                at_value=True,
            )


def is_nested_default(text: str) -> bool:
    """Whether a default of our grammar holds another placeholder."""
    return without_nested_defaults(text) != text


def without_nested_defaults(text: str) -> str:
    """A text without the placeholders whose default begins another one."""
    return PLACEHOLDER.sub(lambda match: "" if "${" in (match[2] or "") else match[0], text)


class Spelling(NamedTuple):
    """Another host's way to write a variable: group 1 of the pattern is its name, `readers` are who expands it.

    `on_pi`: Pi expands it. `certain`: it can only have been meant as a variable.
    """

    pattern: re.Pattern[str]
    readers: str
    on_pi: bool = False
    certain: bool = True


SPELLINGS = (
    Spelling(re.compile(r"\$env:([A-Za-z_][A-Za-z0-9_]*)"), "Pi", on_pi=True),
    Spelling(re.compile(r"(?<!\$)(?<!\{)\{env:([A-Za-z_][A-Za-z0-9_]*)\}"), "Pi and OpenCode", on_pi=True),
    Spelling(re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_.]*)\s*\}\}"), "a template engine's"),
    Spelling(re.compile(r"(?<![\w$\\%}])\$([A-Z_][A-Z0-9_]*)(?![\w:])"), "Gemini's and a shell's", certain=False),
    Spelling(re.compile(r"\$\(([A-Z_][A-Z0-9_]*)\)"), "Kubernetes's"),
    Spelling(re.compile(r"\$\{([A-Z_][A-Z0-9_]*(?::-[^}]*)?)(?![^}]*\})"), "nobody's"),
    Spelling(re.compile(r"%([A-Z_][A-Z0-9_]{2,})%(?![0-9A-Fa-f]{2})"), "Windows's", certain=False),
)
SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ash", "ksh", "fish", "cmd", "cmd.exe", "powershell", "pwsh"})
SHELL_FIELDS = ("args", "command")


@entry_rule(
    "MH304",
    Severity.WARNING,
    "another host's placeholder",
    why=(
        "Hosts spell variables differently: $VAR (Gemini), {env:VAR} and $env:VAR (Pi), %VAR% (Windows), {{VAR}}"
        " (templates), $(VAR) (Kubernetes). The catalog knows ${VAR} alone. Any other form, and one whose brace is"
        " never closed, counts as plain text: it is sent to the server as it is written, except where one runtime"
        " expands it itself, from its own environment, and the others do not."
    ),
    fix="Write ${VAR}.",
)
def other_spelling(context: Context, view: EntryView) -> Iterator[Hit]:
    for at, text in scanned_texts(view.fields):
        for spelling in SPELLINGS:
            match = spelling.pattern.search(text)
            if match and not is_for_a_shell(view, at):
                yield Hit(
                    (view.name, *at),
                    spelling_message(context, at, spelling, match[0]),
                    edits=respelt(context, (view.name, *at), spelling, text),
                    at_value=True,
                    subject=spelling.readers,
                )


def is_for_a_shell(view: EntryView, at: Pointer) -> bool:
    """Whether a text is a script: there the shell expands what stands in it."""
    command = view.fields.get("command")
    return at[0] in SHELL_FIELDS and isinstance(command, str) and command.replace("\\", "/").split("/")[-1] in SHELLS


def spelling_message(context: Context, at: Pointer, spelling: Spelling, written: str) -> str:
    """Who expands the spelling, and what the others send."""
    written = written.partition(":-")[0]
    pi, others = labels(context, "pi"), labels(context, "claude", "codex")
    literal = "the server gets it as written"
    if spelling.on_pi and pi:
        return f"{written} in {place_shown(at)} is expanded by {', '.join(pi)} alone, out of its own environment" + (
            f"; on {', '.join(others)} {literal}." if others else "."
        )
    return f"{written} in {place_shown(at)} is {spelling.readers} spelling: {literal}, on every runtime."


def respelt(context: Context, pointer: Pointer, spelling: Spelling, text: str) -> tuple[Edit, ...]:
    """The text with the variable in the catalog's spelling, where it can only have been meant as one."""
    names = [match[1] for match in spelling.pattern.finditer(text)]
    if not spelling.certain or not all(PLACEHOLDER.fullmatch(f"${{{name}}}") for name in names):
        return ()
    return set_value(context.document, pointer, spelling.pattern.sub(r"${\1}", text))


@entry_rule(
    "MH305",
    Severity.ERROR,
    "a value that Pi runs as a shell command",
    why=(
        "Pi's adapter takes an env or header value that begins with one `!` for a shell command: it runs it for up"
        " to 10 s with the agent's rights and sends its output. Claude and Codex send the text as it is written. A"
        " password that happens to begin with `!` becomes a command line."
    ),
    fix="Keep the value in the secret store and write ${NAME}; `!!` gives a literal `!` on Pi alone.",
)
def runs_on_pi(context: Context, view: EntryView) -> Iterator[Hit]:
    pi = labels(context, "pi")
    for at, text in scanned_texts(view.fields):
        if pi and at[0] in SCANNED_TABLES and is_command_on_pi(text):
            yield Hit(
                (view.name, *at),
                f"the value of {place_shown(at)} begins with `!`: {', '.join(pi)} runs the rest as a shell command each"
                " time the server starts, the others send it as written.",
                runtimes=pi,
                at_value=True,
            )


def is_command_on_pi(text: str) -> bool:
    """Whether Pi's adapter runs the value; two exclamation marks stand for a literal one."""
    return text.startswith("!") and not text.startswith("!!")


@entry_rule(
    "MH306",
    Severity.WARNING,
    "a value that is dropped for being blank",
    why=(
        "Prepare removes an env variable or header whose value comes out blank, unless the catalog wrote exactly an"
        " empty text. A value of blanks never reaches the server; one whose default is blank is there or not, by"
        " whether the variable has a value."
    ),
    fix='Write "" for a variable that must be there and empty; leave the key out otherwise.',
)
def blank_value(_context: Context, view: EntryView) -> Iterator[Hit]:
    for at, text in scanned_texts(view.fields):
        if at[0] not in SCANNED_TABLES or not comes_out_blank(text):
            continue
        optional = PLACEHOLDER.search(text) is not None
        yield Hit(
            (view.name, *at),
            f"{place_shown(at)} is dropped at prepare"
            + (" whenever its variable has no value" if optional else " for its blank value")
            + ", so the server runs without it on every runtime.",
            severity=Severity.NOTE if optional else None,
            at_value=True,
        )


def comes_out_blank(text: str) -> bool:
    """Whether a value is removed where no variable has a value: blank, though not written as an empty text."""
    if text == "" or any(match[2] is None for match in PLACEHOLDER.finditer(text)):
        return False
    return is_blank(PLACEHOLDER.sub(lambda match: match[2], text))
