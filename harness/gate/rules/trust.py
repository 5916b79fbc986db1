"""Rules on changes that ask for more trust: another host, another publisher, more power. Asked with a base alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from harness.gate.context import EntryView
from harness.gate.launchers import command_line
from harness.gate.model import Severity
from harness.gate.powers import powers, restraints
from harness.gate.publishers import SOURCE_OPTIONS, SOURCE_VARIABLES, is_other_publisher, published, sources
from harness.gate.rule import Comparison, Hit, comparison_rule
from harness.gate.rules.comparison import changed_place
from harness.gate.shown_values import LONGEST_ADDRESS, argument_text, cut, plain
from harness.gate.wording import joined
from harness.inputs.document import Pointer
from harness.reference.oauth.capability import is_credential_header

ADDRESS_VARIABLE = re.compile(r"(?:.*_)?(?:URL|URI|ENDPOINT|HOST|BASE|SERVER|PROXY|ADDRESS)", re.IGNORECASE)
"""Variables that tell a program whom to call."""
HOST_VARIABLE = re.compile(r"(?:.*_)?(?:ENDPOINT|HOST|SERVER|PROXY|ADDRESS)", re.IGNORECASE)
"""Those of them that may hold a bare host."""
ADDRESS_ARGUMENT = re.compile(r"(?:(?P<option>-[^=]*)=)?(?P<url>(?:https?|wss?)://.*)", re.IGNORECASE | re.DOTALL)


@comparison_rule(
    "MH851",
    Severity.WARNING,
    "credentials now go to another host",
    why=(
        "The address changes and the credential stays: from the next session on a secret that was given to one host is"
        " sent to another one, or users are asked to hand their consent to it. A move of a service looks exactly like a"
        " theft, and only a person can tell them apart."
    ),
    fix="Make sure that the new host belongs to the same owner; if it does not, give it a credential of its own.",
)
def credentials_go_elsewhere(comparison: Comparison) -> Iterator[Hit]:
    before, after = comparison.before, comparison.after
    held = credentials_kept(before, after)
    old, new = hosts(before), hosts(after)
    gone = [host for host in old.values() if host not in new.values()]
    for place, host in new.items():
        if held and host not in old.values():
            was = old.get(place) if old.get(place) in gone else next(iter(gone), None)
            where = place[0] if len(place) == 1 else f"{place[0]}[{place[1]}]" if place[0] == "args" else place[1]
            moved = f"moves from {shown(was)} to {shown(host)}" if was else f"now names {shown(host)}"
            yield Hit((after.name, *place), f"{where} {moved}, and {held}.", at_value=True, subject=host)


def hosts(view: EntryView) -> Mapping[Pointer, str]:
    """Whom an entry calls, by place: the host of its url, or those that its args and env tell a program."""
    fields = view.fields
    if view.entry is not None and view.entry.remote:
        return {("url",): host} if (host := host_of(str(fields.get("url", "")))) else {}
    line = command_line(fields)
    found: dict[Pointer, str] = {}
    for index, word in enumerate(line.args if line else ()):
        match = ADDRESS_ARGUMENT.fullmatch(word)
        option = match["option"] if match else None
        if match and line and option not in SOURCE_OPTIONS and line.args[index - 1] not in SOURCE_OPTIONS:
            found["args", index] = host_of(match["url"])
    env = fields.get("env")
    for name, value in env.items() if isinstance(env, dict) else ():
        if isinstance(value, str) and ADDRESS_VARIABLE.fullmatch(name) and name.upper() not in SOURCE_VARIABLES:
            is_bare = HOST_VARIABLE.fullmatch(name) and "." in value
            found["env", name] = host_of(value if "://" in value else f"//{value}" if is_bare else "")
    return {place: host for place, host in found.items() if host}


def host_of(url: str) -> str:
    """The host of an address in lower case, without a port; a placeholder stays as it is. Empty: none."""
    try:
        place = urlsplit(url.strip()).netloc.rpartition("@")[2]
    except ValueError:
        return ""
    return re.sub(r":\d+\Z", "", place).lower() if "${" not in place else place


def shown(host: str) -> str:
    """A host as a report may show it."""
    return cut(plain(host), LONGEST_ADDRESS)


def credentials_kept(before: EntryView, after: EntryView) -> str:
    """What both sides hold, in words that follow `and`; empty where nothing of worth stays."""
    headers = [name for name in credential_headers(after.fields) if name in credential_headers(before.fields)]
    if headers:
        return f"the credential in its {'headers' if len(headers) > 1 else 'header'} {joined(headers)} goes with it"
    secrets = [name for name in after.variables.required if name in before.variables.required]
    if secrets:
        return f"the {'secrets' if len(secrets) > 1 else 'secret'} {joined(secrets)} may go with it"
    if client_secret(before.fields) and client_secret(after.fields):
        return "the oauth client's secret goes with it"
    if before.oauth_capable and after.oauth_capable:
        return "users are asked to authorize the new one under the name that they know"
    return ""


def client_secret(fields: Mapping[str, Any]) -> object:
    """The secret of an entry's own OAuth client."""
    oauth = fields.get("oauth")
    return oauth.get("clientSecret") or oauth.get("client_secret") if isinstance(oauth, dict) else None


def credential_headers(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """The headers of an entry that hold a credential, in lower case."""
    headers = fields.get("headers")
    members = headers.items() if isinstance(headers, dict) else ()
    return tuple(str(name).lower() for name, value in members if is_credential_header(name, value))


@comparison_rule(
    "MH852",
    Severity.WARNING,
    "runs code from another publisher",
    why=(
        "Another version of a package comes from whom it came from before; another name, scope, image repository or"
        " registry comes from somebody else, and runs with the entry's secrets on every machine that starts a session."
        " Names that differ by a letter are how such packages get in."
    ),
    fix="Look at who publishes it, and pin a version that somebody has read.",
)
def other_publisher(comparison: Comparison) -> Iterator[Hit]:
    before, after = comparison.before, comparison.after
    old, new = published(before.fields), published(after.fields)
    if new is not None and is_other_publisher(old, new):
        was = "it ran nothing" if old is None else code_text(old.kind, old.names)
        inline = old is not None and (old.kind, old.names) == (new.kind, new.names)
        text = (
            f"{the_kind(new.kind)} is another one"
            if inline
            else f"runs {code_text(new.kind, new.names)}; before, {was}"
        )
        yield Hit(program_place(comparison), f"{text}: not a new version but other code.", subject="code")
    fresh = sorted(sources(after.fields) - sources(before.fields))
    if fresh:
        listed = joined(cut(plain(source), LONGEST_ADDRESS) for source in fresh)
        yield Hit(
            program_place(comparison), f"fetches its code from another registry now: {listed}.", subject="registry"
        )


def code_text(kind: str, names: tuple[str, ...]) -> str:
    """`npm package @scope/name`."""
    return f"{the_kind(kind)} {cut(' + '.join(map(argument_text, names)), LONGEST_ADDRESS)}".rstrip()


def the_kind(kind: str) -> str:
    """`the npm package`: a kind of code with its article."""
    return f"the {kind.removeprefix('a ')}"


def program_place(comparison: Comparison) -> Pointer:
    """Where the command line stands that changed."""
    after = comparison.after
    place = changed_place(comparison)
    return place if len(place) > 1 else (after.name, "args" if after.fields.get("args") else "command")


@comparison_rule(
    "MH853",
    Severity.WARNING,
    "gains power",
    why=(
        "What a server may do is decided by a few words of its command line: --privileged, a mount of / or of the"
        " docker socket and --network host give it the machine, --allow-write and --access-mode=unrestricted what it"
        " was kept from, NODE_OPTIONS and LD_PRELOAD load other code into it. An agent that is led astray has it all."
    ),
    fix="Take it back, or say in the change why the server cannot do without it.",
)
def gains_power(comparison: Comparison) -> Iterator[Hit]:
    before, after = comparison.before.fields, comparison.after.fields
    held, kept = powers(before), restraints(after)
    gained = [power for power in powers(after) if power not in held]
    lost = [word for word in restraints(before) if word not in kept] if powers_comparable(after) else []
    if gained or lost:
        words = [f"gains {joined(map(argument_text_of, gained))}"] if gained else []
        words += [f"loses {joined(lost)}, which kept it from something"] if lost else []
        variable = next((name for name in gained_variables(comparison, gained)), None)
        place = (comparison.after.name, "env", variable) if variable else program_place(comparison)
        yield Hit(place, f"{' and '.join(words)}.")


def gained_variables(comparison: Comparison, gained: Sequence[str]) -> Iterator[str]:
    """The variables of env that a power stands in, where all that is gained stands there."""
    env = comparison.after.fields.get("env")
    names = [power.partition(",")[0] for power in gained]
    if isinstance(env, dict) and all(name in env for name in names):
        yield from names


def argument_text_of(power: str) -> str:
    """A power as a report may show it: words of the list, and values only where they are harmless."""
    return argument_text(power) if power.startswith("--") and " " not in power else power


def powers_comparable(fields: Mapping[str, Any]) -> bool:
    """Whether the entry still starts a program: one that is remote now has no restraints to lose."""
    return fields.get("type") == "stdio"
