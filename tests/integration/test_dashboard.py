"""The page in a real browser, against a real broker that speaks MQTT over WebSocket."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from simulators.broker import Mosquitto, free_port
from simulators.controller import Controller
from simulators.daemon_process import DaemonProcess
from simulators.fleet import Devices

from daemon import cli
from daemon.views import dashboard

HOSTILE = "<img src=x onerror=alert(1)>"
TIMEOUT_MS = 60_000

VENDOR = {
    "mqtt.min.js": "f3cbeae580d3010048938ee370f2db0c15d16e6f7fc147cb32ae5510e571b387",
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
}
"""As npm has mqtt 5.16.0 and uplot 1.6.32."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = shutil.which("chromium")  # None: the one that `playwright install chromium` has brought
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


class Web:
    """A broker with WebSockets, and the page served beside it."""

    def __init__(self, broker: Mosquitto, url: str, page_url: str) -> None:
        self.broker = broker
        self.url = url
        self.page_url = page_url


@contextlib.contextmanager
def web(*settings: str) -> Iterator[Web]:
    port = free_port()
    url = f"ws://127.0.0.1:{port}"
    with Mosquitto(*settings, f"listener {port} 127.0.0.1", "protocol websockets") as broker:
        server = dashboard.make_server(0, dashboard.config_js(url, "speakd"))
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield Web(broker, url, f"http://127.0.0.1:{server.server_port}/")
        finally:
            server.shutdown()
            server.server_close()
            thread.join(10)


@contextlib.contextmanager
def opened(browser: Browser, url: str, *, scheme: str = "light") -> Iterator[Page]:
    """Open the page; whatever a browser complains about fails the test."""
    context = browser.new_context(viewport={"width": 1440, "height": 1000}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    page.set_default_timeout(TIMEOUT_MS)
    expect.set_options(timeout=TIMEOUT_MS)
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.goto(url)
    yield page
    context.close()
    assert not [one for one in complaints if "WebSocket" not in one]  # a broker that refuses is told of by the page


def names(page: Page) -> list[str]:
    return page.locator("#rows td:first-child").all_inner_texts()


def test_a_fleet_the_worst_first_and_one_device_closely(browser: Browser, tmp_path: Path) -> None:
    with web() as site, Devices(site.broker.port) as devices:
        for number in range(12):
            devices.online(f"kiosk-{number:02}", response_ms=25 + number)
        devices.online("lobby", response_ms=310, alerts=("ttfa_p95",))
        devices.online("roof", throttling=("cpu-throttle-alert",), alerts=("throttling",), mode="protect")
        devices.say("cellar", "status", '{"state": "offline", "version": "0.1.0"}')
        for scheme in ("light", "dark"):
            with opened(browser, site.page_url, scheme=scheme) as page:
                expect(page.locator("#link")).to_have_text("connected")
                expect(page.locator("#counts")).to_have_text("15 devices, 3 in trouble")
                assert names(page)[:4] == ["cellar", "roof", "lobby", "kiosk-11"]
                assert names(page)[-1] == "kiosk-00"
                page.locator("tr[data-device=roof]").click()
                expect(page.locator("#name")).to_have_text("roof")
                for number in range(40):
                    devices.utterance("roof", f"u{scheme}{number}", 30 + (number * 7) % 23)
                    if number % 4 == 0:
                        warmth = {"cpu-thermal": 70 + number / 4, "gpu-thermal": 68.0}
                        devices.online(
                            "roof",
                            temperatures_c=warmth,
                            mode="protect",
                            reason="79 °C and rising",
                            throttling=("cpu-throttle-alert",),
                            alerts=("throttling",),
                            degraded={"jtop": "does not answer for 5 s; it is tried again in 60 s"},
                            power="the power helper has gone",
                        )
                devices.raise_alert("roof", "throttling", "slowed down by cpu-throttle-alert", critical=True)
                expect(page.locator("#alerts .critical")).to_have_text(re.compile("cpu-throttle-alert"))
                notices = ["clocks do not follow: the power helper has gone", "jtop: does not answer"]
                expect(page.locator("#alerts .notice")).to_have_text([re.compile(notice) for notice in notices])
                expect(page.locator("#about")).to_have_text(re.compile("mode protect: 79 °C and rising"))
                expect(page.locator("#stages")).to_contain_text("first window")
                expect(page.locator("#events li").first).to_have_text(re.compile("finished"))
                for chart in ("latency", "temperature"):
                    expect(page.locator(f"#{chart} canvas")).to_have_count(1)
                    assert page.evaluate(f"charts.{chart}.plot.data[0].length") >= 10
                    assert painted(page, chart)
                page.screenshot(path=tmp_path / f"page-{scheme}.png", full_page=True)
                page.locator("#filter").fill("lob")
                expect(page.locator("#rows tr")).to_have_count(1)


def painted(page: Page, chart: str) -> bool:
    """Tell whether a chart's canvas shows a curve's colour, not only axes."""
    script = """name => {
      const canvas = document.querySelector(`#${name} canvas`);
      const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
      let coloured = 0;
      for (let i = 0; i < pixels.length; i += 4) {
        const [r, g, b, a] = pixels.slice(i, i + 4);
        if (a > 200 && Math.max(r, g, b) - Math.min(r, g, b) > 80) coloured += 1;
      }
      return coloured;
    }"""
    return int(page.evaluate(script, chart)) > 50


def test_texts_from_outside_stay_texts(browser: Browser) -> None:
    with web() as site, Devices(site.broker.port) as devices:
        devices.online(
            HOSTILE,
            mode=HOSTILE,
            reason=HOSTILE,
            degraded={HOSTILE: HOSTILE},
            alerts=(HOSTILE,),
            temperatures_c={HOSTILE: 50.0},
            audio=HOSTILE,
        )
        devices.say("odd", "telemetry", '{"ttfa_ms": 7, "degraded": [1], "alerts": {"a": 1}, "rails_mw": {"a": "x"}}')
        devices.say("odd", "status", '{"state": {"a": 1}, "voice": [], "audio": 7}')
        devices.say("none", "status", "[null")
        devices.say("null", "telemetry", "null")
        with opened(browser, site.page_url) as page:
            expect(page.locator("#rows tr")).to_have_count(4)
            for number in range(4):
                page.locator("#rows tr").nth(number).click()
                page.wait_for_timeout(300)  # a redraw
            page.locator("#rows tr", has_text="img").first.click()
            expect(page.locator("#name")).to_have_text(HOSTILE)
            devices.say(HOSTILE, "event", f'{{"event": "{HOSTILE}", "id": "{HOSTILE}", "time": "{HOSTILE}"}}')
            devices.raise_alert(HOSTILE, HOSTILE, HOSTILE)
            expect(page.locator("#events li")).to_have_text(re.compile(re.escape(HOSTILE)))
            assert page.locator("img, script:not([src])").count() == 0


def test_it_makes_a_real_device_speak(browser: Browser, tmp_path: Path, voice_packs: Path) -> None:
    with (
        web() as site,
        Controller(site.broker.port) as controller,
        DaemonProcess(tmp_path, site.broker.port, packs=voice_packs, settings={"telemetry": {"interval_s": 1}}),
    ):
        controller.wait_for_status("online")
        with opened(browser, site.page_url) as page:
            page.locator("tr[data-device=bench]").click()
            page.locator("#text").fill('Mind the "gap", please.')
            page.locator("#speak button").click()
            expect(page.locator("#answer")).to_have_text(re.compile("was said, first sound after [0-9]+ ms"))
            said = [event for event in controller.events if event["event"] == "finished"]
            assert said[0]["id"].startswith("page-")
            expect(page.locator("#stages tr", has_text="whole").locator("td").nth(1)).to_have_text(re.compile("[0-9]"))
            page.locator("#text").fill("Too loud.")
            page.locator("#volume").fill("2")
            page.evaluate("document.getElementById('volume').max = 9; document.getElementById('volume').value = 7")
            page.locator("#speak button").click()
            expect(page.locator("#answer")).to_have_text(re.compile("rejected: "))


def test_a_broker_that_wants_a_name_and_password(browser: Browser, tmp_path: Path) -> None:
    passwords = tmp_path / "passwords"
    program = shutil.which("mosquitto_passwd")
    assert program, "it comes with mosquitto"
    subprocess.run([program, "-b", "-c", str(passwords), "admin", "secret"], check=True)
    passwords.chmod(0o600)
    with web(f"password_file {passwords}", "allow_anonymous false") as site, opened(browser, site.page_url) as page:
        expect(page.locator("#link")).to_have_text(re.compile("not authorized", re.IGNORECASE))
        page.locator("#user").fill("admin")
        page.locator("#password").fill("secret")
        page.locator("#login button").click()
        expect(page.locator("#link")).to_have_text("connected")


def test_it_comes_back_after_the_broker_was_away(browser: Browser) -> None:
    with web() as site, opened(browser, site.page_url) as page:
        expect(page.locator("#link")).to_have_text("connected")
        site.broker.kill()
        expect(page.locator("#link")).not_to_have_text("connected")
        site.broker.start()
        expect(page.locator("#link")).to_have_text("connected", timeout=TIMEOUT_MS)
        with Devices(site.broker.port) as devices:
            devices.online("back")
            expect(page.locator("#rows td").first).to_have_text("back")


def test_written_to_a_folder_it_needs_no_server(browser: Browser, tmp_path: Path) -> None:
    port = free_port()
    with Mosquitto(f"listener {port} 127.0.0.1", "protocol websockets") as broker, Devices(broker.port) as devices:
        devices.online("well")
        assert cli.main(["dashboard", "--folder", str(tmp_path / "www"), "--broker", f"ws://127.0.0.1:{port}"]) == 0
        with opened(browser, (tmp_path / "www/index.html").as_uri()) as page:
            expect(page.locator("#rows td").first).to_have_text("well")


class TestServer:
    def test_it_serves_its_files_and_nothing_else(self) -> None:
        with web() as site:
            for path, status in {
                "": 200,
                "page.js": 200,
                "../dashboard.py": 404,
                "vendor/": 404,
                "config.js?x": 200,
            }.items():
                connection = http.client.HTTPConnection("127.0.0.1", int(site.page_url.split(":")[2].rstrip("/")))
                connection.request("GET", "/" + path)
                assert connection.getresponse().status == status, path
                connection.close()

    def test_a_port_that_is_taken_and_an_address_that_is_none(self, capsys: pytest.CaptureFixture[str]) -> None:
        server = dashboard.make_server(0, "")
        with server:
            assert cli.main(["dashboard", "--port", str(server.server_port)]) == 1
        assert cli.main(["dashboard", "--port", "70000"]) == 1
        assert cli.main(["dashboard", "--broker", "javascript:alert(1)"]) == 1
        errors = capsys.readouterr().err
        assert "--port" in errors
        assert "ws://" in errors


def test_what_others_have_written_is_as_they_published_it() -> None:
    for name, digest in VENDOR.items():
        assert hashlib.sha256((dashboard.PAGE / "vendor" / name).read_bytes()).hexdigest() == digest
    assert set(dashboard.FILES) == {
        str(path.relative_to(dashboard.PAGE)) for path in dashboard.PAGE.rglob("*") if path.is_file()
    }


def test_a_thousand_devices_do_not_stop_the_page(browser: Browser) -> None:
    with web() as site, Devices(site.broker.port) as devices, opened(browser, site.page_url) as page:
        expect(page.locator("#link")).to_have_text("connected")
        began = time.monotonic()
        status = '{"state": "online", "version": "0.1.0", "audio": "ok"}'
        infos = [
            devices._client.publish(f"speakd/kiosk-{number:04}/status", status, qos=1, retain=True)
            for number in range(1000)
        ]
        for info in infos:
            info.wait_for_publish(20)
        expect(page.locator("#counts")).to_have_text(re.compile("1000 devices.*worst 500"), timeout=TIMEOUT_MS)
        assert time.monotonic() - began < 60
