"""The rag agent: an index that follows a folder, passages with their lines, vectors by an endpoint that the test is."""
import http.server
import json
import math
import os
import pathlib
import random
import re
import shutil
import subprocess
import tempfile
import threading
import unittest

BIN = pathlib.Path(os.environ["BATON_BIN"])
SEED = int(os.environ.get("BATON_TEST_SEED", "4711"))
KEY = "sk-secret-of-the-test-0123456789"
TOPICS = {"car": ("automobile", "engine", "wheel"), "cat": ("feline", "purr", "whisker"), "sea": ("ocean", "wave", "tide")}


class Embeddings(http.server.BaseHTTPRequestHandler):
    """Texts about one topic lie near each other, whatever their words are."""
    calls, mode = [], "well"

    def log_message(self, *args):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).calls.append((self.path, self.headers.get("Authorization"), body))
        status, answer = 200, {"data": [{"index": i, "embedding": self.vector(t)} for i, t in enumerate(body["input"])]}
        if self.mode == "shuffled":
            answer["data"].reverse()
        if self.mode == "down":
            status, answer = 503, {"error": KEY + " is overloaded"}
        if self.mode == "short":
            answer["data"].pop()
        if self.mode == "nan":
            answer["data"][0]["embedding"][0] = None
        if self.mode == "refused":
            status, answer = 401, {"error": "no"}
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def vector(self, text):
        v = [0.01] * 4
        for i, (topic, words) in enumerate(TOPICS.items()):
            v[i] += sum(text.lower().count(w) for w in (topic, *words))
        return v


class Rag(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="baton-rag-"))
        self.addCleanup(shutil.rmtree, self.dir)
        self.docs = self.dir / "docs"
        self.docs.mkdir()
        self.settings = {"folder": str(self.docs), "database": str(self.dir / "db" / "index.db")}

    def once(self, skill, env=None, **parameters):
        done = subprocess.run([BIN / "baton-agent-rag", "--once", skill], input=json.dumps({"parameters": parameters}), capture_output=True,
                              text=True, timeout=120, env={**os.environ, "BATON_SETTINGS": json.dumps(self.settings), **(env or {})})
        self.assertTrue(done.stdout, done.stderr)
        return json.loads(done.stdout)

    def data(self, skill, **parameters):
        answer = self.once(skill, **parameters)
        self.assertEqual(answer["outcome"], "completed", answer)
        return answer["result"]["data"]

    def failure(self, skill, **parameters):
        answer = self.once(skill, **parameters)
        self.assertEqual(answer["outcome"], "failed", answer)
        return answer["failure"]

    def write(self, name, text):
        path = self.docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def counts(self, **parameters):
        d = self.data("index", **parameters)
        return d["indexed"], d["unchanged"], d["removed"], d["skippedCount"]


class Index(Rag):
    def test_it_follows_the_folder(self):
        self.write("a.md", "# One\nalpha\n")
        self.write("sub/deep/b.txt", "beta\n")
        self.write("c.bin", "gamma\n")
        self.write(".hidden.md", "delta\n")
        (self.docs / "link.md").symlink_to("/etc/hostname")
        self.assertEqual(self.counts(), (2, 0, 0, 0))
        self.assertEqual(self.counts(), (0, 2, 0, 0))
        self.write("a.md", "# One\nepsilon and more\n")
        (self.docs / "sub/deep/b.txt").unlink()
        self.write("new.md", "zeta\n")
        self.assertEqual(self.counts(), (2, 0, 1, 0))
        self.assertEqual([r["file"] for r in self.data("retrieve", query="epsilon")["results"]], ["a.md"])
        for gone in ("alpha", "beta", "gamma", "delta"):
            self.assertEqual(self.data("retrieve", query=gone)["results"], [], gone)

    def test_files_of_other_kinds_are_counted(self):
        self.write("a.md", "alpha\n")
        self.write("b.log", "beta\n")
        self.write("sub/c.bin", "gamma\n")
        self.assertEqual(self.data("index")["otherCount"], 2)

    def test_what_is_no_text_or_too_large_is_named(self):
        self.settings["maxFileBytes"] = 1000
        self.write("zero.md", b"a\0b")
        self.write("edge.md", "x" * 1000)
        self.write("large.md", "x" * 1001)
        self.write("latin.md", "caf\xe9 word\n".encode("latin-1"))
        d = self.data("index")
        self.assertEqual((d["indexed"], d["skippedCount"]), (2, 2))
        self.assertEqual({s["file"]: s["reason"] for s in d["skipped"]},
                         {"zero.md": "is no text: it has zero bytes", "large.md": "has more bytes than the setting maxFileBytes"})
        self.assertEqual(len(self.data("retrieve", query="word")["results"]), 1)
        self.write("edge.md", "x" * 1001)
        self.assertEqual(self.counts(), (0, 1, 1, 3))  # what it was is gone

    def test_caps_are_exact(self):
        self.settings["maxFiles"] = 3
        for i in range(3):
            self.write("f%d.md" % i, "word %d\n" % i)
        self.assertEqual(self.counts(), (3, 0, 0, 0))
        self.write("f3.md", "word\n")
        self.assertIn("more than 3 files", self.failure("index")["message"])
        self.assertEqual(len(self.data("retrieve", query="word")["results"]), 3, "what was indexed stays")

    def test_random_files_are_found_by_their_lines(self):
        r = random.Random(SEED)
        for n in range(12):
            lines, marks = [], {}
            for i in range(r.randrange(1, 400)):
                kind = r.random()
                lines.append("" if kind < 0.15 else "# Heading %d" % i if kind < 0.2 else "x" * r.randrange(6000) if kind < 0.21
                             else "filler words of line %d" % i)
            for m in range(5):
                at = r.randrange(len(lines))
                mark = "mark%dq%d" % (n, m)
                lines[at] += " " + mark
                marks[mark] = at + 1
            self.write("r%d.md" % n, "\n".join(lines) + ("\n" if r.random() < 0.5 else ""))
            self.data("index")
            for mark, line in marks.items():
                results = self.data("retrieve", query=mark)["results"]
                self.assertEqual(len(results), 1, (SEED, mark))
                self.assertEqual(results[0]["file"], "r%d.md" % n)
                self.assertLessEqual(results[0]["firstLine"], line)
                self.assertGreaterEqual(results[0]["lastLine"], line)
                body = "\n".join(lines[results[0]["firstLine"] - 1:results[0]["lastLine"]])
                self.assertIn(results[0]["text"], body)
                self.assertLessEqual(len(results[0]["text"]), 4000)

    def test_settings_that_are_wrong_are_named(self):
        for change, words in (({"folder": "relative"}, "folder"), ({"folder": str(self.dir / "none")}, "folder"), ({"folder": None}, "folder"),
                              ({"database": None}, "database"), ({"database": str(self.dir / "x/y/z.db")}, "database"),
                              ({"maxFiles": 0}, "maxFiles"), ({"globs": []}, "unknown member 'globs'"),
                              ({"embeddings": {"baseUrl": "https://x.example"}}, "embeddings: model"),
                              ({"embeddings": {"baseUrl": "ftp://x", "model": "m"}}, "embeddings: baseUrl"),
                              ({"embeddings": {"baseUrl": "https://x.example", "model": "m", "key": "literal"}}, "key")):
            settings = {k: v for k, v in {**self.settings, **change}.items() if v is not None}
            done = subprocess.run([BIN / "baton-agent-rag", "--once", "index"], input="{}", capture_output=True, text=True, timeout=60,
                                  env={**os.environ, "BATON_SETTINGS": json.dumps(settings)})
            self.assertNotEqual(done.returncode, 0, change)
            self.assertIn(words, done.stderr, change)


class Retrieve(Rag):
    def test_the_best_comes_first_with_its_citation(self):
        self.write("backup.md", "# Backups\n\nBackups run at night. A backup is kept for 30 days.\n")
        self.write("guide/holidays.md", "# Holidays\n\nEverybody has 30 days of holidays.\n")
        self.data("index")
        answer = self.once("retrieve", query="how long is a backup kept?")
        self.assertEqual(answer["result"]["data"]["results"][0]["file"], "backup.md")
        self.assertTrue(answer["result"]["text"].startswith("[1] backup.md:1-3\n# Backups"), answer["result"]["text"])
        self.assertEqual([r["file"] for r in self.data("retrieve", query="days", files="guide/*")["results"]], ["guide/holidays.md"])
        self.assertEqual(self.data("retrieve", query="days", limit=1)["matches"], 2)
        self.assertEqual(self.once("retrieve", query="zebra")["result"]["text"], "nothing fits the question")

    def test_nothing_in_a_question_is_syntax(self):
        self.write("a.md", "alpha AND beta NEAR gamma\n")
        self.data("index")
        for query in ('alpha" OR "', "alpha NEAR(", "text:alpha", "alpha*", "(alpha", "alpha -beta", "alpha ^ { } + '", "ALPHA\u0301", "\u202ealpha"):
            self.assertEqual(self.once("retrieve", query=query)["outcome"], "completed", query)
        self.assertIn("has no words", self.failure("retrieve", query="?!")["message"])
        self.assertEqual(self.once("retrieve", query=" ".join("w%d" % i for i in range(64)))["outcome"], "completed")
        self.assertIn("more than 64 words", self.failure("retrieve", query=" ".join("w%d" % i for i in range(65)))["message"])

    def test_without_an_index_it_says_what_to_do(self):
        self.assertIn("run the skill index first", self.failure("retrieve", query="x")["message"])

    def test_the_supervisors_files_are_closed(self):
        state = self.docs / "state"
        state.mkdir()
        self.write("state/token.md", "topsecret\n")
        self.write("open.md", "plain\n")
        env = {"BATON_STATE": str(state)}
        self.assertEqual(self.once("index", env=env)["result"]["data"]["indexed"], 1)
        self.assertEqual(self.once("retrieve", env=env, query="topsecret")["result"]["data"]["results"], [])


class Vectors(Rag):
    def setUp(self):
        super().setUp()
        Embeddings.calls, Embeddings.mode = [], "well"
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Embeddings)
        thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        thread.start()
        self.addCleanup(lambda: (self.server.shutdown(), self.server.server_close(), thread.join()))
        os.environ["RAG_TEST_KEY"] = KEY
        self.addCleanup(os.environ.pop, "RAG_TEST_KEY")
        self.settings["embeddings"] = {"baseUrl": "http://127.0.0.1:%d/v1" % self.server.server_port, "model": "toy", "key": {"env": "RAG_TEST_KEY"},
                                       "allowPrivate": ["127.0.0.1"]}
        self.write("garage.md", "The automobile has an engine.\n")
        self.write("pets.md", "The feline can purr.\n")
        self.write("coast.md", "The ocean has a tide.\n")

    def test_meaning_finds_what_words_do_not(self):
        d = self.data("index")
        self.assertEqual(d["embedded"], 3)
        self.assertEqual({c[:2] for c in Embeddings.calls}, {("/v1/embeddings", "Bearer " + KEY)})
        for query, name in (("cat", "pets.md"), ("car", "garage.md"), ("sea", "coast.md")):
            results = self.data("retrieve", query=query, limit=1)["results"]
            self.assertEqual(results[0]["file"], name)
            self.assertGreater(results[0]["meaning"], 0.9)
            self.assertLessEqual(results[0]["meaning"], 1.000001)
        self.assertEqual(self.data("index")["embedded"], 0, "nothing is asked for twice")
        Embeddings.mode = "shuffled"
        self.write("garage.md", "A wheel.\n")
        self.write("pets.md", "A whisker.\n")
        self.assertEqual(self.data("index")["embedded"], 2)
        self.assertEqual(self.data("retrieve", query="cat", limit=1)["results"][0]["file"], "pets.md")

    def test_an_endpoint_that_fails_costs_only_the_vectors(self):
        for mode, code, words, retryable in (("down", "SERVICE_UNAVAILABLE", "status 503", True), ("short", "VALIDATION_ERROR", "no list `data` of 3", False),
                                             ("nan", "VALIDATION_ERROR", "is no vector", False), ("refused", "PERMISSION_DENIED", "status 401", False)):
            Embeddings.mode = mode
            failure = self.failure("index")
            self.assertEqual((failure["class"], failure["retryable"]), (code, retryable), failure)
            self.assertIn(words, failure["message"])
            self.assertNotIn(KEY, json.dumps(failure))
        Embeddings.mode = "well"
        d = self.data("index")
        self.assertEqual((d["unchanged"], d["embedded"]), (3, 3), "the words were kept, the vectors come now")

    def test_vectors_of_another_model_are_made_again(self):
        self.data("index")
        self.settings["embeddings"]["model"] = "other"
        before = len(Embeddings.calls)
        self.assertEqual(self.data("retrieve", query="cat")["results"], [], "old vectors are not compared")
        self.assertEqual(len(Embeddings.calls), before)
        self.assertEqual(self.data("index")["embedded"], 3)
        self.assertEqual({c[2]["model"] for c in Embeddings.calls[before:]}, {"other"})
        self.assertEqual(self.data("retrieve", query="cat", limit=1)["results"][0]["file"], "pets.md")


if __name__ == "__main__":
    unittest.main(verbosity=2)
