"""`baton certs`: what it issues is what openssl takes for it, and nothing is overwritten."""
import json
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

from harness import BIN, main


class Certs(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix="baton-certs-")
        self.addCleanup(work.cleanup)
        self.work = pathlib.Path(work.name)

    def baton(self, *args, code=0):
        done = subprocess.run([BIN / "baton", "certs", *args, "--dir", self.work / "ca"], capture_output=True, text=True, cwd=self.work)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def openssl(self, *args):
        return subprocess.run(["openssl", *map(str, args)], capture_output=True, text=True, cwd=self.work)

    def verify(self, file, *args):
        return self.openssl("verify", "-x509_strict", "-CAfile", "ca/ca.pem", *args, file).returncode == 0

    def shown(self, name):
        return [c for c in json.loads(self.baton("show", "--json")) if c["name"] == name]

    def test_what_is_issued_is_valid_for_its_use_hosts_and_time(self):
        self.baton("init")
        self.baton("issue", "hub", "--server", "--host", "hub.example", "--host", "10.1.2.3", "--host", "fd00::1", "--days", "30")
        self.baton("issue", "ann", "--client")
        self.assertTrue(self.verify("hub.pem", "-purpose", "sslserver", "-verify_hostname", "hub.example"))
        self.assertTrue(self.verify("hub.pem", "-purpose", "sslserver", "-verify_ip", "10.1.2.3"))
        self.assertTrue(self.verify("hub.pem", "-verify_ip", "fd00::1"))
        self.assertFalse(self.verify("hub.pem", "-verify_ip", "10.1.2.4"))
        self.assertFalse(self.verify("hub.pem", "-purpose", "sslclient"))
        self.assertTrue(self.verify("ann.pem", "-purpose", "sslclient"))
        self.assertFalse(self.verify("ann.pem", "-purpose", "sslserver"))
        # it cannot issue others, and the key is its own
        self.assertIn("CA:FALSE", self.openssl("x509", "-in", "ann.pem", "-noout", "-text").stdout)
        keys = [self.openssl(*a).stdout for a in (("x509", "-in", "ann.pem", "-noout", "-pubkey"), ("pkey", "-in", "ann.pem", "-pubout"))]
        self.assertEqual(*keys)
        # to the second; for openssl the last one is over
        hub, = self.shown("hub")
        first, last = (int(time.mktime(time.strptime(hub[k][:19] + "UTC", "%Y-%m-%dT%H:%M:%S%Z")) - time.timezone) for k in ("from", "until"))
        self.assertEqual([self.verify("hub.pem", "-attime", t) for t in (first - 1, first, last - 1, last)], [False, True, True, False])
        self.assertLess(abs(last - time.time() - 30 * 86400), 600)
        self.assertEqual((hub["hosts"], hub["use"], hub["state"]), (["hub.example", "10.1.2.3", "fd00::1"], "server", "valid"))
        # nobody else reads a key
        modes = {p.name: p.stat().st_mode & 0o777 for p in (self.work / "hub.pem", self.work / "ca/ca.key", self.work / "ca")}
        self.assertEqual(modes, {"hub.pem": 0o600, "ca.key": 0o600, "ca": 0o700})
        self.assertNotIn(b"PRIVATE", b"".join(p.read_bytes() for p in (self.work / "ca/issued").iterdir()))

    def test_renewal_keeps_the_name_and_changes_the_key(self):
        self.baton("init", "--days", "100")
        self.baton("issue", "hub", "--server", "--client", "--host", "hub.example", "--days", "1")
        before = (self.work / "hub.pem").read_text()
        self.assertIn("exists already", self.baton("issue", "hub", "--client", code=2))
        self.assertEqual((self.work / "hub.pem").read_text(), before)
        self.baton("renew", "hub", "--days", "3000")
        self.assertTrue(self.verify("hub.pem", "-verify_hostname", "hub.example"))
        old, new = self.shown("hub")
        self.assertNotEqual(old["serial"], new["serial"])
        self.assertEqual(new["use"], "server, client")
        authority = json.loads(self.baton("show", "--json"))[0]
        self.assertEqual(new["until"], authority["until"])  # never longer than the authority
        self.assertNotEqual(self.openssl("x509", "-in", "hub.pem", "-noout", "-pubkey").stdout,
                            subprocess.run(["openssl", "x509", "-noout", "-pubkey"], input=before, capture_output=True, text=True).stdout)
        self.assertIn("has issued no certificate 'nobody'", self.baton("renew", "nobody", code=7))

    def test_what_is_revoked_is_on_the_list_and_what_is_renewed_after_it_is_not(self):
        self.baton("init")
        self.baton("issue", "hub", "--server", "--host", "h", "--to", self.work / "hub")
        for name in ("ann", "bob"):
            self.baton("issue", name, "--client", "--to", self.work)
        before = (self.work / "ca/ca.pem").read_text()
        self.assertIn("1 certificate.", self.baton("revoke", "ann", "--to", self.work / "hub"))
        self.assertIn("revoked before", self.baton("revoke", "ann", "--to", self.work / "hub"))
        both = (self.work / "hub/ca.pem").read_text()
        self.assertTrue(both.startswith(before))
        self.assertEqual(both.count("BEGIN X509 CRL"), 1)
        self.assertEqual((self.work / "ca/ca.pem").read_text(), before, "the authority stays as it is")
        shown = self.openssl("crl", "-in", "ca/crl.pem", "-CAfile", "ca/ca.pem", "-noout", "-text")
        self.assertIn("verify OK", shown.stderr)
        shown = shown.stdout
        serial = [c["serial"] for c in json.loads(self.baton("show", "--json")) if c["name"] == "ann"][0]
        self.assertIn(serial.upper(), shown)
        self.assertIn("Version 1", shown)
        self.assertEqual({c["name"]: c["state"] for c in json.loads(self.baton("show", "--json"))}["ann"], "revoked")

        def check(name):
            done = subprocess.run(["openssl", "verify", "-crl_check", "-CAfile", self.work / "ca/ca.pem", "-CRLfile", self.work / "ca/crl.pem",
                                   self.work / (name + ".pem")], capture_output=True, text=True)
            return done.returncode == 0, done.stdout + done.stderr
        self.assertEqual((check("ann")[0], check("bob")[0]), (False, True))
        self.assertIn("revoked", check("ann")[1])
        self.baton("renew", "ann", "--to", self.work)
        self.assertTrue(check("ann")[0], check("ann")[1])
        # one by its serial; then all of a name, of which one is on it already
        serials = [c["serial"] for c in json.loads(self.baton("show", "bob", "--json"))]
        self.baton("revoke", serials[0], "--to", self.work / "hub")
        self.assertFalse(check("bob")[0])
        self.assertIn("1 certificate.", self.baton("revoke", "ann", "--to", self.work / "hub"))
        self.assertFalse(check("ann")[0])
        self.baton("issue", "eve", "--client", "--to", self.work / "hub")  # beside a list
        self.assertIn("BEGIN X509 CRL", (self.work / "hub/ca.pem").read_text())
        for args, code, word in ((("revoke",), 2, "which NAME"), (("revoke", "nobody", "--to", self.work / "hub"), 7, "no certificate 'nobody'"),
                                 (("revoke", "eve", "--to", self.work / "nowhere"), 7, "does not exist"),
                                 (("revoke", "eve", "--to", self.work / "ca"), 2, "the authority's own")):
            self.assertIn(word, self.baton(*args, code=code))

    def test_mistakes_end_in_words(self):
        self.assertIn("has no authority", self.baton("issue", "a", "--client", code=7))
        self.baton("init")
        key = (self.work / "ca/ca.key").read_bytes()
        self.assertIn("exists already", self.baton("init", code=2))
        self.assertEqual((self.work / "ca/ca.key").read_bytes(), key)
        for args, words in ((("issue", "../x", "--client"), "NAME"), (("issue", "ca", "--client"), "NAME"), (("issue", "a"), "what is it for"),
                            (("issue", "a", "--server"), "needs --host"), (("issue", "a", "--server", "--host", "h:1;x"), "without a port"),
                            (("issue", "a", "--client", "--days", "0"), "--days"), (("destroy",), "expected init"), (("renew",), "which NAME")):
            self.assertIn(words, self.baton(*args, code=2))
        os.chmod(self.work / "ca/ca.key", 0o640)
        self.assertIn("others may read this key", self.baton("issue", "a", "--client", code=6))
        os.chmod(self.work / "ca/ca.key", 0o600)
        (self.work / "ca.pem").write_text("of somebody else")
        self.assertIn("is of another authority", self.baton("issue", "a", "--client", code=2))
        # ten at once: one authority, whose key fits
        many = [subprocess.Popen([BIN / "baton", "certs", "init", "--dir", self.work / "race"], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL) for _ in range(10)]
        self.assertEqual(sorted(p.wait() for p in many), [0] + [2] * 9)
        subprocess.run([BIN / "baton", "certs", "issue", "b", "--client", "--dir", self.work / "race", "--to", self.work / "race"], check=True,
                       stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
