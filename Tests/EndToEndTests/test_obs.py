"""OBS Studio publishes with a stream key, as docs/obs.md says: driven over its own websocket, on a display without a screen.

It runs where obs and Xvfb are installed (Debian: obs-studio, xvfb)."""

import contextlib
import json
import os
import shutil
import subprocess
import time

import pytest
from websockets.sync.client import connect

from harness import tools
from harness.programs import free_port

KEY = "key-of-the-studio-0815"


class Studio:
    """A running OBS with a profile of its own: 320 × 180, 10 frames a second, a colour as the picture."""

    def __init__(self, home):
        self.port, self.requests, self.stack = free_port(), 0, contextlib.ExitStack()
        folder = home / ".config" / "obs-studio"
        profile = folder / "basic" / "profiles" / "weir"
        profile.mkdir(parents=True)
        (folder / "basic" / "scenes").mkdir()
        (folder / "global.ini").write_text(
            "[General]\nFirstRun=true\nInfoIncrement=100\n[Basic]\nProfile=weir\nProfileDir=weir\nSceneCollection=weir\n"
            f"SceneCollectionFile=weir\n[OBSWebSocket]\nFirstLoad=false\nServerEnabled=true\nServerPort={self.port}\n"
            "AlertsEnabled=false\nAuthRequired=false\n")
        (profile / "basic.ini").write_text(
            "[General]\nName=weir\n[Video]\nBaseCX=320\nBaseCY=180\nOutputCX=320\nOutputCY=180\nFPSCommon=10\nFPSType=0\n"
            "[Output]\nMode=Simple\nReconnect=false\n[SimpleOutput]\nVBitrate=300\nABitrate=64\nStreamEncoder=x264\n")
        # It takes a display that nobody has, and tells its number when it is ready.
        self.screen = subprocess.Popen(
            ["Xvfb", "-displayfd", "1", "-screen", "0", "640x480x24"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        environment = {**os.environ, "HOME": str(home), "XDG_RUNTIME_DIR": str(home), "DISPLAY": f":{self.screen.stdout.readline().strip()}",
                       "LIBGL_ALWAYS_SOFTWARE": "1", "QT_QPA_PLATFORM": "xcb"}
        environment.pop("XDG_CONFIG_HOME", None)
        self.process = subprocess.Popen(["obs", "--profile", "weir", "--collection", "weir", "--multi", "--disable-updater"],
                                        env=environment, stdout=(home / "log").open("wb"), stderr=subprocess.STDOUT)
        end = time.monotonic() + 60
        while True:
            try:
                self.socket = self.stack.enter_context(connect(f"ws://127.0.0.1:{self.port}"))
                break
            except OSError:
                assert self.process.poll() is None and time.monotonic() < end, (home / "log").read_text()[-2000:]
                time.sleep(0.3)
        assert json.loads(self.socket.recv(10))["op"] == 0
        self.socket.send(json.dumps({"op": 1, "d": {"rpcVersion": 1, "eventSubscriptions": 0}}))
        assert json.loads(self.socket.recv(10))["op"] == 2

    def ask(self, kind: str, **data) -> dict:
        self.requests += 1
        self.socket.send(json.dumps({"op": 6, "d": {"requestType": kind, "requestId": str(self.requests), "requestData": data}}))
        while True:
            answer = json.loads(self.socket.recv(20))
            if answer["op"] == 7 and answer["d"]["requestId"] == str(self.requests):
                assert answer["d"]["requestStatus"]["result"], answer
                return answer["d"].get("responseData") or {}

    def stop(self) -> None:
        self.stack.close()
        for process in (self.process, self.screen):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.mark.skipif(not (shutil.which("obs") and shutil.which("Xvfb")), reason="obs and Xvfb are not installed")
def test_obs_publishes_with_a_stream_key(start, tmp_path):
    weir = start("--target-duration", "4", environment={"WEIR_PUBLISH_KEY": f"studio={KEY}"})
    weir.secrets.append(KEY)
    (tmp_path / "obs").mkdir()
    studio = Studio(tmp_path / "obs")

    def set_key(key: str) -> None:
        studio.ask("SetStreamServiceSettings", streamServiceType="rtmp_custom", streamServiceSettings={
            "server": f"{weir.rtmp}/live", "key": key, "use_auth": False})

    try:
        scene = studio.ask("GetCurrentProgramScene")["currentProgramSceneName"]
        studio.ask("CreateInput", sceneName=scene, inputName="colour", inputKind="color_source_v3", inputSettings={"color": 0xFF2080FF})
        set_key("studio?key=wrong")
        studio.ask("StartStream")
        weir.wait_log("refused: .*publish key", 20)
        weir.wait(lambda: not studio.ask("GetStreamStatus")["outputActive"], 20, "OBS has given up")
        set_key(f"studio?key={KEY}")

        def is_live() -> dict | None:
            # OBS takes no start while it ends what failed, and does not say so.
            if not studio.ask("GetStreamStatus")["outputActive"]:
                studio.ask("StartStream")
            found = weir.stream("studio")
            return found if found and found["state"] == "live" else None

        stream = weir.wait(is_live, 40, "OBS is live", every=2)
        assert {track["codec"] for track in stream["tracks"]} == {"H.264", "AAC"}, stream["tracks"]
        weir.wait(lambda: weir.stream("studio")["received"]["videoFrames"] >= 40, 40, "four seconds of OBS")
        studio.ask("StopStream")
        weir.wait_state("studio", "ended", seconds=15)
        file = weir.wait(lambda: next((weir.recordings / "studio").glob("*Z.mp4"), None), 15, "the recording")
        found = tools.output(tools.FFPROBE, "-v", "error", "-show_entries", "stream=codec_name,width", "-of", "csv=p=0", file).decode()
        assert "h264,320" in found and "aac" in found, found
    finally:
        studio.stop()
