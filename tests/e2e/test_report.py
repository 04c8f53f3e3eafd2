"""The report agent on a real daemon: pictures and pages as files of a plan, PDFs by Chromium, and browsers that misbehave."""
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest
import xml.etree.ElementTree

import harness
from harness import BIN, until
from probe import wait_up

CONFIG = """agents:
  - agentId: report
    command: ["%s/baton-agent-report"]
    env: [TMPDIR]
    settings: %%s
"""
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SVG = "{http://www.w3.org/2000/svg}"


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *a) for a in attrs]


class Report(harness.BatonTest):
    def up(self, **settings):
        text = CONFIG % BIN
        self.d = self.daemon(config=text.replace("%s", json.dumps(settings)), agents=False, start=False)
        (self.d.work / "tmp").mkdir()
        self.d.env["TMPDIR"] = str(self.d.work / "tmp")
        self.d.start(agents=False)
        wait_up(self.d, "report", 20)

    def run_step(self, skill, code=0, **parameters):
        plan = self.d.submit({"steps": [{"stepId": "s", "agentId": "report", "skill": skill, "task": "t", "parameters": parameters,
                                         "maxRetries": 0, "dependsOn": []}]})
        return plan, self.d.wait_plan(plan, 60)

    def artifact(self, plan, name):
        done = subprocess.run([BIN / "baton", "--state", self.d.state, "result", plan, "s", "--artifact", name], capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def failure(self, view):
        return view["steps"][0]

    def test_a_chart_is_a_file_that_is_well_formed(self):
        self.up()
        rows = [{"k": "<b>&\"'] %d" % i, "a": i - 3, "b": None if i == 2 else i * 1e11} for i in range(7)]
        for kind in ("bar", "line", "stacked", "histogram"):
            plan, view = self.run_step("chart", kind=kind, title="T & <script>", values=rows, artifact=True, name=kind + ".svg")
            self.assertEqual(view["status"], "completed", view)
            tree = xml.etree.ElementTree.fromstring(self.artifact(plan, kind + ".svg"))
            self.assertEqual((tree.tag, tree.find(SVG + "title").text), (SVG + "svg", "T & <script>"))
            known = {SVG + t for t in ("svg", "title", "rect", "line", "text", "g", "path", "circle")}
            self.assertLessEqual({e.tag for e in tree.iter()}, known)
            names = {n for e in tree.iter() for n in e.attrib}
            self.assertFalse([n for n in names if n.startswith("on") or "href" in n], names)

    def test_a_page_needs_nothing_else_and_obeys_no_text(self):
        self.up()
        evil = "<img src=x onerror=alert(1)> <script>alert(1)</script>\n\n<iframe src='//example.com'></iframe>\n\n[x](javascript:alert(1))"
        plan, view = self.run_step("document", title=evil, text=evil, format="html", artifact=True, sections=[
            {"heading": evil, "text": evil, "list": [evil], "table": [{evil: evil}],
             "chart": {"kind": "bar", "title": evil, "values": [{evil: evil, "n": 1}]}}])
        self.assertEqual(view["status"], "completed", view)
        text = self.artifact(plan, "report.html").decode()
        page = Page(text)
        for tag in ("script", "iframe", "img", "object", "embed", "link"):
            self.assertNotIn(tag, page.tags)
        self.assertFalse([a for a in page.attributes if a[1].startswith("on") or "javascript:" in (a[2] or "")])
        self.assertIn(("meta", "content", "default-src 'none'; style-src 'unsafe-inline'; img-src data:"), page.attributes)
        self.assertEqual(page.tags.count("svg"), 1)
        self.assertGreaterEqual(text.count("&lt;script&gt;alert(1)&lt;/script&gt;"), 6, "nothing is left out")

    @unittest.skipUnless(CHROMIUM, "Chromium is not installed (apt-get install chromium)")
    def test_a_pdf_has_the_text_and_leaves_nothing_behind(self):
        self.up()
        plan, view = self.run_step("document", title="Grüße", text="Hello PDF", format="pdf", name="x.pdf",
                                   sections=[{"chart": {"kind": "bar", "values": {"a": 1, "b": 2}}}])
        self.assertEqual(view["status"], "completed", view)
        pdf = self.artifact(plan, "x.pdf")
        self.assertTrue(pdf.startswith(b"%PDF-"), pdf[:40])
        self.assertEqual(list((self.d.work / "tmp").iterdir()), [])
        if shutil.which("pdftotext"):
            text = subprocess.run(["pdftotext", "-", "-"], input=pdf, capture_output=True, timeout=60).stdout.decode()
            self.assertIn("Grüße", text)
            self.assertIn("Hello PDF", text)

    def browser(self, script):
        path = pathlib.Path(self.d.work if hasattr(self, "d") else "/tmp") / "browser"
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)
        return path

    def test_a_browser_that_fails_hangs_or_writes_nothing(self):
        self.up(browser=str(pathlib.Path("/proc/self/cwd/none")))
        _, view = self.run_step("document", text="x", format="pdf")
        self.assertEqual(self.failure(view)["errorClass"], "TOOL_NOT_FOUND")
        self.assertIn("settings.browser", self.failure(view)["error"])
        work = self.d.work
        for script, words in (("echo out of paper >&2; exit 3", "exit code 3): out of paper"), ("exit 0", "wrote no PDF"),
                              ("kill -9 $$", "signal 9")):
            path = self.browser(script)
            done = subprocess.run([BIN / "baton-agent-report", "--once", "document"], capture_output=True, text=True, timeout=60,
                                  input=json.dumps({"parameters": {"text": "x", "format": "pdf"}}),
                                  env={**os.environ, "TMPDIR": str(work / "tmp"), "BATON_SETTINGS": json.dumps({"browser": str(path)})})
            self.assertIn(words, json.loads(done.stdout)["failure"]["message"])
            self.assertEqual(list((work / "tmp").iterdir()), [])

    def test_a_cancel_ends_the_browser(self):
        self.up()
        self.d.stop()
        mark = self.d.work / "began"
        path = self.browser("echo $$ >%s\ntrap '' TERM\nwhile :; do sleep 1; done\n" % mark)
        self.d.config.write_text(re.sub(r"settings: .*", "settings: " + json.dumps({"browser": str(path)}), self.d.config.read_text()))
        self.d.start(agents=False)
        plan = self.d.submit({"steps": [{"stepId": "s", "agentId": "report", "skill": "document", "task": "t",
                                         "parameters": {"text": "x", "format": "pdf"}, "dependsOn": []}]})
        until(lambda: mark.exists() and mark.read_text().strip(), 30, "the browser runs")
        self.d.ask("plan.cancel", planId=plan)
        pid = int(mark.read_text())
        until(lambda: not harness.alive(pid), 30, "the browser is ended")
        until(lambda: not list((self.d.work / "tmp").iterdir()), 30, "its directory is gone")


if __name__ == "__main__":
    harness.main()
