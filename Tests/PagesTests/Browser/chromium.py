"""A headless Chromium, driven by the DevTools protocol over a pipe; needs no package."""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")
# Seconds that one answer may take.
PATIENCE = 120


def path():
    """The path of the browser; None if there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Failure(Exception):
    pass


class Chromium:
    """One process for all pages; leaves nothing behind."""

    def __init__(self):
        program = path()
        if program is None:
            raise Failure("no Chromium: install Debian's chromium")
        self.profile = tempfile.mkdtemp(prefix="clamor-chromium-")
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        # 3 and 4 are the browser's ends: none of the four may have these numbers.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (ours_in, ours_out, theirs_in, theirs_out)]
        for end in (ours_in, ours_out, theirs_in, theirs_out):
            os.close(end)
        self.reader, self.writer, theirs_in, theirs_out = ends
        null = os.open(os.devnull, os.O_RDWR)
        words = [
            program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--no-default-browser-check", "--mute-audio", "--hide-scrollbars", "--force-color-profile=srgb",
            "--font-render-hinting=none",
            "--remote-debugging-pipe", "--user-data-dir=" + self.profile, "about:blank",
        ]
        self.pid = os.posix_spawn(program, words, dict(os.environ, HOME=self.profile), setpgroup=0, file_actions=[
            (os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, null, 2),
            (os.POSIX_SPAWN_DUP2, theirs_in, 3), (os.POSIX_SPAWN_DUP2, theirs_out, 4),
        ])
        for end in (theirs_in, theirs_out, null):
            os.close(end)
        self.last = 0
        self.rest = b""
        self.events = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)
        os.close(self.reader)
        os.close(self.writer)
        # Its children, which are killed with it, may hold files for a moment.
        for _ in range(50):
            shutil.rmtree(self.profile, ignore_errors=True)
            if not os.path.exists(self.profile):
                break
            time.sleep(0.02)

    def call(self, method, session=None, **parameters):
        self.last += 1
        number = self.last
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.writer, data):]
        while True:
            answer = self.read(method)
            if answer.get("id") != number:
                continue
            if "error" in answer:
                raise Failure(f"{method}: {answer['error'].get('message')}")
            return answer.get("result", {})


    def read(self, awaited):
        while b"\0" not in self.rest:
            if not select.select([self.reader], [], [], PATIENCE)[0]:
                raise Failure(f"{awaited}: no answer in {PATIENCE} s")
            data = os.read(self.reader, 1 << 20)
            if not data:
                raise Failure(f"{awaited}: Chromium ended")
            self.rest += data
        text, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(text)
        if "method" in message:
            self.events.append((message.get("sessionId"), message["method"], message.get("params", {})))
        return message


class Page:
    """A tab, and what its page asked for and complained of."""

    def __init__(self, browser):
        self.browser = browser
        self.target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)

    def call(self, method, **parameters):
        return self.browser.call(method, session=self.session, **parameters)

    def view(self, width, height=900, scale=1, dark=False, media=""):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                  mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def open(self, url, scripts=True):
        """Loads a page; returns what it requested besides itself, and its errors."""
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.browser.events.clear()
        loader = self.call("Page.navigate", url=url)["loaderId"]
        while not any(
            method == "Page.lifecycleEvent" and what["loaderId"] == loader and what["name"] == "load"
            for method, what in self.events()
        ):
            self.browser.read("load of " + url)
        # Whatever the page starts by itself, at the latest in its first frame, is told before this answer.
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))"
                 if scripts else "1")
        return self.complaints(url)

    def complaints(self, url=""):
        """What was requested besides an address, and the errors, since it was last asked."""
        requests, errors = [], []
        for method, what in self.events():
            if method == "Network.requestWillBeSent":
                requested = what["request"]["url"]
                if requested.split("#")[0] != url and not requested.startswith(("data:", "blob:")):
                    requests.append(requested)
            elif method == "Runtime.exceptionThrown":
                details = what["exceptionDetails"]
                errors.append(details.get("exception", {}).get("description") or details["text"])
            elif method == "Log.entryAdded" and what["entry"]["level"] == "error":
                # What was not loaded is among the requests.
                if what["entry"]["source"] != "network":
                    errors.append(what["entry"]["text"])
            elif method == "Runtime.consoleAPICalled" and what["type"] in ("error", "assert"):
                errors.append(" ".join(str(part.get("value")) for part in what["args"]))
        self.browser.events.clear()
        return requests, errors

    def events(self):
        return [(method, what) for session, method, what in self.browser.events if session == self.session]

    def run(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise Failure(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def point(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=key if len(key) == 1 and kind == "keyDown" else "")

    def screenshot(self, path, whole=False, clip=None):
        more = {}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"]}
        if clip:
            more = {"clip": dict(clip, scale=1), "captureBeyondViewport": True}
        data = self.call("Page.captureScreenshot", format="png", **more)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
