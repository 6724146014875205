"""The code that is linked into the program: packages from the manifest and what it resolves to, the code of others
that they hold copies of, and libraries of this system."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

root = pathlib.Path(__file__).resolve().parents[2]
scratch = root / ".build" / "dist" / "build"
SUFFIXES = {".swift", ".c", ".cc", ".cpp", ".h", ".inc", ".S"}

# Folders with code of others, and how their version is known. The last are SPDX's names of the licenses.
COPIES = {
    "CNIOBoringSSL": ("boringssl", "hash.txt", r"revision ([0-9a-f]{40})", "Apache-2.0"),
    "CCryptoBoringSSL": ("boringssl", "hash.txt", r"revision ([0-9a-f]{40})", "Apache-2.0"),
    "CNIOLLHTTP": (
        "llhttp",
        "include/c_nio_llhttp.h",
        r"LLHTTP_VERSION_MAJOR (\d+)\s+#define LLHTTP_VERSION_MINOR (\d+)\s+#define LLHTTP_VERSION_PATCH (\d+)",
        "MIT",
    ),
    "CNIOSHA1": ("kame-sha1", "c_nio_sha1.c", r"KAME: sha1\.c,v ([\d.]+)", "BSD-3-Clause"),
    "CXKCP": ("xkcp", "vendored-sources.txt", r"-g([0-9a-f]+)\)", "CC0-1.0 AND LicenseRef-Gladman"),
    # Its version is in no file.
    "CYaml": ("libyaml", None, None, "MIT"),
}
# Folders with C code that is of the package itself.
OWN = {
    *("CCryptoBoringSSLShims", "CNIOAtomics", "CNIOBoringSSLShims", "CNIODarwin", "CNIOFreeBSD", "CNIOLinux"),
    *("CNIOOpenBSD", "CNIOPosix", "CNIOWASI", "CNIOWindows", "CSystem", "CXKCPShims"),
    *("Yams", "_AtomicsShims", "_NumericsShims"),
}


def query(*command):
    return subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def output(*command):
    """The same, or None if the command fails or is missing."""
    if not shutil.which(command[0]):
        return None
    result = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return result.stdout.strip() if result.returncode == 0 else None


def revision():
    """The commit of the sources, with a mark if they are changed; None if it is not known."""
    # A copy of the sources inside another repository has no revision of its own.
    if output("git", "rev-parse", "--show-prefix") != "":
        return None
    commit = output("git", "rev-parse", "--verify", "HEAD")
    # What is built, and no result or note beside it.
    changes = output("git", "status", "--porcelain", "--", "Sources", "Package.swift")
    return commit and f"{commit}{' (modified)' if changes else ''}"


def swift(options, *arguments):
    if os.environ.get("CLAMOR_RESOLVED"):
        options = [*options, "--only-use-versions-from-resolved-file"]
    return json.loads(query("swift", "package", *options, *arguments))


def license_files(package):
    """The texts of licenses and notices, that of the whole package first."""
    folder = pathlib.Path(package["path"])
    names = ("LICENSE", "LICENCE", "NOTICE", "COPYING")

    def chosen(paths):
        return sorted(path for path in paths if path.name.upper().startswith(names) and path.is_file())

    files = chosen(folder.iterdir()) + chosen((folder / "Sources").rglob("*"))
    if not files:
        sys.exit(f"{package['identity']} has no license file")
    return files


def license(text):
    """The SPDX expression of a text."""
    known = {
        "Runtime Library Exception": "Apache-2.0 WITH Swift-exception",
        "Apache License": "Apache-2.0",
        "Permission is hereby granted, free of charge": "MIT",
    }
    for words, expression in known.items():
        if words in text:
            return expression
    sys.exit(f"An unknown license; add it to {__file__}:\n{text[:400]}")


def packages(options=()):
    """Each with identity, version, url, path, revision, license and the identities of its dependencies, sorted."""
    targets = {target["name"]: target for target in swift(options, "dump-package")["targets"]}
    waiting, seen, direct = ["clamor"], set(), set()
    while waiting:
        target = targets[waiting.pop()]
        if target["name"] in seen:
            continue
        seen.add(target["name"])
        for dependency in target["dependencies"]:
            if "product" in dependency:
                direct.add(dependency["product"][1].lower())
            else:
                (named,) = dependency.values()
                waiting.append(named[0])
    found = {}

    def add(package):
        found[package["identity"]] = {
            "identity": package["identity"],
            "version": package["version"],
            "url": package["url"].removesuffix(".git"),
            "path": package["path"],
            "needs": sorted(dependency["identity"] for dependency in package["dependencies"]),
        }
        for dependency in package["dependencies"]:
            add(dependency)

    for package in swift(options, "show-dependencies", "--format", "json")["dependencies"]:
        if package["identity"] in direct:
            add(package)
    for package in found.values():
        package["license"] = license(license_files(package)[0].read_text())
        package["revision"] = checked_out(package)
    return sorted(found.values(), key=lambda package: package["identity"])


def checked_out(package):
    """The commit of a package in its build folder, which says it without git."""
    state = json.loads((pathlib.Path(package["path"]).parents[1] / "workspace-state.json").read_text())
    for dependency in state["object"]["dependencies"]:
        if dependency["packageRef"]["identity"] == package["identity"]:
            return dependency["state"]["checkoutState"]["revision"]
    sys.exit(f"{package['identity']} is in no checkout")


def sources(package):
    """The source files of a package, each with the folder of its target."""
    top = pathlib.Path(package["path"]) / "Sources"
    for path in sorted(top.rglob("*")):
        if path.suffix in SUFFIXES and path.is_file():
            yield path.relative_to(top).parts[0], path


def copies(package):
    """The code of others in a package: folder, name, version (None if not known) and license."""
    found = []
    for folder in sorted({folder for folder, path in sources(package) if path.suffix != ".swift"} - OWN):
        if folder not in COPIES:
            sys.exit(f"{package['identity']}: is the C code in {folder} of others? Name it in {__file__}")
        name, file, pattern, license = COPIES[folder]
        version = None
        if file:
            match = re.search(pattern, (pathlib.Path(package["path"]) / "Sources" / folder / file).read_text())
            if not match:
                sys.exit(f"{package['identity']}: {folder}/{file} has no version of {name} any more")
            version = ".".join(match.groups())
        found.append({"folder": folder, "name": name, "version": version, "license": license})
    return found


def comment(text, start):
    """The comment that holds the character at start, without its marks."""
    opening = text.rfind("/*", 0, start)
    if opening >= 0 and text.find("*/", opening) > start:
        lines = text[opening + 2 : text.find("*/", opening)].splitlines()
        lines = [re.sub(r"^ ?\* ?|^-$", "", line) for line in lines]
    else:
        every = text.splitlines()
        first = last = text.count("\n", 0, start)
        while first > 0 and every[first - 1].lstrip().startswith("//"):
            first -= 1
        while last + 1 < len(every) and every[last + 1].lstrip().startswith("//"):
            last += 1
        lines = [re.sub(r"^\s*// ?", "", line) for line in every[first : last + 1]]
    return textwrap.dedent("\n".join(line.rstrip() for line in lines)).strip("\n")


def notices(package):
    """Terms that stand in source files: folder, file and text, each text once."""
    words = r"redistributions? and use\b|permission is hereby granted|permission to use, copy"
    found = {}
    for folder, path in sources(package):
        text = path.read_text(errors="replace")
        for match in re.finditer(words, text, re.IGNORECASE):
            terms = comment(text, match.start())
            found.setdefault(" ".join(terms.split()), (folder, path.relative_to(package["path"]), terms))
    return list(found.values())


def owner(path):
    """The Debian package that a file is of; with a merged /usr its list of files may have it below / or /usr."""
    real = os.path.realpath(path)
    for name in (str(path), real, real.removeprefix("/usr"), f"/usr{real}"):
        for line in (output("dpkg-query", "--search", os.path.normpath(name)) or "").splitlines():
            if not line.startswith("diversion "):
                return line.split(": ")[0].split(",")[0].split(":")[0]
    sys.exit(f"{path} is of no Debian package")


def installed(name):
    """A Debian package: name, version, source and copyright."""
    facts = output("dpkg-query", "--show", "--showformat", "${Version} ${source:Package}", name)
    if not facts:
        sys.exit(f"{name} is not installed as a Debian package")
    version, source = facts.split()
    copyright = pathlib.Path(f"/usr/share/doc/{name}/copyright").read_text()
    return {"name": name, "version": version, "source": source, "copyright": copyright}


def system_libraries():
    """The packages of this system that the libraries in .build/dist/build/static are of, with the names of those."""
    found = {}
    for link in sorted((scratch / "static").iterdir()):
        name = owner(link.readlink())
        library = found.setdefault(name, {**installed(name), "files": ""})
        library["files"] = f"{library['files']} {link.name}".strip()
    return list(found.values())


def icu():
    """The version of the ICU in Foundation."""
    header = toolchain() / "lib" / "swift_static" / "_foundation_unicode" / "uvernum.h"
    return re.search(r'#define U_ICU_VERSION "(.*)"', header.read_text()).group(1)


def toolchain():
    """The folder usr of the Swift toolchain."""
    compiler = shutil.which("swiftc") or sys.exit("A Swift toolchain is missing")
    return pathlib.Path(compiler).resolve().parents[1]
