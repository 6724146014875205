"""The packages whose code is linked into the program, from the manifest and what it resolves to."""

import json
import subprocess


def swift(*arguments):
    return json.loads(subprocess.run(["swift", "package", *arguments], check=True, stdout=subprocess.PIPE).stdout)


def packages(options=()):
    """Each with identity, version, url, path, revision and the identities of its dependencies, sorted by identity."""
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
        package["revision"] = subprocess.run(
            ["git", "-C", package["path"], "rev-parse", "HEAD"], check=True, stdout=subprocess.PIPE, text=True
        ).stdout.strip()
    return sorted(found.values(), key=lambda package: package["identity"])
