"""Known-bad variants of what a server advertised: asking, recording, reading."""

from __future__ import annotations

from harness.reference.oauth import requirement, transport
from harness.reference.oauth.check import Check, record_check
from harness.reference.oauth.check import check_oauth_requirement as check_rule
from harness.reference.oauth.requirement import NOT_REQUIRED_FOR_SECONDS, TABLE, Record
from harness.reference.oauth.requirement import determination as determination_rule
from harness.reference.oauth.requirement import effective as effective_rule
from harness.reference.oauth.requirement import log_line as log_line_rule
from harness.reference.oauth.requirement import record as record_rule
from harness.reference.oauth.requirement import recorded as recorded_rule
from harness.reference.surfaces.requirement import RequirementRow
from harness.reference.surfaces.requirement import requirement_row as requirement_row_rule
from harness.requirements.variants import variant
from harness.world import Ambiguous, NotSent, Request, Response, header

REQUIREMENT = "harness.reference.oauth.requirement"
CHECK = "harness.reference.oauth.check"
PROBE = "harness.reference.oauth.probe"
PAGE = "harness.reference.surfaces.requirement"


# --- what an answer says


@variant(f"{REQUIREMENT}:determination", catches=("requirement-adv-required-bearer-401",))
def only_a_named_document_is_a_requirement(answer):
    """Wants resource_metadata in the challenge."""
    said = determination_rule(answer)
    named = isinstance(answer, Response) and "resource_metadata" in (header(answer.headers, "WWW-Authenticate") or "")
    return said if said != "advertised_required" or named else "undetermined"


@variant(f"{CHECK}:required", catches=("requirement-adv-required-discovery",))
async def the_challenge_is_wanted_too(world, found, status, configured, redirect_uri, *, registers):
    """Does not believe the documents alone."""
    said: requirement.Determination = "advertised_required" if status == 401 else "undetermined"
    return Check(required=True, determination=said, discovered=found, client=configured, status=status)


@variant(f"{REQUIREMENT}:has_bearer_challenge", catches=("requirement-401-not-bearer",))
def any_challenge_counts(header):
    """Takes every 401 for a requirement."""
    return True


@variant(f"{REQUIREMENT}:has_bearer_challenge", catches=("requirement-bearer-scheme-case",))
def bearer_is_a_substring(header):
    """Looks for the letters, in one case, anywhere."""
    return "Bearer" in (header or "")


@variant(
    f"{REQUIREMENT}:is_mcp_type",
    catches=(
        "requirement-not-required-2xx-mcp",
        "requirement-2xx-html-undetermined",
        "requirement-quiet-direction-narrow",
    ),
)
def any_success_is_evidence(content_type):
    """Believes a landing page."""
    return True


@variant(f"{REQUIREMENT}:is_mcp_type", catches=("requirement-content-type-parsing",))
def the_type_is_a_substring(content_type):
    """Looks for the name anywhere in the header."""
    return "json" in (content_type or "") or "event-stream" in (content_type or "")


@variant(
    f"{REQUIREMENT}:determination",
    catches=("requirement-other-status-undetermined", "requirement-quiet-direction-narrow"),
)
def a_400_has_served_us(answer):
    """Takes "missing session id" for an open server."""
    if isinstance(answer, Response) and answer.status in (302, 400, 403, 404, 405, 429, 500, 503):
        return "advertised_not_required"
    return determination_rule(answer)


@variant(f"{REQUIREMENT}:determination", catches=("requirement-connection-error-undetermined",))
def an_unreachable_server_needs_no_oauth(answer):
    """Takes silence for consent."""
    return "advertised_not_required" if isinstance(answer, (NotSent, Ambiguous)) else determination_rule(answer)


@variant(
    f"{CHECK}:undetermined", catches=("requirement-connection-error-undetermined", "flow-discovery-errors-contained")
)
def an_error_is_a_requirement(error):
    """Blocks where the server could not be asked."""
    return Check(required=True, determination="advertised_required", error=error)


# --- asking


@variant(f"{CHECK}:ask", catches=("requirement-ask-method",))
async def the_probe_is_an_initialize(world, url):
    """Posts an initialize request."""
    try:
        return await transport.send(world, Request("POST", url, {}, b'{"method": "initialize"}'))
    except (NotSent, Ambiguous) as error:
        return error


@variant(f"{CHECK}:ask", catches=("requirement-no-token-needed",))
async def the_stored_token_is_sent_along(world, url):
    """Records what an authenticated request was answered."""
    rows = await world.store.rows("mcp_oauth_credentials")
    tokens = [{"Authorization": f"Bearer {row.values.get('access_token')}"} for row in rows]
    try:
        return await transport.send(world, Request("GET", url, next(iter(tokens), {})))
    except (NotSent, Ambiguous) as error:
        return error


@variant(f"{PROBE}:selection_changed", catches=("requirement-probe-on-selection-change",))
def plugins_do_not_count(before, after):
    """Asks again only where the chosen servers were edited."""
    return set(before.chosen) != set(after.chosen)


@variant(f"{PROBE}:oauth_capable", catches=("requirement-static-header-not-asked",))
def every_server_is_asked(entry):
    """Asks servers with a static credential as well."""
    return True


@variant(f"{PROBE}:is_definite", catches=("requirement-blip-keeps-session",))
def a_failed_probe_costs_the_session(determination):
    """Fails an idle session where the server could not be asked."""
    return determination != "advertised_not_required"


@variant(f"{PROBE}:record_check", catches=("requirement-recorded-by-both",))
async def only_the_gate_records(world, server, check):
    """Keeps the probe's answer to itself."""


@variant("harness.reference.session.gate:record_check", catches=("requirement-recorded-by-both",))
async def undetermined_answers_are_not_recorded(world, server, check):
    """Records only what is definite."""
    if check.determination != "undetermined":
        await record_check(world, server, check)


@variant("harness.reference.session.gate:ask", catches=("requirement-gate-ignores-record",))
async def the_gate_trusts_a_fresh_record(world, order, server):
    """Asks nobody where an answer is recorded."""
    known = effective_rule(await recorded_rule(world, server.credential_key), world.clock.now())
    return Check(required=known == "advertised_required", determination=known)


@variant(f"{CHECK}:record_check", catches=("requirement-gate-and-record-agree",))
async def the_record_asks_again(world, server, check):
    """Probes a second time for the record."""
    again = await check_rule(world, server, configured=None, redirect_uri="https://zimmer.test/cb", registers=False)
    await requirement.record(world, server.name, server.credential_key, again.determination, again.detail)


# --- recording


@variant(f"{REQUIREMENT}:record", catches=("requirement-one-row-per-config",))
async def each_answer_is_a_row(world, server_name, credential_key, determination, detail=None):
    """Appends."""
    count = len(await world.store.rows(TABLE))
    await record_rule(world, server_name, f"{credential_key}#{count}", determination, detail)


@variant(f"{CHECK}:record_check", catches=("requirement-key-follows-config", "requirement-one-row-per-config"))
async def the_record_is_keyed_by_name(world, server, check):
    """Lets an edited URL inherit the old answer."""
    await requirement.record(world, server.name, server.name, check.determination, check.detail)


@variant(f"{REQUIREMENT}:recorded", catches=("requirement-key-follows-config",))
async def the_record_is_found_by_name(world, credential_key):
    """Reads the answer of whichever config had this name."""
    name = credential_key.partition("|")[0]
    rows = [row for row in await world.store.rows(TABLE) if row.key.partition("|")[0] == name]
    return requirement.read_record(credential_key, rows[-1].values) if rows else None


@variant(f"{REQUIREMENT}:is_recordable", catches=("requirement-three-values", "requirement-record-write-best-effort"))
def anything_is_recorded(server_name, credential_key, determination):
    """Stores unknown values."""
    return True


@variant(f"{REQUIREMENT}:effective", catches=("requirement-three-values", "requirement-undetermined-means-maybe"))
def unknown_collapses_into_false(record, now):
    """Keeps a boolean."""
    said = effective_rule(record, now)
    return "advertised_not_required" if said == "undetermined" else said


@variant(f"{REQUIREMENT}:oauth_required_for", catches=("requirement-tri-state-reader",))
def unknown_is_false(record, now):
    """Answers false where nothing is known."""
    return effective_rule(record, now) == "advertised_required"


@variant(f"{REQUIREMENT}:kept_detail", catches=("requirement-detail-capped",))
def the_detail_is_kept_whole(detail):
    """Stores whatever it is given."""
    return detail or None


@variant(f"{REQUIREMENT}:effective", catches=("requirement-not-required-expires",))
def nothing_ever_expires(record, now):
    """Believes an open server for ever."""
    return effective_rule(record and record._replace(recorded_at=now), now)


@variant(f"{REQUIREMENT}:effective", catches=("requirement-required-never-expires",))
def everything_expires(record, now):
    """Has one lifetime for all values."""
    old = record is not None and now - record.recorded_at >= NOT_REQUIRED_FOR_SECONDS
    return "undetermined" if old else effective_rule(record, now)


@variant(f"{REQUIREMENT}:effective", catches=("requirement-expiry-boundary",))
def seven_days_are_inclusive(record, now):
    """Believes it at exactly seven days."""
    return effective_rule(record and record._replace(recorded_at=record.recorded_at + 1e-3), now)


@variant(f"{REQUIREMENT}:record", catches=("requirement-reprobe-renews",))
async def the_first_time_stands(world, server_name, credential_key, determination, detail=None):
    """Keeps the moment of the first answer."""
    before: Record | None = await recorded_rule(world, str(credential_key))
    await record_rule(world, server_name, credential_key, determination, detail)
    if before is not None:
        transaction = await world.store.begin()
        row = await transaction.get(TABLE, str(credential_key))
        await transaction.put(TABLE, str(credential_key), {**row.values, "recorded_at": before.recorded_at})
        await transaction.commit()


# --- telling


@variant(f"{REQUIREMENT}:log_line", catches=("requirement-log-not-required", "requirement-log-undetermined"))
def both_do_not_require_oauth(server_name, determination, error=None):
    """Says the same of an open server and of one that could not be asked."""
    if determination == "advertised_required":
        return log_line_rule(server_name, determination, error)
    return f"MCP server '{server_name}' does not require OAuth"


@variant(f"{PAGE}:requirement_row", catches=("requirement-button-independent", "requirement-undetermined-means-maybe"))
def the_record_takes_the_button(status, entry, records, credentials, now):
    """Offers the button only where the server advertised the requirement."""
    row = requirement_row_rule(status, entry, records, credentials, now)
    return row._replace(authorizable=row.authorizable and row.cause == "advertised")


@variant(f"{PAGE}:cause_text", catches=("requirement-row-says-assumed", "requirement-three-causes-distinct"))
def one_text_serves_all(cause):
    """Says the same whatever the cause."""
    return "Zimmer is assuming that this server requires OAuth."


@variant(f"{PAGE}:record_of", catches=("requirement-page-reads-record",))
def the_record_is_not_read(entry, records):
    """Guesses from the entry alone."""
    return


@variant(f"{PAGE}:record_of", catches=("requirement-key-follows-config",))
def the_record_of_the_name_is_read(entry, records):
    """Takes any record of that name."""
    return next((each for key, each in records.items() if key.partition("|")[0] == entry.name), None)


@variant(f"{PAGE}:requirement_rows", catches=("requirement-two-askers",))
async def the_page_probes(world, catalog, statuses, credentials):
    """Asks each server while the page is rendered."""
    for status in statuses:
        await transport.get(world, str(catalog.require(status.name).url))
    return {status.name: RequirementRow(status.authorizable, "assumed", None) for status in statuses}
