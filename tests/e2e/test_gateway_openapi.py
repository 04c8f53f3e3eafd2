#!/usr/bin/env python3
"""The OpenAPI document: clean in a linter, and a client made of it does the main job. Both are from npm."""
import subprocess
import sys

import gateway
from gateway import CALC, Gateway
from harness import HERE, ROOT, BatonTest, main

sys.path.insert(0, str(ROOT / "tests" / "peers"))
import peers  # noqa: E402  (the path is set just above)


def setUpModule():
    gateway.need()
    peers.need("openapi-client-axios")
    peers.need("@redocly/openapi-core")


class Document(BatonTest):
    def test_a_client_made_of_the_document_does_the_main_job(self):
        d = self.daemon(config=CALC)
        g = Gateway(self, d)
        done = subprocess.run(["node", HERE / "http_client.mjs", g.url, d.token(), peers.DIR / "node_modules"], capture_output=True, text=True, timeout=200)
        self.assertEqual((done.returncode, done.stdout), (0, "all is well\n"), done.stderr)


if __name__ == "__main__":
    main()
