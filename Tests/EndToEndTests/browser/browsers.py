"""Headless Chromium (DevTools protocol) and Firefox (WebDriver BiDi). Each process is started, driven and ended here."""

import base64
import contextlib
import ctypes
import json
import os
import pathlib
import queue
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

START_SECONDS = 60
ANSWER_SECONDS = 60
# On a machine that also builds and encodes, a browser may take many seconds. That does not slow down a working page.
PATIENCE_SECONDS = 40

# Violations of a page's security policy. Both browsers log them as console errors in the same words.
TELL_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy violation: ${event.violatedDirective} ${event.blockedURI}`));
"""


def _die_with_parent():
    """Makes the kernel end the browsers when the test run is killed (prctl PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


class BrowserFailure(Exception):
    """The browser responded with an error, or a script of the page threw."""


class Wire:
    """A WebSocket for numbered commands, their responses by number, and events in between."""

    def __init__(self, address, on_event):
        self._socket = connect(address, max_size=None, open_timeout=START_SECONDS, proxy=None, ping_interval=None).__enter__()
        self._on_event = on_event
        self._answers = {}
        self._lock = threading.Lock()
        self._number = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        try:
            for text in self._socket:
                message = json.loads(text)
                waiting = self._answers.pop(message.get("id"), None)
                if waiting is not None:
                    waiting.put(message)
                elif "method" in message:
                    self._on_event(message)
        except ConnectionClosed:
            pass

    def call(self, method, _extra=None, **params):
        answer = queue.Queue()
        with self._lock:
            self._number += 1
            number = self._number
            self._answers[number] = answer
        self._socket.send(json.dumps({"id": number, "method": method, "params": params, **(_extra or {})}))
        try:
            message = answer.get(timeout=ANSWER_SECONDS)
        except queue.Empty:
            raise BrowserFailure(f"{method}: no answer in {ANSWER_SECONDS} s") from None
        if "error" in message:
            raise BrowserFailure(f"{method}: {message['error']} {message.get('message', '')}")
        return message["result"]

    def close(self):
        self._socket.close()


#: The middle of an element in view, once it has not moved for 150 ms: content that is loaded above it moves it.
MIDDLE_AT_REST = """(async () => {
  let before = null;
  for (let rested = 0; ;) {
    const element = %s;
    element.scrollIntoView({ block: 'center', behavior: 'instant' });
    const { x, y, width, height } = element.getBoundingClientRect();
    const middle = [x + width / 2, y + height / 2];
    rested = String(middle) === String(before) ? rested + 1 : 0;
    if (rested === 3) return middle;
    before = middle;
    await new Promise((done) => setTimeout(done, 50));
  }
})()"""


class Browser:
    """One browser with one page. `errors`: console errors since the page was opened."""

    name = ""

    def __init__(self, command, profile):
        self.errors = []
        self._profile = profile
        self._log = open(pathlib.Path(profile) / "browser.log", "w+b")
        self._process = subprocess.Popen(
            command, stdout=self._log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
            preexec_fn=_die_with_parent,
        )

    def renew(self):
        """Closes the page, and opens one that has nothing of it: no cookies, storage, cache or permissions."""
        raise NotImplementedError

    @property
    def is_running(self):
        return self._process.poll() is None

    def evaluate(self, expression):
        """The value of a JavaScript expression, after a promise is resolved. The value must be expressible in JSON."""
        raise NotImplementedError

    def wait(self, expression, seconds=PATIENCE_SECONDS, tell=""):
        """Waits until a JavaScript expression is truthy, and returns its value. `tell`: another one, whose value is told where it never is."""
        deadline = time.monotonic() + seconds
        while True:
            value = self.evaluate(expression)
            if value:
                return value
            if time.monotonic() > deadline:
                told = f"; {tell} is {self.evaluate(tell)!r}" if tell else ""
                raise AssertionError(f"{self.name}: not within {seconds} s: {expression}; it is {value!r}{told}; errors {self.errors}")
            time.sleep(0.1)

    def _wait_for_text(self, find):
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            found = find()
            if found:
                return found
            if self._process.poll() is not None:
                break
            time.sleep(0.05)
        self._log.seek(0)
        tail = self._log.read()[-2000:].decode(errors="replace")
        self.close()
        raise BrowserFailure(f"{self.name} did not start: {tail}")

    def close(self):
        """Ends the browser's own process group, and nothing else."""
        wire = getattr(self, "_wire", None)
        if wire is not None:
            wire.close()
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self._process.pid, number)
                self._process.wait(timeout=5)
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue
        self._process.wait()
        self._log.close()
        shutil.rmtree(self._profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Chromium(Browser):
    name = "chromium"
    USUAL = (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        "--disable-background-networking", "--mute-audio", "--force-color-profile=srgb", "--hide-scrollbars",
        "--autoplay-policy=user-gesture-required", "--remote-debugging-port=0",
    )

    def __init__(self, *flags, without=()):
        """`without`: usual flags that are left out."""
        profile = tempfile.mkdtemp(prefix="weir-chromium-")
        usual = [flag for flag in self.USUAL if flag not in without]
        super().__init__(["chromium", *usual, f"--user-data-dir={profile}", *flags, "about:blank"], profile)
        port_file = pathlib.Path(profile) / "DevToolsActivePort"
        lines = self._wait_for_text(lambda: port_file.exists() and port_file.read_text().splitlines()[1:] and port_file.read_text().splitlines())
        self._context = self._session = None
        self._wire = Wire(f"ws://127.0.0.1:{lines[0]}{lines[1]}", self._event)
        self.renew()

    def renew(self):
        context = self._wire.call("Target.createBrowserContext")["browserContextId"]
        target = self._wire.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        self._session = self._wire.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        if self._context:
            self._wire.call("Target.disposeBrowserContext", browserContextId=self._context)
        self._context = context
        self.errors.clear()
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Page.addScriptToEvaluateOnNewDocument", source=TELL_VIOLATIONS)

    def call(self, method, **params):
        """A DevTools command to the page."""
        return self._wire.call(method, {"sessionId": self._session}, **params)

    def _event(self, message):
        if message.get("sessionId") != self._session:
            return  # of a page that was closed
        method, params = message["method"], message["params"]
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            self.errors.append(" ".join(str(a.get("value", a.get("description"))) for a in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        elif method == "Fetch.requestPaused":
            # This must not run on the thread that reads the responses, because a command waits for one.
            threading.Thread(target=self._fulfil, args=(params,), daemon=True).start()

    def open(self, url):
        self.errors.clear()
        failure = self.call("Page.navigate", url=url).get("errorText")
        if failure:
            raise BrowserFailure(f"{url}: {failure}")
        self.wait("document.readyState === 'complete'")

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True, userGesture=False)
        if "exceptionDetails" in result:
            raise BrowserFailure(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def open_tab(self, url):
        """Opens another page beside this one."""
        self._wire.call("Target.createTarget", url=url, browserContextId=self._context)

    @contextlib.contextmanager
    def another_page(self):
        """Another page of this browser, in a window of its own. Console errors of both are the first one's."""
        other = object.__new__(type(self))
        other.errors, other._wire, other._context = [], self._wire, self._context
        target = self._wire.call("Target.createTarget", url="about:blank", browserContextId=self._context, newWindow=True)["targetId"]
        other._session = self._wire.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        try:
            yield other
        finally:
            self._wire.call("Target.closeTarget", targetId=target)

    def allow(self, *permissions):
        """Lets pages have what they would ask for, by the names of DevTools: "audioCapture", "videoCapture"."""
        self._wire.call("Browser.grantPermissions", permissions=permissions, browserContextId=self._context)

    def viewport(self, width, height, scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False)

    def prefer(self, **features):
        """Sets media features, for example prefer(color_scheme="dark", reduced_motion="reduce")."""
        named = [{"name": f"prefers-{k.replace('_', '-')}", "value": v} for k, v in features.items()]
        self.call("Emulation.setEmulatedMedia", features=named)

    def click(self, element):
        """Clicks with the mouse on the element of a JavaScript expression. Autoplay rules count it as a user action."""
        x, y = self.evaluate(MIDDLE_AT_REST % element)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def click_twice(self, element, counts=(1, 2)):
        """Two fast mouse clicks. With counts of (1, 1) they are two taps and no double click."""
        x, y = self.evaluate(MIDDLE_AT_REST % element)
        for count in counts:
            for kind in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=count)
            time.sleep(0.1)

    def drag(self, element, over, part):
        """Drags the element of an expression with the mouse, by a share of another element's width."""
        middle = "(() => {{ const r = {}.getBoundingClientRect(); return [r.x + r.width * {}, r.y + r.height / 2]; }})()"
        x, y = self.evaluate(middle.format(element, 0.5))
        to, _ = self.evaluate(middle.format(over, part))
        self.call("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, button="left", clickCount=1)
        for step in (0.5, 1):
            self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x + (to - x) * step, y=y, button="left", buttons=1)
        self.call("Input.dispatchMouseEvent", type="mouseReleased", x=to, y=y, button="left", clickCount=1)

    def press(self, key, code="", modifiers=0):
        """Presses a key of the keyboard."""
        text = key if len(key) == 1 else {"Enter": "\r"}.get(key, "")
        for kind in ("keyDown", "keyUp"):
            extra = {"text": text} if kind == "keyDown" and text else {}
            number = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32}.get(key, ord(key[0].upper()))
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=code, modifiers=modifiers, windowsVirtualKeyCode=number, **extra)

    @contextlib.contextmanager
    def answering(self, pattern, answer):
        """Responds to requests of this URL pattern in place of the server. `answer(url)` gives the body as text or bytes, or
        a status with such a body."""
        self._answer = answer
        self.call("Fetch.enable", patterns=[{"urlPattern": pattern}])
        try:
            yield
        finally:
            self.call("Fetch.disable")

    def _fulfil(self, params):
        answer = self._answer(params["request"]["url"])
        status, answer = answer if isinstance(answer, tuple) else (200, answer)
        body = base64.b64encode(answer.encode() if isinstance(answer, str) else answer).decode()
        headers = [{"name": "Content-Type", "value": "application/json"}]
        # After the page was left, the request no longer exists.
        with contextlib.suppress(BrowserFailure):
            self.call("Fetch.fulfillRequest", requestId=params["requestId"], responseCode=status, responseHeaders=headers, body=body)

    def screenshot(self, path, full=False):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=full)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))


class Firefox(Browser):
    name = "firefox"

    PREFERENCES = {
        "browser.shell.checkDefaultBrowser": False,
        "browser.startup.homepage_override.mstone": "ignore",
        "datareporting.policy.dataSubmissionEnabled": False,
        "app.normandy.enabled": False,
        "network.captive-portal-service.enabled": False,
        "network.connectivity-service.enabled": False,
        "browser.safebrowsing.update.enabled": False,
        "media.gmp-manager.updateEnabled": False,
        "media.gmp-manager.url": "",
        "toolkit.cosmeticAnimations.enabled": False,
        # What one page may, the next one has to be allowed anew.
        "permissions.isolateBy.userContext": True,
        # For pages that publish: a made-up camera and microphone, without a question.
        "media.navigator.streams.fake": True,
        "media.navigator.permission.disabled": True,
    }

    def __init__(self, **preferences):
        profile = tempfile.mkdtemp(prefix="weir-firefox-")
        lines = [
            f"user_pref({json.dumps(key)}, {json.dumps(value)});"
            for key, value in {**self.PREFERENCES, **preferences}.items()
        ]
        (pathlib.Path(profile) / "user.js").write_text("\n".join(lines))
        super().__init__(
            ["firefox-esr", "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0", "about:blank"], profile
        )
        log = pathlib.Path(profile) / "browser.log"
        pattern = re.compile(r"WebDriver BiDi listening on (ws://\S+)\n")
        address = self._wait_for_text(lambda: pattern.search(log.read_text(errors="replace")))
        self._wire = Wire(f"{address[1]}/session", self._event)
        self.call("session.new", capabilities={})
        self.call("session.subscribe", events=["log.entryAdded"])
        self.call("script.addPreloadScript", functionDeclaration="() => {" + TELL_VIOLATIONS + "}")
        self._user = None
        self._context = self.call("browsingContext.getTree")["contexts"][0]["context"]
        self.renew()

    def renew(self):
        before, user = self._context, self._user
        self._user = self.call("browser.createUserContext")["userContext"]
        self._context = self.call("browsingContext.create", type="tab", userContext=self._user)["context"]
        self.call("browsingContext.close", context=before)
        if user:
            self.call("browser.removeUserContext", userContext=user)
        self.errors.clear()

    def call(self, method, **params):
        """A WebDriver BiDi command."""
        return self._wire.call(method, **params)

    def _event(self, message):
        entry = message["params"]
        if message["method"] == "log.entryAdded" and entry["level"] == "error":
            self.errors.append(entry["text"])

    def open(self, url):
        self.errors.clear()
        self.call("browsingContext.navigate", context=self._context, url=url, wait="complete")

    def evaluate(self, expression):
        result = self.call(
            "script.evaluate",
            expression=f"(async () => JSON.stringify((await ({expression})) ?? null))()",
            target={"context": self._context},
            awaitPromise=True,
        )
        if result["type"] != "success":
            raise BrowserFailure(str(result["exceptionDetails"].get("text")))
        return json.loads(result["result"]["value"])

    def click(self, element):
        """Clicks with the mouse on the element of a JavaScript expression. Autoplay rules count it as a user action."""
        x, y = self.evaluate(MIDDLE_AT_REST % element)
        self.call("input.performActions", context=self._context, actions=[{"type": "pointer", "id": "mouse", "actions": [
            {"type": "pointerMove", "x": round(x), "y": round(y)}, {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0}]}])

    def viewport(self, width, height, scale=1):
        self.call("browsingContext.setViewport", context=self._context, viewport={"width": width, "height": height}, devicePixelRatio=scale)

    def screenshot(self, path, full=False):
        origin = "document" if full else "viewport"
        data = self.call("browsingContext.captureScreenshot", context=self._context, origin=origin)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))


def chromium(*flags, without=()):
    """Starts headless Chromium; use it as a context manager."""
    return Chromium(*flags, without=without)


def firefox(**preferences):
    """Starts headless Firefox; use it as a context manager."""
    return Firefox(**preferences)
