#!/usr/bin/env python3
"""baton-bridge-nats (deploy/NATS.md): the stream has each event of the daemon once, in order, whoever is killed; it goes on behind what the stream has."""
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

import nats
from harness import BIN, ROOT, BatonTest, main, until
from nats import CALC, STEP, Bridge, Server

sys.path.insert(0, str(ROOT / "tests" / "peers"))
import peers  # noqa: E402

PLAN = {"steps": [dict(STEP, stepId="s%d" % i) for i in range(8)]}


def setUpModule():
    nats.need()


class Nats(BatonTest):
    def pair(self, *args, start=True, config="jetstream {}"):
        d = self.daemon(config=CALC)
        server = Server(self, d.work, config)
        return d, server, Bridge(self, d, server, *args, start=start)

    def work(self, d, n=1):
        for _ in range(n):
            d.wait_plan(d.submit(PLAN))

    def check(self, d, server, stream="BATON_main"):
        """The stream is what `baton events --json` prints; its messages. An event may come meanwhile, of an agent that starts again."""
        def read():
            with server.client() as c:
                return c.messages(stream)

        until(lambda: len(read()) >= len(nats.lines_of(d)), 60, "the last event")
        lines = nats.lines_of(d)
        found = read()[:len(lines)]
        seqs = [int(h["Baton-Seq"]) for _, h, _ in found]
        self.assertEqual(len(seqs), len(set(seqs)), "an event is there twice")
        self.assertEqual(seqs, sorted(seqs), "the order")
        self.assertEqual([body.decode() for _, _, body in found], lines)
        return found

    def wait(self, d, server, b, **kwargs):
        return nats.wait_for(server, d, log=b.log, **kwargs)


class Copies(Nats):
    def test_the_stream_has_each_event_as_baton_events_prints_it(self):
        d, server, b = self.pair()
        self.work(d, 3)
        steps = json.loads(json.dumps(PLAN))
        steps["steps"][0]["task"] = "Add \u202eup\u009b what is \U000e0041 there \x7f today"
        d.wait_plan(d.submit(steps))
        self.wait(d, server, b)
        found = self.check(d, server)
        for at, (sequence, headers, body) in enumerate(found, 1):
            self.assertEqual(sequence, at)
            self.assertEqual(headers["Nats-Msg-Id"], "main/0/%s" % headers["Baton-Seq"])
        text = b"".join(body for _, _, body in found).decode()
        self.assertIn(r"Add \u202eup\u009b what", text)
        self.assertNotRegex(text, "[\u202e\u0080-\u009f\U000e0041\x7f]", "no terminal that shows it is ordered about")
        self.assertEqual(b.stop(), 0)

    def test_another_bridge_goes_on_behind_the_last_event(self):
        d, server, b = self.pair(start=False)
        for _ in range(3):
            self.work(d)
            code, _, said = b.run("--once")
            self.assertEqual(code, 0, said)
            self.check(d, server)

    def test_status_is_one_line(self):
        d, _, b = self.pair(start=False)
        code, _, said = b.run("--status")
        self.assertEqual((code, said), (1, "baton-bridge-nats: there is no stream BATON_main\n"))
        self.work(d)
        b.run("--once")
        last = len(nats.lines_of(d))
        code, line, _ = b.run("--status")
        self.assertEqual(code, 0)
        self.assertRegex(line, r"^BATON_main: up to event %d of %d, 0 behind; %d messages, [0-9]+ bytes\n$" % (last, last, last))
        self.work(d)
        more = len(nats.lines_of(d))
        self.assertIn("up to event %d of %d, %d behind; " % (last, more, more - last), b.run("--status")[1])

    def test_what_was_deleted_is_named_at_the_event_behind_it(self):
        d, server, b = self.pair(start=False)
        keep = d.submit(PLAN)
        d.wait_plan(keep)
        gone = d.submit(PLAN)
        d.wait_plan(gone)
        numbers = [e["seq"] for e in d.events(gone)]
        d.cli("delete", gone)
        code, _, said = b.run("--once")  # nothing is behind them yet
        self.assertEqual(code, 0, said)
        self.assertIn("bridge.deleted", said)
        self.work(d)
        code, _, said = b.run("--once")
        self.assertEqual(code, 0, said)
        self.assertIn("bridge.deleted", said)
        told, before = [], 0
        for _, headers, _ in self.check(d, server):
            seq = int(headers["Baton-Seq"])
            if "Baton-Deleted" in headers:
                first, last = map(int, headers["Baton-Deleted"].split("-"))
                self.assertEqual((first, last), (before + 1, seq - 1))
                told += range(first, last + 1)
            else:
                self.assertEqual(seq, before + 1)
            before = seq
        self.assertEqual(told, numbers)


class Kills(Nats):
    def test_bridge_server_and_daemon_are_killed_at_random(self):
        d, server, b = self.pair()
        seed = random.randrange(1 << 30)
        rng, killed = random.Random(seed), {"bridge": 0, "server": 0, "daemon": 0}
        for _ in range(24):
            d.submit(PLAN)
            time.sleep(rng.uniform(0, 0.3))
            who = rng.choice(("bridge", "bridge", "server", "daemon"))
            killed[who] += 1
            if who == "bridge":
                b.kill9()
                b.start()
            elif who == "server":
                server.kill9()
                server.start()
            else:
                d.kill9()
                d.start(agents=False)
        until(lambda: all(p["status"] == "completed" for p in d.ask("plan.list")["plans"]), 60, "all plans end")
        self.wait(d, server, b, seconds=60)
        found = self.check(d, server)
        print("seed %d: %s, %d events" % (seed, killed, len(found)))
        self.assertIsNone(b.process.poll(), b.log())

    def test_two_bridges_at_once_do_not_mix(self):
        d, server, b = self.pair()
        other = Bridge(self, d, server)
        for _ in range(5):
            d.submit(PLAN)
            time.sleep(0.1)
            random.choice((b, other)).kill9()
            for one in (b, other):
                if one.process.poll() is not None:
                    one.start()
        until(lambda: all(p["status"] == "completed" for p in d.ask("plan.list")["plans"]), 60, "all plans end")
        self.wait(d, server, b)
        self.check(d, server)
        self.assertEqual((b.process.poll(), other.process.poll()), (None, None), b.log())


class Streams(Nats):
    """What others do to the stream."""

    def copied(self, *args):
        """A stream with all events, and no bridge."""
        d, server, b = self.pair(*args, start=False)
        self.work(d)
        self.assertEqual(b.run("--once")[0], 0)
        return d, server, b

    def refused(self, b, *words):
        code, _, said = b.run("--once")
        self.assertEqual(code, 3, said)
        for word in words:
            self.assertIn(word, said)

    def test_a_stream_that_was_deleted_is_filled_again(self):
        d, server, b = self.pair()
        self.work(d)
        self.wait(d, server, b)
        with server.client() as c:
            c.api("STREAM.DELETE.BATON_main")
        self.work(d)
        until(lambda: b.log().count("made=true") == 2, 30, "it is made again")  # a server that is asked for a message meanwhile may crash (2.9.10)
        self.wait(d, server, b)
        self.check(d, server)

    def test_a_stream_that_was_emptied_goes_on_while_the_bridge_knows_where(self):
        d, server, b = self.pair()
        self.work(d)
        last = self.wait(d, server, b) and len(nats.lines_of(d))
        with server.client() as c:
            c.api("STREAM.PURGE.BATON_main")
        self.work(d)
        self.wait(d, server, b)
        with server.client() as c:
            self.assertEqual([int(h["Baton-Seq"]) for _, h, _ in c.messages("BATON_main")], list(range(last + 1, len(nats.lines_of(d)) + 1)))

    def test_one_that_was_emptied_before_the_start_needs_a_word_from_a_person(self):
        d, server, b = self.copied()
        last = len(nats.lines_of(d))
        with server.client() as c:
            c.api("STREAM.PURGE.BATON_main")
        self.refused(b, "is empty, but had messages", "--after SEQ")
        self.work(d)
        self.assertEqual(b.run("--once", "--after", last)[0], 0)
        with server.client() as c:
            self.assertEqual([int(h["Baton-Seq"]) for _, h, _ in c.messages("BATON_main")], list(range(last + 1, len(nats.lines_of(d)) + 1)))

    def test_what_was_cut_off_its_end_comes_again_when_the_server_has_forgotten_it(self):
        d, server, b = self.pair(start=False)
        with server.client() as c:
            c.api("STREAM.CREATE.BATON_main", name="BATON_main", subjects=["baton.main.0"], retention="limits", storage="file", num_replicas=1,
                  max_consumers=-1, max_msgs=-1, max_bytes=-1, max_age=0, discard="old", duplicate_window=3 * 10 ** 9)
            self.work(d)
            self.assertEqual(b.run("--once")[0], 0)
            for sequence in range(5, c.state("BATON_main")["last_seq"] + 1):
                c.api("STREAM.MSG.DELETE.BATON_main", seq=sequence)
        b.start()
        self.wait(d, server, b)
        with server.client() as c:
            found = c.messages("BATON_main")
        self.assertEqual([body.decode() for _, _, body in found], nats.lines_of(d))

    def test_a_stream_of_another_journal_is_refused(self):
        d, server, b = self.copied()
        other = self.daemon(config=CALC)
        stranger = Bridge(self, other, server, start=False)
        self.refused(stranger, "ends with event", "another journal")
        for _ in range(3):
            self.work(other)
        self.refused(stranger, "event %d is " % len(nats.lines_of(d)), "another journal")
        self.check(d, server)

    def test_a_stream_that_is_not_as_it_must_be_is_refused(self):
        d, server, b = self.pair(start=False)
        self.work(d)
        right = dict(name="BATON_main", subjects=["baton.main.0"], retention="limits", storage="memory", num_replicas=1, max_consumers=-1,
                     max_msgs=-1, max_bytes=-1, max_age=0, discard="old")
        for wrong, word in (({"subjects": ["baton.>"]}, "it has other subjects"), ({"subjects": ["baton.main.0", "x"]}, "it has other subjects"),
                            ({"retention": "workqueue"}, "its messages go when they are read"), ({"retention": "interest"}, "its messages go"),
                            ({"no_ack": True}, "it acknowledges nothing"), ({}, None)):
            with server.client() as c:
                c.api("STREAM.CREATE.BATON_main", **{**right, **wrong})
                if word is not None:
                    self.refused(b, "the stream BATON_main is not as it must be", word)
                    c.api("STREAM.DELETE.BATON_main")
        self.assertEqual(b.run("--once")[0], 0)
        with server.client() as c:
            c.publish("baton.main.0", b"not an event")
            until(lambda: c.state("BATON_main")["last_seq"] == len(nats.lines_of(d)) + 1, 10, "it is there")
        self.refused(b, "the last message of the stream BATON_main is not of this bridge")

    def test_another_stream_that_has_the_subject_is_refused(self):
        d, server, b = self.pair(start=False)
        with server.client() as c:
            c.api("STREAM.CREATE.ALL", name="ALL", subjects=["baton.>"], retention="limits", storage="memory", num_replicas=1, max_consumers=-1,
                  max_msgs=-1, max_bytes=-1, max_age=0, discard="old")
        self.refused(b, "making the stream BATON_main", "overlap")

    def test_a_full_stream_is_waited_for(self):
        d, server, b = self.pair(start=False)
        config = dict(name="BATON_main", subjects=["baton.main.0"], retention="limits", storage="memory", num_replicas=1, max_consumers=-1,
                      max_msgs=5, max_bytes=-1, max_age=0, discard="new")
        self.work(d)
        with server.client() as c:
            c.api("STREAM.CREATE.BATON_main", **config)
            b.start()
            until(lambda: "bridge.waits" in b.log() and "maximum messages exceeded" in b.log(), 20, "it says why it waits")
            self.assertEqual(c.state("BATON_main")["messages"], 5)
            c.api("STREAM.UPDATE.BATON_main", **{**config, "max_msgs": -1})
        self.wait(d, server, b)
        self.check(d, server)


class Servers(Nats):
    """Servers that are not there, or do not let it in."""

    def ends(self, code, *words, args=(), config="jetstream {}", env=None):
        d = self.daemon(config=CALC)
        server = Server(self, d.work, config)
        got, _, said = Bridge(self, d, server, *args, start=False, env=env).run("--once")
        self.assertEqual(got, code, said)
        for word in words:
            self.assertIn(word, said)

    def secret(self, text, mode=0o600):
        file = pathlib.Path(tempfile.mkstemp(prefix="baton-secret-")[1])
        self.addCleanup(file.unlink)
        file.write_text(text)
        file.chmod(mode)
        return file

    def test_it_waits_for_a_server_that_comes_later(self):
        d = self.daemon(config=CALC)
        server = Server(self, d.work, start=False)
        b = Bridge(self, d, server)
        until(lambda: "bridge.waits" in b.log(), 20, "it says that it waits")
        self.assertEqual(b.run("--once")[:2], (1, ""))
        self.assertIn("the server at %s: No server available" % server.url, b.run("--once")[2])
        server.start()
        self.wait(d, server, b)
        self.check(d, server)

    def test_it_waits_for_the_daemon(self):
        d, server, b = self.pair()
        self.wait(d, server, b)
        d.stop()
        until(lambda: "bridge.waits" in b.log(), 30, "it says that it waits")
        d.start()
        self.work(d)
        self.wait(d, server, b)
        self.check(d, server)

    def test_a_server_without_jetstream(self):
        self.ends(1, "JetStream", config="")

    def test_a_server_that_takes_no_message_of_that_size(self):
        self.ends(1, "larger max_payload", config="jetstream {}\nmax_payload: 600")

    def test_user_and_password(self):
        config = 'jetstream {}\nauthorization { user: ada, password: "s3cret word" }'
        self.ends(1, "uthorization", config=config)
        self.ends(1, "uthorization", config=config, args=("--user", "ada", "--password-file", self.secret("wrong\n")))
        self.ends(1, "only its owner can read", config=config, args=("--user", "ada", "--password-file", self.secret("s3cret word\n", 0o640)))
        self.ends(0, config=config, args=("--user", "ada", "--password-file", self.secret("s3cret word\n")))

    def test_a_password_that_changes_while_it_runs_ends_it_with_the_reason(self):
        d = self.daemon(config=CALC)
        config = 'jetstream {}\nauthorization { user: ada, password: "%s" }'
        server = Server(self, d.work, config % "one")
        b = Bridge(self, d, server, "--user", "ada", "--password-file", self.secret("one"))
        until(lambda: ", 0 behind;" in b.run("--status")[1], 30, "it is let in, and has nothing to send")
        server.kill9()
        server.say(config % "two")
        server.start()
        self.assertEqual(b.process.wait(30), 1)
        self.assertIn("uthorization", b.log().splitlines()[-1])

    def test_token(self):
        config = "jetstream {}\nauthorization { token: t0ken }"
        self.ends(1, "uthorization", config=config, args=("--token-file", self.secret("other")))
        self.ends(0, config=config, args=("--token-file", self.secret("t0ken")))

    def test_permissions_as_the_page_names_them_are_enough_and_a_missing_one_is_named(self):
        allowed = ["baton.main.0", "$JS.API.STREAM.INFO.BATON_main", "$JS.API.STREAM.MSG.GET.BATON_main", "$JS.API.STREAM.CREATE.BATON_main"]
        for missing in (None, *allowed):
            may = json.dumps([a for a in allowed if a != missing])
            config = 'jetstream {}\nauthorization { users: [ { user: u, password: p, permissions: { publish: %s, subscribe: ["_INBOX.>"] } } ] }' % may
            args = ("--user", "u", "--password-file", self.secret("p"))
            if missing is None or ".MSG.GET." in missing:  # nothing to get from a stream that is new
                self.ends(0, config=config, args=args)
            else:
                self.ends(1, "Permissions Violation", missing, config=config, args=args)

    def test_tls(self):
        where = pathlib.Path(tempfile.mkdtemp(prefix="baton-tls-"))
        self.addCleanup(shutil.rmtree, where)

        def make(name, host, *more):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                            "/CN=" + name, "-addext", "subjectAltName=" + host, "-keyout", where / (name + ".key"), "-out", where / (name + ".pem"),
                            *more], check=True, capture_output=True)
        make("server", "IP:127.0.0.1")
        make("elsewhere", "DNS:elsewhere.example")
        make("other", "IP:127.0.0.1")
        make("client", "DNS:client")

        def config(name, more=""):
            return 'jetstream {}\ntls { cert_file: "%s", key_file: "%s" %s }' % (where / (name + ".pem"), where / (name + ".key"), more)
        ca = ("--tls-ca", where / "server.pem")
        self.ends(0, config=config("server"), args=ca)
        self.ends(1, config=config("server"))  # without --tls it trusts nobody
        self.ends(1, config=config("server"), args=("--tls",))
        self.ends(1, "--tls-ca /nonexistent: No such file", config=config("server"), args=("--tls-ca", "/nonexistent"))
        self.ends(1, config=config("server"), args=("--tls-ca", where / "other.pem"))
        self.ends(1, config=config("elsewhere"), args=("--tls-ca", where / "elsewhere.pem"))
        asks = config("server", ', ca_file: "%s", verify: true' % (where / "client.pem"))
        own = ("--tls-cert", where / "client.pem", "--tls-key", where / "client.key")
        self.ends(1, config=asks, args=ca)
        self.ends(0, config=asks, args=(*ca, *own))
        (where / "client.key").chmod(0o644)
        self.ends(1, "only its owner can read", config=asks, args=(*ca, *own))

    def test_a_credential_that_does_not_see_all_is_refused(self):
        d, server, b = self.pair(start=False)
        self.work(d)
        for role, code, word in (("submitter", 3, "must be of a role that sees all"), ("observer", 0, "")):
            file = d.work / (role + ".credential")
            d.cli("credential", "add", role, "--role", role, "--file", file)
            got, _, said = Bridge(self, d, server, start=False, env={"BATON_CREDENTIAL": str(file)}).run("--once")
            self.assertEqual(got, code, said)
            self.assertIn(word, said)
        self.check(d, server)

    def test_a_file_of_credentials(self):
        peers.need("@nats-io/jwt")
        where = pathlib.Path(tempfile.mkdtemp(prefix="baton-creds-"))
        self.addCleanup(shutil.rmtree, where)
        config = "jetstream {}\n" + peers.run("creds.mjs", where)
        self.ends(1, "uthorization", config=config)
        self.ends(1, "uthorization", config=config, args=("--creds", where / "stranger.creds"))
        self.ends(0, config=config, args=("--creds", where / "user.creds"))
        (where / "user.creds").chmod(0o640)
        self.ends(1, "only its owner can read", config=config, args=("--creds", where / "user.creds"))
        self.ends(1, "No such file", config=config, args=("--creds", where / "none"))

    def test_an_nkey(self):
        peers.need("@nats-io/jwt")
        seeds = [peers.run("nkey.mjs").split() for _ in range(2)]
        config = "jetstream {}\nauthorization { users: [ { nkey: %s } ] }" % seeds[0][1]
        self.ends(0, config=config, args=("--nkey", self.secret(seeds[0][0] + "\n")))
        self.ends(1, "uthorization", config=config, args=("--nkey", self.secret(seeds[1][0])))
        right = seeds[0][0]
        for wrong in (seeds[0][1], right[:-1], right + "A", right[:20] + ("A" if right[20] != "A" else "B") + right[21:], right.lower()):
            self.ends(1, "no seed of a user", config=config, args=("--nkey", self.secret(wrong)))


class Readers(Nats):
    def test_nats_js_reads_each_event_once_and_in_order_over_kills(self):
        peers.need("nats")
        d, server, b = self.pair()
        self.work(d)
        self.wait(d, server, b)
        got = [json.loads(line) for line in peers.run("nats.mjs", server.url, "BATON_main", 1 << 60, 5).splitlines()]
        self.assertEqual(len(got), 5)
        for fault in (b, server, d):
            fault.kill9()
            fault.start()
            self.work(d)
        self.wait(d, server, b)
        lines = nats.lines_of(d)
        again = [json.loads(line) for line in peers.run("nats.mjs", server.url, "BATON_main", len(lines)).splitlines()]
        first = again[0]["seq"]
        self.assertLessEqual(first, 6, "none is passed over")  # a server that is killed may forget the last places of its readers
        self.assertEqual([m["seq"] for m in got], list(range(1, 6)))
        self.assertEqual([m["seq"] for m in again], list(range(first, len(lines) + 1)))
        self.assertEqual([m["body"] for m in got[:first - 1] + again], lines)


class Use(Nats):
    def test_wrong_use_is_said_in_words(self):
        for args, word in ((["--server", "nats://u:p@127.0.0.1:4222"], "others can read it"), (["--server", "http://x"], "expected a URL"),
                           *((["--server", wrong], "expected a URL") for wrong in ("nats://", "nats://h:", "nats://h:0", "nats://h:65536", "nats://h:x", "nats://[::1", "nats://[::1]x",
                                                                           "nats://h/x", "nats://a,b", "localhost:4222")),
                           (["--server"], "needs a value"), (["--nam", "x"], "there is no option"),
                           (["--name", "a.b"], "letters, digits"), (["--name", ""], "letters, digits"), (["--name", "n" * 33], "letters, digits"),
                           (["--replicas", "0"], "1 to 5"), (["--replicas", "6"], "1 to 5"), (["--after", "-1"], "a number"),
                           (["--after", "1x"], "a number"), (["--user", "u"], "go together"), (["--tls-key", "k"], "go together"),
                           (["--creds", "a", "--token-file", "b"], "one proof")):
            done = subprocess.run([BIN / "baton-bridge-nats", *args], capture_output=True, text=True, timeout=30)
            self.assertEqual(done.returncode, 2, args)
            self.assertIn(word, done.stderr)
        for args, word in ((["--help"], "usage: baton-bridge-nats"), (["--version"], "baton-bridge-nats ")):
            done = subprocess.run([BIN / "baton-bridge-nats", *args], capture_output=True, text=True, timeout=30)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(word, done.stdout)

    def test_names_of_32_letters_and_two_of_them_on_one_server(self):
        d, server, b = self.pair("--name", "n" * 32)
        other = self.daemon(config=CALC)
        Bridge(self, other, server, "--name", "Other_1-x")
        self.work(d)
        self.work(other)
        nats.wait_for(server, d, "BATON_" + "n" * 32, log=b.log)
        nats.wait_for(server, other, "BATON_Other_1-x")
        self.check(d, server, "BATON_" + "n" * 32)
        self.check(other, server, "BATON_Other_1-x")


if __name__ == "__main__":
    main()
