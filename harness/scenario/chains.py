"""Who presents which refresh token, and what every store held then: told by the world, whatever code is in place.

A *chain* is what came of one consent at one authorization server; each refresh makes its next *generation*. What every
actor has read is known, so that presenting a spent token, or writing an old one over a new one, is either a rule that
was broken or one of the accepted holes.

What an actor reads counts from the moment at which it comes to its next switch point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs

from fake_servers.oauth import AuthorizationServer
from fake_servers.oauth.asking import Received
from harness.reference.credentials.row import TABLE as CREDENTIALS
from harness.scenario import holes
from harness.scenario.arrivals import is_kept, sort_of
from harness.scenario.chain_notes import (
    Attempt,
    Chain,
    Chains,
    Change,
    Gone,
    Held,
    Note,
    Overwrite,
    Past,
    Watched,
    is_later,
)
from harness.scenario.desk import tabs
from harness.scenario.duties import Look, duty, seeker_of, seen_in_time
from harness.scenario.mishaps import befell
from harness.scenario.naming import OPERATOR, plain
from harness.scenario.stores import (
    KEYRING,
    ROW,
    STAGED_FILE,
    expiry_in,
    family_of,
    is_of_a_runtime,
    is_store,
    tokens_in,
    whose,
)
from harness.world.sites import origin

HELPER = "mcp-keyring-helper"
HELPER_SECONDS = 2.0
"""How long the keyring's helper has for its answer (reconcile-pi-probe-two-second-bound)."""
RETIRED = "credential.retired"
NOTHING = 0

KNEW, NEVER_LOOKED = "it had read the fresher one", "it had not looked"
ROW_WAS_FRESHER = "its own row has held a fresher one"
ROW_IS_FRESHER = "its own row holds the fresher one"
AT_ONCE = "another process of the orchestrator presents it just now"
MERGE = "what stands there is good and ends later"


class Monitor:
    """Follows all chains of a run. `tell` notes an event of an actor: `attempt`, once for each."""

    def __init__(
        self,
        servers: Mapping[str, AuthorizationServer],
        stage: Watched,
        tell: Callable[[str, str, dict[str, Any]], None],
    ) -> None:
        self.stage, self.tell = stage, tell
        self.servers = dict(servers)
        self.by_origin = {origin(server.issuer): name for name, server in servers.items()}
        self.attempts: list[Attempt] = []
        self.overwrites: list[Overwrite] = []
        self.changes: list[Change] = []
        self.backwards: list[Note] = []
        self.revived: list[Note] = []
        self.ever: dict[str, dict[Chain, int]] = {}
        self.server_of: dict[Chain, str] = {}
        self.operated: set[str] = set()
        self.mistaken: set[Chain] = set()
        self.outlived: set[Chain] = set()
        self.left: dict[tuple[Chain, int], Gone] = {}
        self.dropped: dict[Chain, Gone] = {}
        self.pasts: list[Past] = []
        self._before: dict[tuple[str, Chain], Held] = {}
        self._reading: dict[str, list[tuple[str, str, int]]] = {}
        self._changing: dict[str, list[str]] = {}
        self._looks: dict[tuple[str, str], list[Look]] = {}
        self._locked: dict[str, int] = {}
        self._tried: dict[str, int] = {}
        self._given_up: set[str] = set()
        self._content: dict[str, str | None] | None = None
        self._rows: dict[str, Chains] = {}
        self._known: dict[Any, tuple[int, Chains]] = {}
        self._retired: dict[str, Mapping[Chain, int]] = {}
        self._told = 0
        self._count = 0

    # --- what the world tells

    def arrived(self, actor: str, label: str, content: bytes | None) -> None:
        """An actor has come to a switch point: what it was reading before it has read by now."""
        self._count += 1
        if self._content is None:
            self._content = {path: raw.decode("utf-8", "replace") for path, raw in self.stage.files() if is_kept(path)}
            self._rows = self._rows_now()
            self.held()
        if self._reading and actor in self._reading:
            self._have_read(actor)
        if self._changing and actor in self._changing:
            for path in self._changing.pop(actor):
                self._changed(actor, path)
        kind, what = sort_of(label)
        if kind:
            self._came(actor, kind, what, label, content)

    def _came(self, actor: str, kind: str, what: str, label: str, content: bytes | None) -> None:
        """The same where it means something."""
        if kind == "read":
            self._reading.setdefault(actor, []).append((what, label, len(self.stage.events)))
        elif kind == "changing":
            self._changing.setdefault(actor, []).append(what)
        elif kind == "changed":
            self._changed(actor, what)
        elif kind == "locking":
            self._locked[actor] = self._count
        elif kind == "committed":
            self._committed(actor)
        elif kind == "asking":
            self._tried[whose(actor)] = self._count
        elif kind == "giving up":
            self._given_up.add(what)
        elif content and b"refresh_token=" in content:
            self._posted(actor, what, content)

    def _have_read(self, actor: str) -> None:
        for store, label, since in self._reading.pop(actor):
            meanwhile = self.stage.events[since:]
            failed = bool(meanwhile) and any(
                event.name == "fault" and event.actor == actor and event.details.get("at") == label
                for event in meanwhile
            )
            look = Look(actor, self.stage.now, self._count, self._noted(store, self.held_by(store)), failed)
            self._looks.setdefault((whose(actor), store), []).append(look)

    # --- presenting

    def _posted(self, actor: str, url: str, content: bytes) -> None:
        name = self.by_origin.get(origin(url))
        token = parse_qs(content.decode(errors="replace")).get("refresh_token", [""])[0]
        generation = self.servers[name].generation(token) if name is not None else None
        if name is None or generation is None or generation.refresh != token:
            return
        chain = (name, generation.family)
        held = {store: chains[chain] for store, chains in self.held().items() if chain in chains}
        numbers = {store: each.number for store, each in held.items()}
        grace, spent_at = self.servers[name].provider.grace_seconds, generation.spent_at
        reuse = spent_at is not None and self.stage.now >= spent_at + grace
        now, event = self.stage.now, len(self.stage.events)
        attempt = Attempt(actor, chain, generation.number, numbers, now, event, self._count, url, reuse=reuse)
        wrong, hole = self._judged(attempt, is_spent=spent_at is not None)
        if not wrong and not hole and (other := self._under_way(attempt)):
            both = not is_of_a_runtime(other) and not is_of_a_runtime(actor)
            wrong, hole = (AT_ONCE, "") if both else ("", holes.NOT_YET_WRITTEN)
            attempt = attempt._replace(reuse=not grace)
        attempt = attempt._replace(wrong=wrong, hole=hole)
        self.attempts.append(attempt)
        details = {"authorization": name, "generation": attempt.generation, "fresher": list(attempt.fresher)}
        self.tell(actor, "attempt", {**details, "hole": hole, "wrong": wrong})

    def _under_way(self, attempt: Attempt) -> str:
        """Who else has presented the same token and has no answer yet: one of the two will be the second."""
        label = f"POST {attempt.url}"
        for other in self.attempts:
            if other[:3] == (other.actor, attempt.chain, attempt.generation) and other.actor != attempt.actor:
                since = (event for event in self.stage.events[other.event :] if event.actor == other.actor)
                if not any(event.details.get("at") == label or event.name == "ended" for event in since):
                    return other.actor
        return ""

    def _judged(self, attempt: Attempt, *, is_spent: bool) -> tuple[str, str]:
        """Which rule was broken, or which hole it was."""
        if is_of_a_runtime(attempt.actor):
            return "", self._hole_of_a_runtime(attempt, is_spent=is_spent)
        fresher = (store for store in attempt.fresher if not store.endswith(STAGED_FILE))
        found = [self._judged_by(attempt, store) for store in fresher]
        if not found and is_spent:
            had = self.ever.get(ROW, {}).get(attempt.chain, NOTHING) > attempt.generation
            return (
                (ROW_WAS_FRESHER, "")
                if had and attempt.chain not in self.mistaken
                else ("", self._nowhere_fresher(attempt))
            )
        return ("", "") if not found else next((each for each in found if each[0]), found[0])

    def _hole_of_a_runtime(self, attempt: Attempt, *, is_spent: bool) -> str:
        if attempt.fresher:
            return holes.STALE_UNDER_RUNTIME
        return self._nowhere_fresher(attempt) if is_spent else ""

    def _judged_by(self, attempt: Attempt, store: str) -> tuple[str, str]:
        """The same by one store that held something newer."""
        if store == ROW:
            return ROW_IS_FRESHER, ""
        who = whose(attempt.actor)
        gap = duty(seeker_of(self._session_of(who)), store, family_of(store, self.stage.text(store)))
        if gap:
            return "", gap
        looks = seen_in_time(self._looks.get((who, store), ()), self._since(attempt), attempt.at)
        good = [look for look in looks if not look.failed and self._was_answered(look)]
        if not good:
            tried = bool(looks) or (store.startswith(KEYRING) and self._tried.get(who, -1) > self._since(attempt))
            return ("", holes.NOT_READABLE) if tried else (NEVER_LOOKED, "")
        read = good[-1].held.get(attempt.chain)
        if read is None or read.number <= attempt.generation:
            return "", holes.READ_THEN_ROTATED
        return self._knew(attempt.chain, read)

    def _session_of(self, who: str) -> Any:
        """The job of the session for which a process acts; who completes a consent acts for the one that wants it."""
        jobs = self.stage.jobs
        if who in jobs:
            return jobs[who]
        _, page = tabs(self.stage.events).get(who, (0, {}))
        named = page.get("session")
        return next((job for name, job in reversed(list(jobs.items())) if named and plain(name) == named), None)

    def _knew(self, chain: Chain, read: Held) -> tuple[str, str]:
        """What was read was newer. Only its expiry can have told so."""
        row = next((chains[chain] for chains in self._rows.values() if chain in chains), None)
        if row is None or is_later(read.expires_at, row.expires_at):
            return KNEW, ""
        return "", holes.NO_LATER

    def _since(self, attempt: Attempt) -> int:
        """When the same process last presented a token of the chain: what it had read before is no excuse now."""
        who, chain = whose(attempt.actor), attempt.chain
        return max(
            (each.arrival for each in self.attempts if each.chain == chain and whose(each.actor) == who), default=-1
        )

    def _was_answered(self, look: Look) -> bool:
        """Whether what a helper of the orchestrator has read came to its parent, which waits for it a short time.

        Who sends it a signal has given it up, even where it was done at that very moment.
        """
        if "/" not in look.actor:
            return True
        if look.actor in self._given_up:
            return False
        began: float | None = None
        for event in self.stage.events:
            if event.name == "spawn" and event.details.get("child") == look.actor:
                began = event.at_seconds
            elif event.name == "ended" and event.actor == look.actor:
                in_time = began is None or event.at_seconds - began < HELPER_SECONDS
                return in_time and event.details.get("exit_code") == 0
        return False

    def _nowhere_fresher(self, attempt: Attempt) -> str:
        """What became of the tokens that the presented one was spent for."""
        given = spender(self.servers[attempt.chain[0]], attempt.chain[1], attempt.generation)
        held = {store for store, chains in self.ever.items() if chains.get(attempt.chain, NOTHING) > attempt.generation}
        if ROW in held:
            return holes.NO_LATER if attempt.chain in self.mistaken else holes.STALE_UNDER_RUNTIME
        if held:
            return self.taken_by(attempt.chain, attempt.generation)
        lost = given is not None and befell(self.stage.events, given)
        return holes.ANSWER_LOST if lost else holes.NOT_YET_WRITTEN

    def taken_by(self, chain: Chain, older: int) -> str:
        """By which hole what was newer than a generation went out of the runtimes' stores."""
        told = (each.hole for each in self.overwrites if each.chain == chain and each.before > older and each.hole)
        gone = next((self.left[which] for which in sorted(self.left) if which[0] == chain and which[1] > older), None)
        of_a_runtime = gone is not None and is_of_a_runtime(gone.actor) and gone.store.startswith(KEYRING)
        return next(told, holes.REPUBLISHED if of_a_runtime else holes.OVERWRITTEN)

    # --- writing

    def _changed(self, actor: str, path: str) -> None:
        """A file has just become another."""
        assert self._content is not None  # noqa: S101 - set at the first arrival
        before, after = self._content.get(path), self.stage.text(path)
        self._content[path] = after
        if actor == OPERATOR:
            self.operated.add(path)
        if after is not None and is_store(path):
            self._noted(path, self._in_text(after))
        if before == after:
            return
        if is_store(path):
            self._note_left(actor, path, before, after)
        if actor == OPERATOR or is_of_a_runtime(actor):
            return
        self.changes.append(Change(actor, path, before, after, len(self.stage.events)))
        if is_store(path):
            self._judge_write(actor, path, before, after)

    def _note_left(self, actor: str, path: str, before: str | None, after: str | None) -> None:
        was, now = self._in_text(before), self._in_text(after)
        for chain, held in was.items():
            if chain not in now or now[chain].number < held.number:
                self.left[chain, held.number] = Gone(actor, path, self._count)

    def _judge_write(self, actor: str, path: str, before: str | None, after: str | None) -> None:
        was, now = self._in_text(before), self._in_text(after)
        row = self.held_by(ROW)
        if path.startswith(KEYRING) and after is None:
            now = {chain: row[chain] for chain in was if chain in row}  # it is taken away for what is handed in instead
        for chain, held in now.items():
            if chain in row and held.number < row[chain].number and held != was.get(chain):
                hole = holes.STALE_UNDER_RUNTIME  # a refresh has overtaken who hands over what it had read before
                self.overwrites.append(Overwrite(actor, path, chain, row[chain].number, held.number, hole=hole))
        for chain, held in was.items():
            if chain in now and now[chain].number < held.number:
                wrong, hole = self._overwritten(actor, path, chain, held, now[chain])
                numbers = (held.number, now[chain].number)
                self.overwrites.append(Overwrite(actor, path, chain, *numbers, wrong, hole, len(self.stage.events)))

    def _overwritten(self, actor: str, path: str, chain: Chain, before: Held, after: Held) -> tuple[str, str]:
        """Whether whoever wrote had looked, and what it had seen: its look under the lock is the writing's own."""
        who = whose(actor)
        if path.startswith(KEYRING):
            if self._is_over(chain):
                return "", ""
            return self._put_back(path) or self._taken_away(actor, path, chain, after)
        under_lock = self._locked.get(actor, self._count)
        looks = [look for look in self._looks.get((who, path), ()) if look.arrival < under_lock]
        recent = seen_in_time(looks, -1, self.stage.now)
        if not recent:
            return NEVER_LOOKED, ""
        read = recent[-1].held.get(chain)
        if recent[-1].failed:
            return "", holes.NOT_READABLE
        if read is not None and read.number > after.number:
            return (KNEW, "") if is_later(read.expires_at, after.expires_at) else ("", holes.NO_LATER)
        under = [look for look in self._looks.get((who, path), ()) if look.arrival >= under_lock]
        seen = under[-1].held.get(chain) if under else None
        good = seen == before and before.expires_at is not None and before.expires_at > self.stage.now
        if (
            good
            and family_of(path, self._content_of(path)) == "claude"
            and is_later(before.expires_at, after.expires_at)
        ):
            return MERGE, ""
        return "", holes.OVERWRITTEN

    def _is_over(self, chain: Chain) -> bool:
        """Whether the provider has ended a chain: what is taken away of it is good for nothing."""
        generations = (each for each in self.servers[chain[0]].tokens if each.family == chain[1])
        return all(each.refresh_revoked for each in generations)

    def _put_back(self, path: str) -> tuple[str, str] | None:
        """Whoever asks the keyring publishes what was found, over what has come there meanwhile; None: a removal."""
        return None if self.stage.text(path) is None else ("", holes.REPUBLISHED)

    def _taken_away(self, actor: str, path: str, chain: Chain, row: Held) -> tuple[str, str]:
        """The same for an account of the keyring. A removal asks twice: whether there is one, and to remove it."""
        who = whose(actor)
        others = [look for look in self._looks.get((who, path), ()) if look.actor != actor]
        looks = seen_in_time(others[:-1], -1, self.stage.now)
        good = [look for look in looks if not look.failed and self._was_answered(look)]
        if not good:
            asked = [event for event in self.stage.events if event.name == "spawn" and event.actor == who]
            earlier = [event for event in asked if HELPER in str(event.details.get("argv"))][:-2]
            return ("", holes.NOT_READABLE) if earlier else (NEVER_LOOKED, "")
        read = good[-1].held.get(chain)
        if read is None or read.number <= row.number:
            return "", holes.OVERWRITTEN
        return (KNEW, "") if is_later(read.expires_at, row.expires_at) else ("", holes.NO_LATER)

    def _content_of(self, path: str) -> str | None:
        return (self._content or {}).get(path)

    def _committed(self, actor: str) -> None:
        """A row that holds an older generation than before went backwards; one that was retired came back."""
        self._note_retired()
        now = self._rows_now()
        if now == self._rows and not self._retired:
            return  # as after most commits, of other tables
        for key, chains in self._rows.items():
            for chain in chains.keys() - now.get(key, {}).keys():
                self.dropped[chain] = Gone(actor, ROW, self._count)
                self._before[key, chain] = chains[chain]
                self._replaced(actor, chain, chains[chain], now.get(key, {}))
        for key, chains in now.items():
            before = self._rows.get(key, {})
            for chain, held in chains.items():
                last = before.get(chain) or self._before.pop((key, chain), None)
                if last is not None and held.number < last.number:
                    self._goes_back(actor, chain, last, held)
                if held.number <= self._retired.get(key, {}).get(chain, NOTHING):
                    told = f"{actor} puts generation {held.number} of {chain[0]} back, which was retired"
                    self.revived.append(Note(actor, told, len(self.stage.events)))
        self._rows = now
        self._noted(ROW, self.held_by(ROW))

    def _replaced(self, actor: str, chain: Chain, before: Held, after: Chains) -> None:
        """A row has a chain of another grant: an older one can have been taken for newer by a later expiry alone.

        Of consents that are under way at once none is the older one: whichever is stored last counts.
        """
        for (name, family), held in after.items():
            if name != chain[0] or family > chain[1] or consent_of(self.servers[name], family, held.number) == actor:
                continue
            if is_later(held.expires_at, before.expires_at):
                self.outlived.add(chain)
                hole = holes.OLD_GRANT
                self.overwrites.append(Overwrite(actor, ROW, chain, before.number, NOTHING, hole=hole))
            else:
                told = f"{actor} puts the grant {family} over the newer one {chain[1]} of {name}"
                self.backwards.append(Note(actor, told, len(self.stage.events)))

    def _goes_back(self, actor: str, chain: Chain, before: Held, after: Held) -> None:
        """Only an expiry that is later, of an older pair, can have told that it were the newer one."""
        if is_later(after.expires_at, before.expires_at):
            self.mistaken.add(chain)
            hole = holes.NO_LATER
            self.overwrites.append(Overwrite(actor, ROW, chain, before.number, after.number, hole=hole))
        else:
            told = f"{actor} puts generation {after.number} over {before.number} of {chain[0]}"
            self.backwards.append(Note(actor, told, len(self.stage.events)))

    def _note_retired(self) -> None:
        """What rows were worth when they were retired: by their access tokens, as their refresh tokens are gone."""
        events = self.stage.events
        for event in events[self._told :]:
            if event.name == RETIRED:
                for key, row in self.stage.rows(CREDENTIALS).items():
                    if row.get("server_name") == event.details.get("server"):
                        self._retired[key] = self._access_chains(row)
        self._told = len(events)

    def rows_since(self, event: int) -> list[Mapping[str, Mapping[str, Any]]]:
        """The credential rows, by key, as they were at an event, and as they became after it."""
        later = [each.rows for each in self.pasts if each.events > event]
        return [each.rows for each in self.pasts if each.events <= event][-1:] + later

    def _access_chains(self, row: Mapping[str, Any]) -> Mapping[Chain, int]:
        found = ((name, server.generation(str(row.get("access_token")))) for name, server in self.servers.items())
        return {(name, each.family): each.number for name, each in found if each is not None}

    # --- what the stores hold

    def held(self) -> dict[str, Chains]:
        """The newest generation of every chain in every store."""
        found = {path: self.held_by(path) for path, _ in self.stage.files() if is_store(path)}
        found[ROW] = self.held_by(ROW)
        return {store: self._noted(store, chains) for store, chains in found.items()}

    def held_by(self, store: str) -> Chains:
        """The same for one store."""
        if store != ROW:
            return self._in_text(self.stage.text(store))
        newest: dict[Chain, Held] = {}
        for chains in self._rows_now().values():
            for chain, held in chains.items():
                if chain not in newest or held.number > newest[chain].number:
                    newest[chain] = held
        return newest

    def _rows_now(self) -> dict[str, Chains]:
        """What each row holds. The rows themselves are kept where they are new."""
        rows, found = self.stage.rows(CREDENTIALS), dict[str, Chains]()
        if not self.pasts or rows != self.pasts[-1].rows:
            self.pasts.append(Past(len(self.stage.events), rows))
        for key, row in rows.items():
            token = row.get("refresh_token")
            found[key] = chains = self._known_chains((token, expiry_in(row))) if token else {}
            for chain in chains:
                self.server_of[chain] = str(row.get("server_name"))
        return found

    def _in_text(self, text: str | None) -> Chains:
        """What a file of that text holds; None is no file."""
        return self._known_chains(text) if text else {}

    def _known_chains(self, held: str | tuple[str, float | None]) -> Chains:
        """What a text holds, or a token with its expiry. That stays the same until a token is given out."""
        count = 0
        for server in self.servers.values():
            count += server.token_count
        known = self._known.get(held)
        if known is None or known[0] != count:
            chains = self._chains(tokens_in(held) if isinstance(held, str) else (held,))
            known = self._known[held] = (count, chains)
        return known[1]

    def _chains(self, written: Sequence[tuple[str, float | None]]) -> Chains:
        newest: dict[Chain, Held] = {}
        for text, expires_at in written:
            for name, server in self.servers.items():
                found = server.generation(text)
                if found is not None and found.refresh == text:
                    chain = (name, found.family)
                    if chain not in newest or found.number > newest[chain].number:
                        newest[chain] = Held(found.number, expires_at)
        return newest

    def _noted(self, store: str, held: Chains) -> Chains:
        """What a store has ever held."""
        ever = self.ever.setdefault(store, {})
        for chain, each in held.items():
            ever[chain] = max(each.number, ever.get(chain, NOTHING))
        return held


def spender(server: AuthorizationServer, family: int, number: int) -> Received | None:
    """The request for which a token was first spent."""
    asked = (each for each in server.requests if (each.family, each.generation) == (family, number))
    return next((each for each in asked if each.issued is not None), None)


def giving(server: AuthorizationServer, family: int, number: int) -> Received | None:
    """The request that a generation was given for: a refresh names its family, a code has begun one."""
    for each in server.requests:
        code = server.codes.get(str(each.fields.get("code")))
        if each.issued == number and family == (each.family if code is None else code.family):
            return each
    return None


def consent_of(server: AuthorizationServer, family: int, number: int) -> str:
    """Who exchanged the code that a generation was given for; empty where it came of a refresh."""
    given = giving(server, family, number)
    return "" if given is None or "code" not in given.fields else given.who
