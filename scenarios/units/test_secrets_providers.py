"""The chain of providers behind a secret's name."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from harness.reference.secrets.loader import ABSENT, UNREACHABLE, Resolution, SecretsLoader, VendorError
from harness.reference.secrets.loader import StoreUnavailableError as StoreDownError
from harness.reference.secrets.location import parameter_id, store_path, where_to_set
from harness.reference.secrets.providers import ParameterStore, credential_values, store_settings

X_NAME = "X_OAUTH_ACCESS_TOKEN"


@dataclass
class Vendor:
    """A vendor that hands out the tokens it holds, or fails."""

    tokens: dict[str, str] = field(default_factory=dict)
    fails: bool = False
    asked: list[str] = field(default_factory=list)

    def has_row(self, name: str) -> bool:
        self.asked.append(name)
        return name in self.tokens

    def mint(self, name: str) -> str | None:
        if self.fails:
            raise VendorError(f"refused {self.tokens[name]}")
        return self.tokens[name]


@dataclass
class Store:
    """A Parameter Store that holds some values, or does not answer."""

    values: dict[str, str] = field(default_factory=dict)
    down: bool = False

    def read(self, name: str) -> str | None:
        if self.down:
            raise StoreDownError("503")
        return self.values.get(name)


@pytest.mark.requirement("secrets-loader-order")
def test_the_vendor_comes_first_then_the_credentials_then_the_environment():
    loader = SecretsLoader(
        vendor=Vendor({X_NAME: "vendor"}),
        credentials={X_NAME: "credentials", "K": "credentials"},
        environment={X_NAME: "env", "K": "env", "ONLY_ENV": "env"},
    )
    names = [X_NAME, "K", "ONLY_ENV", "NOWHERE"]
    assert [loader.value(name) for name in names] == ["vendor", "credentials", "env", None]


@pytest.mark.requirement("secrets-vendor-scope")
def test_the_vendor_is_asked_only_for_x_tokens_that_have_a_row_and_its_errors_count_as_absent():
    vendor = Vendor({X_NAME: "minted"})
    said: list[str] = []
    loader = SecretsLoader(vendor=vendor, credentials={X_NAME: "c", f"{X_NAME}_B": "b", "OTHER": "o"}, warn=said.append)
    assert (loader.value("OTHER"), loader.resolution("OTHER").badge) == ("o", "Rails Credentials")
    assert vendor.asked == []
    assert loader.value(f"{X_NAME}_B") == "b"
    vendor.fails = True
    assert loader.value(X_NAME) == "c"
    assert len(said) == 1
    assert "minted" not in said[0]
    assert SecretsLoader(vendor=vendor).value(X_NAME) is None
    without = SecretsLoader(environment={X_NAME: "e"})
    assert (without.value(X_NAME), without.resolution(X_NAME).badge) == ("e", "ENV")


@pytest.mark.requirement("secrets-vendor-fresh")
def test_a_rotated_vendor_token_is_seen_at_the_next_lookup():
    vendor = Vendor({X_NAME: "first"})
    loader = SecretsLoader(vendor=vendor)
    before = loader.value(X_NAME)
    vendor.tokens[X_NAME] = "second"
    assert (before, loader.value(X_NAME)) == ("first", "second")


@pytest.mark.requirement("secrets-store-position")
def test_a_configured_store_sits_between_the_vendor_and_the_credentials():
    credentials, environment = {"K": "b", X_NAME: "b"}, {"K": "env"}
    vendor = Vendor({X_NAME: "minted"})
    with_store = SecretsLoader(
        vendor=vendor,
        store=Store({"K": "a", X_NAME: "a"}),
        credentials=credentials,
        environment=environment,
    )
    without = SecretsLoader(credentials=credentials, environment=environment)
    assert (with_store.value("K"), with_store.value(X_NAME), without.value("K")) == ("a", "minted", "b")


@pytest.mark.requirement("secrets-store-position")
def test_a_store_with_half_its_settings_is_not_configured():
    key = "ZIMMER_PARAMS_RESOLVER_SERVICE_ACCOUNT_KEY_JSON"
    assert store_settings({"ZIMMER_PARAMS_PROJECT_ID": "p"}) == (False, (key,))
    assert store_settings({"ZIMMER_PARAMS_PROJECT_ID": "p", key: " "}) == (False, (key,))
    assert store_settings({"ZIMMER_PARAMS_PROJECT_ID": "p", key: "{}"}) == (True, ())


@pytest.mark.requirement("secrets-store-outage-no-fallthrough")
def test_a_store_that_does_not_answer_is_no_reason_to_use_an_older_value():
    loader = SecretsLoader(store=Store(down=True), credentials={"K": "stale"}, environment={"K": "stale"})
    with pytest.raises(StoreDownError):
        loader.value("K")
    assert loader.resolution("K") == UNREACHABLE


@pytest.mark.requirement("secrets-resolution-never-value")
def test_a_resolution_names_the_provider_and_never_holds_the_value():
    value = "marker-value"
    loader = SecretsLoader(
        vendor=Vendor({X_NAME: value}),
        store=Store({"IN_STORE": value}),
        credentials={"IN_CREDENTIALS": value},
        environment={"IN_ENV": value},
    )
    names = ["IN_STORE", "IN_CREDENTIALS", "IN_ENV", X_NAME, "NOWHERE"]
    answers = [loader.resolution(name) for name in names]
    assert [answer.badge for answer in answers] == [
        "GSM",
        "Rails Credentials",
        "ENV",
        "X OAuth",
        "Unresolved",
    ]
    assert [answer.state for answer in answers] == ["found"] * 4 + ["absent"]
    assert SecretsLoader(store=Store(down=True)).resolution("K") == Resolution("unreachable", "Unknown")
    assert value not in repr([answers, loader])


@pytest.mark.requirement("secrets-blank-is-missing")
@pytest.mark.parametrize("blank", ["", "  "])
def test_a_blank_value_is_not_found(blank):
    assert SecretsLoader(environment={"V": blank}).resolution("V") == ABSENT


@pytest.mark.requirement("secrets-credentials-rows")
def test_credentials_rows_without_a_name_or_a_value_are_ignored_and_the_last_duplicate_counts():
    rows = [("A", "1"), ("B", ""), ("", "x"), ("A", "2")]
    assert credential_values([{"name": name, "value": value} for name, value in rows]) == {"A": "2"}
    assert credential_values([{"name": "A"}, {"value": "x"}, {"name": "B", "value": 5}]) == {}
    assert credential_values(None) == {}


class Namespace:
    """A store's namespace under a clock that a test moves."""

    def __init__(self, values: dict[str, str]) -> None:
        self.values, self.now, self.reads, self.down = values, 0.0, 0, False
        self.store = ParameterStore(self.fetch, lambda: self.now)

    def fetch(self) -> dict[str, str]:
        self.reads += 1
        if self.down:
            raise StoreDownError("503")
        return self.values

    def at(self, now: float, name: str) -> str | None:
        self.now = now
        return self.store.read(name)


@pytest.mark.requirement("secrets-store-ttl")
def test_a_namespace_is_reused_for_a_minute_and_read_again_for_a_miss_after_ten_seconds():
    namespace = Namespace({"KNOWN": "old"})
    assert namespace.at(0, "KNOWN") == "old"
    namespace.values = {"KNOWN": "new", "ADDED": "a"}
    assert namespace.at(5, "ADDED") is None
    assert namespace.at(9.9, "KNOWN") == "old"
    assert namespace.reads == 1
    assert namespace.at(11, "ADDED") == "a"
    namespace.values = {"KNOWN": "newest"}
    assert (namespace.at(70.9, "KNOWN"), namespace.at(71, "KNOWN")) == ("new", "newest")
    assert namespace.reads == 3


@pytest.mark.requirement("secrets-store-warm-outage")
def test_a_store_that_was_read_once_serves_its_last_values_while_it_is_down():
    namespace = Namespace({"K": "last"})
    assert namespace.at(0, "K") == "last"
    namespace.down = True
    assert namespace.at(120, "K") == "last"
    cold = Namespace({})
    cold.down = True
    with pytest.raises(StoreDownError):
        cold.at(0, "K")


@pytest.mark.requirement("secrets-where-to-set")
def test_a_human_is_told_where_a_missing_value_goes():
    path = store_path("STRAD_API_KEY", "production")
    assert (path, parameter_id(path)) == (
        "/zimmer/production/mcp/static/STRAD_API_KEY",
        "zimmer-production-mcp-static-strad-api-key",
    )
    long_path = store_path("A_VERY_LONG_SECRET_NAME_THAT_DOES_NOT_FIT", "production")
    assert parameter_id(long_path) == "zimmer-production-mcp-static-a-very-long-secret-name-t-7d3ce704"
    in_store = where_to_set("STRAD_API_KEY", "production", store_configured=True)
    in_credentials = where_to_set("STRAD_API_KEY", "production", store_configured=False)
    assert path in in_store
    assert "config/credentials/production.yml.enc" in in_credentials
    assert "bin/rails credentials:edit -e production" in in_credentials
    assert all("<the-secret-value>" in text for text in (in_store, in_credentials))
