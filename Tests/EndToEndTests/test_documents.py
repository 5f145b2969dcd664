"""The documents are correct: links have targets, flags exist, and commands do what the text says. Each block of commands
is run here, or is listed in NOT_RUN with the reason."""

import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import time

import pytest

from harness import publishers, sources, tools

DOCUMENTS = [tools.ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md")]
DOCUMENTS += sorted((tools.ROOT / "docs").glob("*.md"))
#: What stands in the folders of the sources: drawings, no commands.
FOLDERS = [*sorted((tools.ROOT / "Sources").rglob("README.md")), tools.ROOT / "web" / "README.md"]

#: Document and beginning of a block → why it is not run here.
NOT_RUN = {
    ("README.md", "make run"): "it installs packages and builds",
    ("README.md", "sudo apt-get"): "make test-packages installs the package",
    ("ARCHITECTURE.md", ""): "drawings, no commands",
    ("access.md", "keys:"): "a file, which test_reload.py reads",
    ("access.md", "access:"): "a file, which test_viewer_tokens.py reads",
    ("access.md", "streams:"): "the same",
    ("channels.md", "streams:"): "entries of the configuration file: test_linger.py and test_fallback.py have them",
    ("access.md", "{\"sub\""): "the claims of a token",
    ("access.md", "https://live.example.com"): "addresses; test_viewer_tokens.py asks for each kind",
    ("capture.md", "weir devices"): "it opens a camera; make test-devices has some",
    ("capture.md", "weir capture"): "the same",
    ("capture.md", "post()"): "the same",
    ("capture.md", "own"): "of a camera, too; test_capture.py asks for each of these addresses",
    ("cdn.md", "varnishd"): "test_cdn.py runs Varnish with that file",
    ("cdn.md", "mkdir -p /var/lib/weir-cache"): "test_cdn.py runs nginx with that file",
    ("configuration.md", "http:"): "a file, which test_configuration.py reads",
    ("embedding.md", "weir serve"): "test_sharing.py starts it so",
    ("embedding.md", "curl"): "test_sharing.py asks so, of a server with that address",
    ("embedding.md", "<"): "markup, which browser/test_embedding.py opens",
    ("ingest.md", "ffmpeg"): "test_mpegts_http.py runs them",
    ("playback.md", "while (!(await fetch"): "a script, which browser/test_first_picture_hlsjs.py runs in a page",
    ("http.md", "weir streams"): "test_control_socket.py runs each of them",
    ("events.md", "curl"): "it does not end; test_events.py reads such a stream",
    ("events.md", "id:"): "an answer, no command",
    ("events.md", "hooks:"): "a file, as test_events.py writes them",
    ("metrics.md", "scrape_configs"): "a configuration of Prometheus",
    ("metrics.md", "groups:"): "the same",
    ("playback.md", "vlc"): "VLC needs a display",
    ("publishing.md", "{\"refusals\""): "an answer, no command",
    ("publishing.md", "ffmpeg -re -i in.mkv"): "test_multitrack.py publishes in that way",
    ("webrtc.md", "weir --webrtc"): "test_whip.py publishes in that way",
    ("webrtc.md", "webrtc:"): "settings; test_whip.py gives them as flags",
    ("install.md", "sudo apt-get"): "make test-packages installs the package",
    ("install.md", "sudo tar"): "make test-packages unpacks the tarball",
    ("install.md", "buildah"): "make test-packages builds the image",
    ("operation.md", "nft"): "test_guides.py sets the rule in a network of its own",
    ("operation.md", "sudo apt-get"): "make test-packages upgrades",
    ("operation.md", "sudo mkdir"): "it changes the service of this machine",
    ("operation.md", "[Unit]"): "a file, which test_guides.py has systemd check",
    ("proxy.md", "http:"): "settings; test_guides.py gives them as flags",
    ("proxy.md", "caddy"): "test_guides.py runs Caddy and nginx with the files",
    ("service.md", "sudo systemctl"): "make test-packages does so in a machine of its own",
    ("tls.md", "https:"): "settings; test_guides.py gives them as flags",
    ("tls.md", "sudo apt-get"): "test_guides.py runs certbot with the script",
}


@dataclasses.dataclass(frozen=True)
class Block:
    document: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.document}: {self.text.splitlines()[0][:50]}"

    @property
    def reason(self) -> str | None:
        return next((why for (document, start), why in NOT_RUN.items()
                     if document == self.document and self.text.startswith(start)), None)


BLOCKS = [Block(path.name, match[1].strip()) for path in DOCUMENTS
          for match in re.finditer(r"^```\w*\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)]


def named(path: pathlib.Path) -> str:
    return str(path.relative_to(tools.ROOT))


def anchors(path: pathlib.Path) -> set[str]:
    """The anchors of its headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_somewhere():
    broken = []
    for path in DOCUMENTS + FOLDERS:
        for target, _, anchor in (link.partition("#") for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text())):
            if target.startswith("http"):
                continue
            found = path.parent / target if target else path
            if not found.exists() or (anchor and anchor not in anchors(found)):
                broken.append(f"{named(path)}: {target}#{anchor}")
    assert broken == []


def rows(path: pathlib.Path):
    """Tables of a document, as the line number and the cells of each row. A bar in code is written with a backslash."""
    lines = re.sub(r"^```.*?^```", lambda block: re.sub(r"[^\n]", "", block[0]), path.read_text(), flags=re.MULTILINE | re.DOTALL)
    table: list[tuple[int, list[str]]] = []
    for number, line in enumerate([*lines.split("\n"), ""], 1):
        if line.startswith("|"):
            table.append((number, re.split(r"(?<!\\)\|", line.strip())[1:-1]))
        elif table:
            yield table
            table = []


@pytest.mark.parametrize("path", DOCUMENTS + FOLDERS, ids=named)
def test_every_row_of_a_table_has_as_many_cells_as_its_head(path):
    wrong = []
    for table in rows(path):
        assert len(table) > 2 and all(re.fullmatch(r" ?:?-+:? ?", cell) for cell in table[1][1]), f"{path.name}:{table[0][0]}"
        wrong += [f"{path.name}:{number}: {len(cells)} of {len(table[0][1])}"
                  for number, cells in table if len(cells) != len(table[0][1])]
    assert wrong == []


def test_each_test_that_the_players_are_held_by_is_there():
    files = {path.stem if path.suffix == ".swift" else path.name: path.read_text()
             for path in (tools.ROOT / "Tests").rglob("*") if path.suffix in (".swift", ".py", ".mjs")}
    shapes = (tools.ROOT / "Tests" / "Players" / "shapes.py").read_text()
    table = next(rows(tools.ROOT / "docs" / "players.md"))
    wrong = []
    for number, cells in table[2:]:
        tests, shown = re.findall(r"`([^`/]+)/([^`]+)`", cells[-1]), re.findall(r"make players` \(`([^`]+)`\)", cells[-1])
        wrong += [f"players.md:{number}: {file}/{name}" for file, name in tests if name not in files.get(file, "")]
        wrong += [f"players.md:{number}: {shape}" for shape in shown if f'Shape("{shape}"' not in shapes]
        if not tests and not shown and cells[-1].strip() != "–":
            wrong.append(f"players.md:{number}: {cells[-1]}")
    assert wrong == []


def test_each_document_is_in_the_index():
    index = (tools.ROOT / "docs" / "README.md").read_text()
    own = {path.name for path in (tools.ROOT / "docs").glob("*.md")} - {"README.md"}
    # The guide to recording names its parts there.
    index += (tools.ROOT / "docs" / "recording.md").read_text()
    assert {name for name in own if f"]({name}" not in index} == set()


def test_flags_that_documents_name_exist():
    weir = tools.weir_binary()
    commands = [["serve"], ["capture"], ["devices"], ["pattern"], ["record", "list"], ["record", "verify"],
                ["record", "finalize"], ["record", "clip"], ["streams", "show"], ["sessions", "list"],
                ["recordings", "list"], ["recordings", "start"], ["keys", "add"], ["keys", "list"], ["events"],
                ["config", "reload"], ["doctor"]]
    # Flags of swift, VLC and curl, whose names stand before the quotes.
    known = {"--version", "--filter", "--deploy-hook", "--allow-downgrades", "--no-install-recommends", "--explicit-target-dependency-import-check", "--network-caching", "--unix-socket"}
    for command in commands:
        said = tools.run(weir, *command, "--help")
        known |= set(re.findall(r"--[a-z][a-z-]*", said.stdout + said.stderr))
    missing = []
    for path in DOCUMENTS + FOLDERS:
        if path.name in ("CHANGELOG.md", "CONTRIBUTING.md"):
            continue
        # A flag of weir stands alone in its quotes, or follows another flag or `weir …`. Others follow their program's name.
        for quoted in re.findall(r"`([^`\n]+)`", path.read_text()):
            if re.match(r"(weir\b|--)", quoted):
                flags = re.findall(r"(?<![\w-])--[a-z][a-z-]*", re.split(r"[|;]", quoted)[0])
                missing += [f"{named(path)}: {flag}" for flag in flags if flag not in known]
    assert missing == []


@pytest.mark.parametrize("writer", ["write-flags", "write-api"])
def test_the_tables_of_the_documents_are_what_weir_says(writer):
    done = subprocess.run([tools.ROOT / ".ci" / writer, tools.weir_binary(), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def live(start_shared, tmp_path_factory):
    """A server as started by `make run`, with a publisher, a finished recording and an admin token."""
    folder = tmp_path_factory.mktemp("documents")
    weir = start_shared("--test-pattern", "demo", "--admin-token", "T0KEN-for-the-documents", "--record",
                        str(folder / "recordings"))
    publisher = publishers.ffmpeg("steady", f"{weir.rtmp}/live/cam", loop=-1)
    try:
        publishers.ffmpeg("clip", f"{weir.rtmp}/live/done").wait()
        weir.wait(lambda: weir.recordings_of("done") and weir.recordings_of("done")[0]["state"] == "completed", 20, "a recording")
        weir.wait(lambda: "8.m4s" in weir.get("/live/demo/index.m3u8").text or weir.get("/live/cam/index.m3u8").status == 200,
                  30, "the stream")
        yield weir, folder
    finally:
        publisher.kill()


def adapted(text: str, weir, folder: pathlib.Path) -> str:
    """A document's commands with the addresses of this server, a film and a recording."""
    recording = next((folder / "recordings" / "done").glob("*.mp4"))
    text = text.replace("http://localhost:8080", weir.web).replace("rtmp://localhost:1935", weir.rtmp)
    text = text.replace("in.mp4", str(folder / "in.mp4"))
    return text.replace("FILE…", str(recording)).replace("FILE ", f"{recording} ")


def shell(text: str, folder: pathlib.Path, seconds: float, until=None) -> str:
    """Runs commands in their own shell and returns their output. Commands that do not end by themselves are interrupted, once
    `until` says of their output that it is enough."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}
    environment = {**own, "SDL_VIDEODRIVER": "dummy", "SDL_AUDIODRIVER": "dummy", "TOKEN": "T0KEN-for-the-documents",
                   "PATH": f"{folder}:/usr/bin:{os.environ['PATH']}"}
    if not (folder / "weir").exists():
        shutil.copy(tools.weir_binary(), folder / "weir")
    process = subprocess.Popen(["bash", "-e", "-o", "pipefail", "-c", text], cwd=folder, env=environment,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True)
    output: list[bytes] = []
    reader = threading.Thread(target=lambda: output.extend(iter(lambda: process.stdout.read1(1 << 16), b"")))
    reader.start()

    def said() -> str:
        return b"".join(output).decode(errors="replace")

    try:
        end = time.monotonic() + seconds
        while reader.is_alive() and not (until and until(said())):
            assert time.monotonic() < end, f"{text}\n{'has not ended' if until is None else 'is not there'} after {seconds} s\n{said()[-2000:]}"
            reader.join(0.1)
        if until is None or not reader.is_alive():
            assert process.wait(5) == 0, f"{text}\nexit {process.returncode}\n{said()}"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        reader.join(5)
        process.stdout.close()
    return said()


def table(heading: str) -> list[str]:
    """The commands in README's table below a heading."""
    text = (tools.ROOT / "README.md").read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    return [command for command in re.findall(r"^\|[^|]*\| `((?:ffmpeg|ffplay|gst-launch-1.0) [^`]*)`", text, re.MULTILINE)]


@pytest.mark.parametrize("command", table("Publish"), ids=lambda command: command.split()[0])
def test_the_readme_publishes(live, command):
    weir, folder = live
    shutil.copy(sources.source("steady"), folder / "in.mp4")
    name = f"readme-{command.split()[0]}"
    text = adapted(command, weir, folder).replace("/live/cam", f"/live/{name}")
    process = subprocess.Popen(["bash", "-c", f"exec {text}"], cwd=folder, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        weir.wait_state(name, "live", seconds=20)
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("command", table("Watch"), ids=lambda command: command.rsplit("/", 1)[1])
def test_the_readme_is_watched(live, command):
    weir, folder = live

    def clocks(said: str) -> set[str]:
        """The clocks of the shown frames."""
        return set(re.findall(r"^\s*(\d+\.\d+) (?:A-V|M-V|M-A)", said.replace("\r", "\n"), re.MULTILINE))

    shell(adapted(command, weir, folder).replace("ffplay ", "ffplay -hide_banner -stats "), folder, 30, lambda said: len(clocks(said)) > 10)


@pytest.mark.parametrize("block", [block for block in BLOCKS if not block.reason], ids=lambda block: block.name)
def test_commands_do_what_they_say(live, block, tmp_path):
    weir, folder = live
    text = adapted(block.text, weir, folder)
    if block.document == "recording.md":
        text = text.replace("PATH…", str(folder / "recordings" / "done")).replace("--from 90 --to 2:30.5 -o OUT",
                                                                                 f"--from 1 --to 0:02.5 -o {tmp_path}/out.mp4")
    if block.document == "playback.md":
        recording = next((folder / "recordings" / "done").glob("*.mp4"))
        text = text.replace("recordings/cam/20261121T072410Z/av/12.mp4", f"recordings/done/{recording.stem}/av/1.mp4")
        # Sinks that show nothing, and end what plays after two seconds of frames.
        shown, heard = "fakevideosink num-buffers=60", "fakeaudiosink num-buffers=90"
        text = text.replace("av/12.mp4", "av/1.mp4").replace("autovideosink", shown).replace("autoaudiosink", heard)
        if "playbin3" in text:
            text += f" video-sink='{shown}' audio-sink='{heard}'"
    output = shell(text, folder, 50)
    assert "ERROR" not in output and "Invalid data" not in output, output
    assert "gst-launch" not in text or "EOS" in output, output
    if block.document == "recording.md":
        said = tools.run(tools.FFPROBE, "-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0",
                         tmp_path / "out.mp4")
        assert abs(float(said.stdout) - 1.5) < 0.1


def test_every_rule_that_a_judge_names_is_explained():
    # Behind a full stop stands a level in a codec string, such as hvc1.2.4.L90.
    number = re.compile(r"(?<![.\w])[A-N][0-9]{2}(?!\w)")
    named = {match for path in (tools.ROOT / "Tests").rglob("*") if path.suffix in (".py", ".swift")
             for match in number.findall(path.read_text())}
    explained = re.findall(r"^\| ([A-N][0-9]{2}) \| \S", (tools.ROOT / "Tests" / "RULES.md").read_text(), re.MULTILINE)
    assert len(explained) == len(set(explained))
    assert not named - set(explained), f"stand in no table of Tests/RULES.md: {sorted(named - set(explained))}"
    assert not set(explained) - named, f"stand in no test: {sorted(set(explained) - named)}"


def test_every_fixture_has_its_origin():
    folder = tools.ROOT / "Tests" / "Fixtures"
    told = re.findall(r"^\| `((?:rtmp|mp4|ts|sdp|webrtc)/[^`]+)` \| \S", (folder / "README.md").read_text(), re.MULTILINE)
    there = sorted(path.relative_to(folder).as_posix() for kind in ("rtmp", "mp4", "ts", "sdp", "webrtc")
                   for path in (folder / kind).iterdir() if path.suffix != ".packets")
    assert sorted(told) == there
    assert sum((folder / path).stat().st_size for path in there) < 3_300_000
