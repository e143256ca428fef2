"""Headless Chromium, driven over its debugging pipe: nothing but the Debian package is needed."""
import base64
import contextlib
import json
import os
import pathlib
import selectors
import shutil
import subprocess
import sys
import tempfile
import time

PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
DESKTOP = {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}


def chromium():
    """Where it is; installed by name where it is not."""
    if not shutil.which("chromium"):
        for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "chromium"]):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    return shutil.which("chromium") or sys.exit("not ok: there is no chromium, and it could not be installed")


class Browser:
    """Commands go in over one pipe, answers and events come out of another, each ended by a NUL."""

    def __init__(self, process, commands, answers):
        self.process, self.commands, self.answers = process, commands, answers
        self.number, self.buffer, self.events = 0, b"", []
        self.selector = selectors.DefaultSelector()
        self.selector.register(answers, selectors.EVENT_READ)

    def read(self, end):
        while b"\0" not in self.buffer:
            if not self.selector.select(max(0, end - time.monotonic())):
                sys.exit("not ok: chromium does not answer")
            piece = os.read(self.answers, 1 << 20)
            if not piece:
                sys.exit("not ok: chromium ended")
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, /, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params, **({"sessionId": session} if session else {})}
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + 60
        while True:
            found = self.read(end)
            if found.get("id") == self.number:
                if "error" in found and method == "Runtime.evaluate" and "navigated" in found["error"].get("message", ""):
                    # The page that was asked is being left: `until` asks the next one.
                    return {"exceptionDetails": found["error"]}
                if "error" in found:
                    sys.exit(f"not ok: {method}: {found['error']}")
                return found["result"]
            self.events.append(found)

    def page(self, size=DESKTOP):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.call("Emulation.setDeviceMetricsOverride", **size)
        return page


class Page:
    def __init__(self, browser, session):
        self.browser, self.session = browser, session

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def goto(self, url):
        """Opens an address and waits until it is loaded."""
        self.call("Page.navigate", url="about:blank")
        self.browser.events.clear()
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'", url)

    def until(self, condition, what=""):
        end = time.monotonic() + 30
        while not self.evaluate(condition):
            if time.monotonic() > end:
                sys.exit(f"not ok: never {condition} {what}: {self.evaluate('document.documentElement.innerText')[:500]!r}")
            time.sleep(0.03)

    def evaluate(self, expression):
        """Runs as the debugger does, which the policy of a page does not hold up."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            return None
        return found["result"].get("value")

    def text(self):
        return self.evaluate("document.body ? document.body.innerText : ''") or ""

    def screenshot(self, path):
        pathlib.Path(path).write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def complaints(self):
        """What the page threw, and what its console heard of errors."""
        self.evaluate("0")
        found = []
        for event in self.browser.events:
            params = event.get("params", {})
            if event.get("sessionId") != self.session:
                continue
            if event["method"] == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"].get("exception", {}).get("description", "exception"))
            if event["method"] == "Page.javascriptDialogOpening":
                found.append(f"dialog {params['message']}")
            if event["method"] == "Runtime.consoleAPICalled" and params["type"] == "error":
                found.append(str(params["args"]))
        return found


@contextlib.contextmanager
def browser():
    profile = tempfile.mkdtemp()
    (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-proxy-server",
             "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1", f"--user-data-dir={profile}", "--remote-debugging-pipe"]
    with open("chromium.log", "ab") as log:
        process = subprocess.Popen(["sh", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "-", chromium(), *flags, "about:blank"],
                                   pass_fds=(theirs_in, theirs_out), stdout=log, stderr=log)
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield Browser(process, ours_out, ours_in)
    finally:
        process.terminate()
        process.wait(timeout=60)
        shutil.rmtree(profile, ignore_errors=True)
