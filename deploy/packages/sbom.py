"""The software bill of materials of a release, SPDX 2.3 as JSON on stdout.

usage: sbom.py TREE VERSION SECONDS      the unpacked release, its version, and its time
Every file with its checksums; and each library that `deploy/install.sh build` installs, as what Baton depends on.
"""
import datetime
import hashlib
import json
import pathlib
import re
import sys

OURS = "Apache-2.0"


def file_of(tree, path, number):
    data = path.read_bytes()
    return {"SPDXID": "SPDXRef-File-%d" % number, "fileName": "./" + str(path.relative_to(tree)),
            "checksums": [{"algorithm": "SHA1", "checksumValue": hashlib.sha1(data).hexdigest()},
                          {"algorithm": "SHA256", "checksumValue": hashlib.sha256(data).hexdigest()}],
            "licenseConcluded": OURS, "copyrightText": "NOASSERTION"}


def libraries(tree):
    """The names of Debian's packages."""
    text = (tree / "deploy" / "install.sh").read_text()
    listed = re.search(r'^packages="([^"]*)"', text, re.M).group(1).split()
    return sorted(name for name in listed if name.endswith("-dev"))


def package_of(name):
    return {"SPDXID": "SPDXRef-Package-" + name, "name": name, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION",
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                              "referenceLocator": "pkg:deb/debian/%s?distro=bookworm" % name}]}


def document(tree, version, seconds):
    paths = sorted(p for p in tree.rglob("*") if p.is_file() and not p.is_symlink())
    files = [file_of(tree, path, number) for number, path in enumerate(paths, 1)]
    sums = "".join(sorted(f["checksums"][0]["checksumValue"] for f in files))
    code = hashlib.sha1(sums.encode()).hexdigest()
    baton = {"SPDXID": "SPDXRef-Package-baton", "name": "baton", "versionInfo": version, "downloadLocation": "NOASSERTION",
             "filesAnalyzed": True, "packageVerificationCode": {"packageVerificationCodeValue": code},
             "licenseConcluded": OURS, "licenseDeclared": OURS, "copyrightText": "NOASSERTION",
             "hasFiles": [f["SPDXID"] for f in files]}
    needed = [package_of(name) for name in libraries(tree)]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", baton["SPDXID"])]
    relations += [(baton["SPDXID"], "DEPENDS_ON", p["SPDXID"]) for p in needed]
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "baton-" + version,
            "documentNamespace": "https://baton.invalid/spdx/baton-%s-%s" % (version, code),
            "creationInfo": {"created": datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                             "creators": ["Organization: Baton maintainers", "Tool: deploy/packages/sbom.py"]},
            "packages": [baton, *needed], "files": files,
            "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b} for a, kind, b in relations]}


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    print(json.dumps(document(pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])), indent=1, sort_keys=True))


main()
