"""The packages whose code is linked into the program, from the manifest and what it resolves to."""

import json
import pathlib
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parents[2]


def query(*command):
    return subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def swift(*arguments):
    return json.loads(query("swift", "package", *arguments))


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
    targets = {target["name"]: target for target in swift(*options, "dump-package")["targets"]}
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

    for package in swift(*options, "show-dependencies", "--format", "json")["dependencies"]:
        if package["identity"] in direct:
            add(package)
    for package in found.values():
        package["license"] = license(license_files(package)[0].read_text())
        package["revision"] = query("git", "-C", package["path"], "rev-parse", "HEAD")
    return sorted(found.values(), key=lambda package: package["identity"])


def system_libraries():
    """The packages of this system that the libraries in .build/dist/build/static are of."""
    found = {}
    for link in sorted((root / ".build" / "dist" / "build" / "static").iterdir()):
        owner = query("dpkg-query", "--search", link.readlink().name).splitlines()
        files = [line.split(": ") for line in owner if line.endswith("/" + link.name)]
        name = files[0][0].split(":")[0]
        version, source = query("dpkg-query", "--show", "--showformat", "${Version} ${source:Package}", name).split()
        library = found.setdefault(name, {"name": name, "version": version, "source": source, "files": ""})
        library["files"] = f"{library['files']} {link.name}".strip()
        library["copyright"] = pathlib.Path(f"/usr/share/doc/{name}/copyright").read_text()
    return list(found.values())
