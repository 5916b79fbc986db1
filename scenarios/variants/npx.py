"""Known-bad variants of the npx rules: old bugs, and plausible ones."""

from __future__ import annotations

from harness.reference.npx import guard, heal, layout
from harness.reference.npx.containment import is_contained as is_contained_rule
from harness.reference.npx.containment import is_contained_resolved as is_contained_resolved_rule
from harness.reference.npx.guard import plan as guard_plan
from harness.reference.npx.guard import walkable_root as walkable_root_rule
from harness.reference.npx.heal import named_trees as named_trees_rule
from harness.reference.npx.heal import plan as heal_plan
from harness.reference.npx.isolation import cache_directories as cache_directories_rule
from harness.reference.npx.isolation import colliding as colliding_rule
from harness.reference.npx.isolation import own_cache as own_cache_rule
from harness.reference.npx.layout import install_roots as install_roots_rule
from harness.reference.npx.layout import isolated_cache as isolated_cache_rule
from harness.reference.npx.layout import locate as locate_rule
from harness.reference.npx.layout import shared_cache as shared_cache_rule
from harness.reference.npx.layout import shared_root as shared_root_rule
from harness.reference.npx.paths import join, resolve
from harness.reference.npx.specs import entry_specs as entry_specs_rule
from harness.reference.npx.specs import install_hash as install_hash_rule
from harness.reference.npx.specs import is_npx_entry as is_npx_entry_rule
from harness.requirements.variants import variant

SPECS = "harness.reference.npx.specs"
LAYOUT = "harness.reference.npx.layout"
ISOLATION = "harness.reference.npx.isolation"
CONTAINMENT = "harness.reference.npx.containment"
HEAL = "harness.reference.npx.heal"
GUARD = "harness.reference.npx.guard"


@variant(f"{SPECS}:is_npx_entry", catches=("npx-pin-scope-exact",))
def matches_the_basename_in_any_case(entry):
    """Takes every command whose last path segment is npx."""
    command = entry.get("command") if isinstance(entry, dict) else None
    return isinstance(command, str) and command.strip().rpartition("/")[2].lower() == "npx"


@variant(f"{SPECS}:is_npx_entry", catches=("npx-pin-scope-exact",))
def matches_npx_anywhere_in_the_entry(entry):
    """Takes every entry that says npx in its command or args."""
    return isinstance(entry, dict) and "npx" in f"{entry.get('command')} {entry.get('args')}"


@variant(f"{SPECS}:package_specs", catches=("npx-spec-parse",))
def takes_the_last_positional(args):
    """Takes the last argument without a dash."""
    texts = [arg for arg in args if isinstance(arg, str)] if isinstance(args, list) else []
    return tuple(arg for arg in texts if not arg.startswith("-"))[-1:]


@variant(f"{SPECS}:package_specs", catches=("npx-spec-parse",))
def takes_the_first_argument_without_a_dash(args):
    """Takes a value flag's value for the package."""
    texts = [arg for arg in args if isinstance(arg, str)] if isinstance(args, list) else []
    return tuple(arg for arg in texts if not arg.startswith("-"))[:1]


@variant(f"{SPECS}:install_key", catches=("npx-key-by-spec-only",))
def hashes_the_whole_command_line(args):
    """Two servers with other flags get other directories."""
    return install_hash_rule([str(arg) for arg in args])


@variant(f"{ISOLATION}:collision_key", catches=("npx-key-by-spec-only", "npx-collide-detects"))
def collides_on_equal_args_only(entry):
    """Compares the args arrays as a whole."""
    return tuple(entry.get("args") or ()) if is_npx_entry_rule(entry) else ()


@variant(f"{ISOLATION}:collision_key", catches=("npx-key-includes-version-text",))
def collides_on_package_names(entry):
    """Drops the versions before comparing."""
    return tuple(sorted(spec[:1] + spec[1:].partition("@")[0] for spec in entry_specs_rule(entry)))


@variant(f"{SPECS}:install_hash", catches=("npx-key-includes-version-text",))
def hashes_package_names(given):
    """Drops the versions before hashing."""
    return install_hash_rule([spec[:1] + spec[1:].partition("@")[0] for spec in given])


@variant("harness.gate.rules.npx:runs_npm_package_otherwise", catches=("npx-catalog-bare-form",))
def reports_no_other_spelling(entry):
    """Says nothing about an entry that escapes pinning."""
    return


@variant(f"{ISOLATION}:own_cache", catches=("npx-pin-operator-value-kept", "npx-isolate-stable-across-prepare"))
def ignores_a_cache_of_ones_own(entry):
    """Overwrites what an operator or an earlier prepare wrote."""
    return


@variant(f"{ISOLATION}:own_cache", catches=("npx-pin-operator-value-kept",))
def takes_a_blank_cache_for_a_choice(entry):
    """Keeps a blank value."""
    env = entry.get("env")
    return env.get("NPM_CONFIG_CACHE") if isinstance(env, dict) else None


@variant(f"{ISOLATION}:pinned", catches=("npx-pin-env-merged",))
def replaces_the_env_table(entry, cache):
    """Drops the entry's other variables."""
    return {**entry, "env": {"NPM_CONFIG_CACHE": cache}}


@variant(f"{ISOLATION}:has_env_table", catches=("npx-pin-env-merged",))
def wants_an_env_table_to_be_there(entry):
    """Leaves an entry without an env table unpinned."""
    return isinstance(entry.get("env"), dict)


@variant(f"{ISOLATION}:cache_directories", catches=("npx-pin-without-args",))
def leaves_an_unreadable_package_unpinned(clone, servers):
    """Pins nothing where no package was found."""
    planned = cache_directories_rule(clone, servers)
    return {name: cache for name, cache in planned.items() if entry_specs_rule(servers[name])}


@variant(f"{ISOLATION}:cache_directories", catches=("npx-pin-needs-working-directory", "npx-pin-absolute-path"))
def writes_a_relative_cache(clone, servers):
    """Writes `.npm-cache`, which each server resolves against its own directory."""
    return {name: ".npm-cache" for name, entry in servers.items() if is_npx_entry_rule(entry)}


@variant(f"{LAYOUT}:shared_cache", catches=("npx-layout-shared-root",))
def keeps_the_cache_where_npm_does(clone):
    """Uses `.npm` in the clone."""
    return join(clone, ".npm")


@variant(f"{LAYOUT}:isolated_cache", catches=("npx-layout-isolated-root", "npx-isolate-each"))
def isolates_all_servers_together(clone, server):
    """Twins share again."""
    return join(shared_cache_rule(clone), "isolated/twins")


@variant(f"{LAYOUT}:directory_name", catches=("npx-layout-name-sanitize", "npx-layout-name-collision"))
def uses_the_raw_name(name):
    """`..` is the shared cache, `a/b` lies a level deeper."""
    return name or ""


@variant(f"{LAYOUT}:install_roots", catches=("npx-layout-discovery-roots", "npx-layout-single-owner"))
def knows_only_the_shared_root(clone, directories):
    """Looks for no nested root."""
    return (shared_root_rule(clone),) if clone else ()


@variant(f"{LAYOUT}:locate", catches=("npx-layout-discovery-roots",))
def looks_for_roots_at_any_depth(relative):
    """Takes every `_npx` below the cache for a root."""
    head, found, rest = relative.partition("/_npx")
    return layout.Located(head + found, rest.strip("/")) if found and head.startswith(".npm-cache") else None


@variant(f"{LAYOUT}:install_trees", catches=("npx-layout-discovery-hash", "npx-heal-bare-hash"))
def looks_for_a_hash_in_the_shared_root_only(clone, directories, digest):
    """An isolated server's corrupt tree survives."""
    return (join(shared_root_rule(clone), digest),)


@variant(f"{LAYOUT}:clear_targets", catches=("npx-layout-clear-covers-isolated", "npx-layout-single-owner"))
def clears_the_shared_install_root_only(clone, directories):
    """Leaves isolated caches and tarballs."""
    return (shared_root_rule(clone),) if clone.startswith("/") else ()


@variant(f"{CONTAINMENT}:is_contained", catches=("npx-layout-containment", "npx-heal-containment"))
def compares_prefixes_of_text(path, base):
    """`clones-evil` passes for `clones`, and dots climb out."""
    return bool(path) and path.startswith(base) and "/.npm-cache/" in path and "/_npx" in path


@variant(f"{CONTAINMENT}:clones_base", catches=("npx-layout-containment",))
def knows_the_clones_below_home_only(home, agent_clones_dir=None):
    """Takes every clone of a moved base for a foreign directory."""
    return join(home, ".zimmer/clones")


@variant(
    f"{CONTAINMENT}:is_contained_resolved",
    catches=("npx-layout-containment-resolved", "npx-heal-containment", "npx-pi-killed-install-leftover"),
)
def believes_the_path_in_the_text(path, base, links):
    """Removes what a server's error text names."""
    return True


@variant(f"{CONTAINMENT}:is_contained_resolved", catches=("npx-layout-containment-resolved",))
def follows_no_link(path, base, links):
    """Checks the text of the path alone."""
    return is_contained_rule(path, base)


@variant(f"{CONTAINMENT}:is_contained_resolved", catches=("npx-layout-symlinked-base-ok",))
def compares_a_resolved_path_with_an_unresolved_base(path, base, links):
    """A base that is a link makes every clone look foreign."""
    return is_contained_rule(resolve(path, links), base)


@variant(f"{ISOLATION}:directory_clashes", catches=("npx-layout-name-collision",))
def says_nothing_about_shared_directories(servers):
    """Two names share a directory without a word."""
    return ()


@variant(f"{ISOLATION}:planned_cache", catches=("npx-isolate-each", "npx-isolate-operator-value-counts"))
def isolates_nobody(name, clone, collides):
    """Twins race in the shared cache."""
    return shared_cache_rule(clone)


@variant(f"{ISOLATION}:colliding", catches=("npx-isolate-each", "npx-collide-detects"))
def isolates_all_but_the_first(servers):
    """The first of the twins keeps the shared root and meets every later addition there."""
    return colliding_rule(servers)[1:]


@variant(f"{ISOLATION}:colliding", catches=("npx-isolate-operator-value-counts",))
def drops_operators_from_the_group(servers):
    """A twin of an operator's own cache returns to the shared cache."""
    return colliding_rule({name: entry for name, entry in servers.items() if "NPM_CONFIG_CACHE" not in str(entry)})


@variant(f"{ISOLATION}:planned_cache", catches=("npx-isolate-noncolliding-share",))
def isolates_every_server(name, clone, collides):
    """Each server downloads every tarball for itself."""
    return isolated_cache_rule(clone, name)


@variant(f"{ISOLATION}:pin_caches", catches=("npx-isolate-injected-irrelevant", "npx-pin-scope-exact"))
def adds_an_env_table_to_every_entry(servers, clone):
    """Codex refuses the whole config for an env table on a remote entry."""
    cache = {"NPM_CONFIG_CACHE": shared_cache_rule(clone)}
    return {name: {**entry, "env": cache} if isinstance(entry, dict) else entry for name, entry in servers.items()}


@variant(f"{ISOLATION}:pinned", catches=("npx-isolate-stable-across-prepare",))
def isolates_below_the_earlier_value(entry, cache):
    """Each prepare goes one level deeper."""
    earlier = own_cache_rule(entry)
    return {**entry, "env": {"NPM_CONFIG_CACHE": f"{earlier}/isolated/again" if earlier else cache}}


@variant(f"{HEAL}:is_corruption", catches=("npx-heal-detects",))
def asks_for_a_mark_only(error):
    """Removes trees on a plain package bug."""
    return any(mark.lower() in error.lower() for mark in heal.CORRUPTION_MARKS)


@variant(f"{HEAL}:is_corruption", catches=("npx-heal-detects",))
def knows_the_two_documented_marks_alone(error):
    """Leaves a tree with a module missing, which is the commonest corruption of all."""
    return "_npx" in error and ("ENOTEMPTY" in error or "ERR_UNSUPPORTED_DIR_IMPORT" in error)


@variant(f"{HEAL}:is_corruption", catches=("npx-heal-not-for-permissions",))
def takes_any_npm_error_for_corruption(error):
    """Deletes the cache on a permission problem."""
    return bool(error)


@variant(f"{HEAL}:candidates", catches=("npx-heal-named-hash-only",))
def removes_every_root(error, working_directory, listing):
    """Every other server of the session downloads its packages again."""
    return install_roots_rule(working_directory or "", listing.directories)


@variant(f"{HEAL}:candidates", catches=("npx-heal-no-hash",))
def removes_nothing_without_a_hash(error, working_directory, listing):
    """Leaves the corrupt tree when the text names none."""
    return named_trees_rule(error)


@variant(f"{HEAL}:named_trees", catches=("npx-heal-isolated-path",))
def wants_the_install_root_next_to_the_cache(error):
    """Does not see the trees of isolated caches."""
    return tuple(tree for tree in named_trees_rule(error) if ".npm-cache/_npx" in tree)


@variant(f"{HEAL}:removable", catches=("npx-heal-missing-not-counted",))
def counts_what_is_not_there(tree, listing, base):
    """The log claims a repair of nothing."""
    return is_contained_resolved_rule(tree, base, listing.links)


@variant(f"{HEAL}:carry_out", catches=("npx-heal-error-safe",))
def stops_at_the_first_failure(removals, remove):
    """One tree that cannot be removed leaves all later ones."""
    removed = []
    for tree in removals:
        try:
            remove(tree)
        except OSError:
            break
        removed.append(tree)
    return heal.HealResult(bool(removed), tuple(removed))


@variant(f"{HEAL}:plan", catches=("npx-heal-covers-other-causes",))
def heals_isolated_servers_only(error, working_directory, listing, clones_base):
    """Leaves a corrupt tree that no collision explains."""
    removals = heal_plan(error, working_directory, listing, clones_base).removals
    return heal.HealPlan(tuple(tree for tree in removals if "/isolated/" in tree))


@variant(f"{GUARD}:repaired_mode", catches=("npx-guard-mode-mirror",))
def makes_every_target_0755(mode):
    """Widens a private file."""
    return None if mode & 0o111 else 0o755


@variant(f"{GUARD}:repaired_mode", catches=("npx-guard-repairs-0644",))
def repairs_nothing(mode):
    """Leaves the bin without its execute bit."""
    return


@variant(f"{GUARD}:repaired_mode", catches=("npx-guard-idempotent", "npx-guard-repairs-0644"))
def changes_the_mode_every_time(mode):
    """Reports what can run already."""
    return mode & 0o777 | 0o111


@variant(f"{GUARD}:walkable_root", catches=("npx-guard-all-roots",))
def walks_the_shared_root_only(root, clone, tree):
    """Skips the isolated roots, whose package is the one that ships 0644."""
    return join(clone, root) if root == ".npm-cache/_npx" else None


@variant(
    f"{GUARD}:walkable_root",
    catches=("npx-guard-root-outside-not-walked", "npx-layout-containment-resolved"),
)
def checks_the_text_of_a_root_only(root, clone, tree):
    """Walks a root that is a link to somewhere else."""
    return resolve(join(clone, root), tree.links)


@variant(f"{GUARD}:plan", catches=("npx-guard-roots-independent",))
def gives_up_at_a_bad_root(clone, tree, clones_base=None):
    """One root that cannot be walked leaves all others unrepaired."""
    roots = {found.root for shim in tree.shims if (found := locate_rule(shim.link)) is not None}
    if any(walkable_root_rule(root, clone, tree) is None for root in roots):
        return guard.GuardPlan()
    return guard_plan(clone, tree, clones_base)


@variant(f"{GUARD}:stays_inside", catches=("npx-guard-shim-outside-refused",))
def takes_the_home_for_one_boundary(shim, real_root, tree):
    """A shim may lead into another root of the clone, or out of it."""
    return True


@variant(f"{GUARD}:is_bin_shim", catches=("npx-guard-shim-kinds",))
def repairs_nested_bins_too(rest):
    """Takes the bins of nested packages for npx's own."""
    return "/node_modules/.bin/" in rest


@variant(f"{GUARD}:repair_of", catches=("npx-guard-shim-kinds",))
def repairs_directories_too(shim):
    """Changes the mode of a directory."""
    return guard.Repair(shim.link, shim.target, 0o755)


@variant(f"{GUARD}:carry_out", catches=("npx-guard-shim-kinds",))
def stops_at_the_first_failing_chmod(repairs, chmod):
    """One shim that cannot be changed leaves all later ones."""
    done = []
    for repair in repairs:
        try:
            chmod(repair.target, repair.mode)
        except OSError:
            break
        done.append(repair.link)
    return tuple(done)


@variant(f"{GUARD}:guards", catches=("npx-guard-never-blocks-spawn",))
def sweeps_whatever_it_is_given(clone, clones_base, links):
    """Sweeps a directory that is no clone."""
    return True


@variant(f"{GUARD}:guards", catches=("npx-layout-symlinked-base-ok",))
def compares_unresolved_places(clone, clones_base, links):
    """A clones base that is a link makes the guard a no-op."""
    return clones_base is None or is_contained_rule(shared_root_rule(resolve(clone, links) or ""), clones_base)


@variant(f"{GUARD}:plan", catches=("npx-guard-acts-on-modes",))
def waits_for_a_permission_error(clone, tree, clones_base=None):
    """Repairs only what a log has complained about."""
    return guard.GuardPlan()


@variant(f"{GUARD}:runs_before_spawn", catches=("npx-guard-not-on-codex", "npx-guard-not-on-pi"))
def runs_on_every_runtime(runtime, has_mcp_servers):
    """Claims runtimes that the guard does not cover."""
    return has_mcp_servers
