"""The release tarball: the files of the commit and its bill of materials (SPDX 2.3), the same bytes each time."""
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

from chroot import ROOT, tool

ID = re.compile(r"SPDXRef-[A-Za-z0-9.-]+")


class Tarball(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.outs = []
        for _ in range(2):
            where = tempfile.TemporaryDirectory()
            cls.addClassCleanup(where.cleanup)
            tool("sh", ROOT / "deploy/packages/tarball.sh", where.name)
            cls.outs.append({p.name: p.read_bytes() for p in pathlib.Path(where.name).iterdir()})
        cls.version = re.search(r"project\(baton VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
        cls.name = "baton-" + cls.version
        cls.sbom = json.loads(cls.outs[0][cls.name + ".spdx.json"])
        with tempfile.NamedTemporaryFile() as packed:
            packed.write(cls.outs[0][cls.name + ".tar.gz"])
            packed.flush()
            with tarfile.open(packed.name) as tar:
                cls.files = {m.name.partition("/")[2]: tar.extractfile(m).read() for m in tar if m.isfile()}
                cls.tops = {m.name.split("/")[0] for m in tar}

    def test_one_commit_gives_the_same_bytes(self):
        self.assertEqual(sorted(self.outs[0]), [self.name + ".spdx.json", self.name + ".tar.gz"])
        self.assertEqual(self.outs[0], self.outs[1])

    def test_files_of_the_commit_are_in_it_below_one_directory(self):
        listed = tool("git", "-C", ROOT, "ls-tree", "-r", "--name-only", "HEAD").splitlines()
        self.assertEqual(self.tops, {self.name})
        self.assertEqual(sorted(self.files), sorted([*listed, "sbom.spdx.json"]))
        self.assertEqual(self.files["sbom.spdx.json"], self.outs[0][self.name + ".spdx.json"])

    def test_bill_has_what_spdx_requires(self):
        s = self.sbom
        self.assertEqual((s["spdxVersion"], s["dataLicense"], s["SPDXID"], s["name"]), ("SPDX-2.3", "CC0-1.0", "SPDXRef-DOCUMENT", self.name))
        self.assertRegex(s["documentNamespace"], r"^https://[^#]+$")
        self.assertRegex(s["creationInfo"]["created"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        for creator in s["creationInfo"]["creators"]:
            self.assertRegex(creator, r"^(Person|Organization|Tool): .+")
        ids = ["SPDXRef-DOCUMENT"]
        for package in s["packages"]:
            self.assertTrue(package["name"] and package["downloadLocation"])
            self.assertEqual("packageVerificationCode" in package, package["filesAnalyzed"])
            ids.append(package["SPDXID"])
        for file in s["files"]:
            self.assertTrue(file["fileName"].startswith("./"))
            self.assertIn("SHA1", [c["algorithm"] for c in file["checksums"]])
            ids.append(file["SPDXID"])
        self.assertEqual(len(ids), len(set(ids)))
        self.assertEqual([i for i in ids if not ID.fullmatch(i)], [])
        for relation in s["relationships"]:
            self.assertIn(relation["spdxElementId"], ids)
            self.assertIn(relation["relatedSpdxElement"], ids)
        self.assertIn(("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-Package-baton"),
                      [(r["spdxElementId"], r["relationshipType"], r["relatedSpdxElement"]) for r in s["relationships"]])

    def test_checksums_are_those_of_the_files(self):
        told = {f["fileName"][2:]: {c["algorithm"]: c["checksumValue"] for c in f["checksums"]} for f in self.sbom["files"]}
        found = {name: {"SHA1": hashlib.sha1(data).hexdigest(), "SHA256": hashlib.sha256(data).hexdigest()}
                 for name, data in self.files.items() if name != "sbom.spdx.json"}
        self.assertEqual(told, found)
        code = hashlib.sha1("".join(sorted(f["SHA1"] for f in found.values())).encode()).hexdigest()
        baton = next(p for p in self.sbom["packages"] if p["name"] == "baton")
        self.assertEqual(baton["packageVerificationCode"]["packageVerificationCodeValue"], code)

    def test_libraries_that_the_programs_link_are_named(self):
        names = {p["name"] for p in self.sbom["packages"]}
        self.assertLessEqual({"libnng-dev", "libsqlite3-dev", "libcjson-dev", "libmsgpack-dev", "libmbedtls-dev", "nettle-dev"}, names)


if __name__ == "__main__":
    if subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True).returncode != 0:
        print("SKIPPED: test_tarball.py: the tarball is made of a commit, and this is no work tree of git", flush=True)
        sys.exit(77)
    unittest.main(verbosity=2)
