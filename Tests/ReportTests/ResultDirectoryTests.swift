import Foundation
import Glibc
import Report
import Testing

@Suite("The result directory")
struct ResultDirectoryTests {
    let folder: TemporaryFolder

    init() throws { self.folder = try TemporaryFolder() }

    @Test("is partial while the run lasts and has its name when it is finished", arguments: ["out", "out/", "a/b/out"])
    func lifecycle(_ name: String) throws {
        let directory = try ResultDirectory.create("\(self.folder.path)/\(name)")
        let path = "\(self.folder.path)/\(name.hasSuffix("/") ? "out" : name)"
        #expect(directory.path == path)
        #expect(directory.partial == path + ".partial")
        #expect(FileManager.default.fileExists(atPath: path + ".partial"))
        #expect(!FileManager.default.fileExists(atPath: path))
        try directory.finish()
        #expect(!FileManager.default.fileExists(atPath: path + ".partial"))
        #expect(FileManager.default.fileExists(atPath: path))
    }

    @Test("takes an empty directory's place")
    func emptyDirectory() throws {
        let path = "\(self.folder.path)/out"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        let directory = try ResultDirectory.create(path)
        try self.folder.write("x", to: "out.partial/run.json")
        try directory.finish()
        #expect(try self.folder.entries("out") == ["run.json"])
    }

    @Test("refuses a directory with something in it, and names it")
    func occupied() throws {
        let path = "\(self.folder.path)/out"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        try self.folder.write("x", to: "out/.hidden")
        let error = #expect(throws: ResultError.self) { try ResultDirectory.create(path) }
        #expect(
            error?.description
                == "\(path): exists and is not empty; results are never overwritten; name another directory, or leave --out out"
        )
        #expect(try self.folder.entries() == ["out"])
    }

    @Test(
        "refuses a file in the way, of the directory or of one above it",
        arguments: ["file", "file/out", "file/a/out"]
    )
    func fileInTheWay(_ name: String) throws {
        try self.folder.write("x", to: "file")
        let error = #expect(throws: ResultError.self) { try ResultDirectory.create("\(self.folder.path)/\(name)") }
        #expect(error?.path.hasPrefix("\(self.folder.path)/file") == true)
        #expect(error?.reason.contains("Not a directory; check the directory") == true)
        #expect(try self.folder.entries() == ["file"])
    }

    // Not even root can make a directory in /proc.
    @Test("says which path cannot be written, and why")
    func unwritable() {
        let error = #expect(throws: ResultError.self) { try ResultDirectory.create("/proc/clamor/out") }
        #expect(
            error?.description
                == "/proc/clamor: cannot create it: No such file or directory; check the directory and its permissions"
        )
    }

    @Test("moves stale partial directories aside, each to a name of its own")
    func stale() throws {
        let path = "\(self.folder.path)/out"
        for text in ["first", "second", "third"] {
            _ = try ResultDirectory.create(path)
            try self.folder.write(text, to: "out.partial/run.json")
        }
        #expect(try self.folder.entries() == ["out.partial", "out.partial.1", "out.partial.2"])
        #expect(try self.folder.read("out.partial.1/run.json") == "first")
        #expect(try self.folder.read("out.partial.2/run.json") == "second")
    }

    @Test("leaves the partial directory of a run that lives alone")
    func live() throws {
        let path = "\(self.folder.path)/out"
        let first = try ResultDirectory.create(path)
        try self.folder.write("x", to: "out.partial/run.json")
        let error = #expect(throws: ResultError.self) { try ResultDirectory.create(path) }
        #expect(
            error?.description
                == "\(path).partial: another run is writing there; name another directory, or wait for that run"
        )
        try first.finish()
        #expect(try self.folder.entries("out") == ["run.json"])
    }

    @Test("gives runs without --out a name by time, and those of one second different ones")
    func defaultNames() throws {
        let runs = "\(self.folder.path)/results/runs"
        func create() throws -> ResultDirectory {
            try ResultDirectory.createDefault(under: runs, name: "pub", startedAt: 1_795_225_029_123_000_000)
        }
        let first = try create()
        let second = try create()
        try first.finish()
        let third = try create()
        #expect(
            [first, second, third].map(\.path) == [
                "\(runs)/20261121-013709-pub", "\(runs)/20261121-013709-pub-2", "\(runs)/20261121-013709-pub-3",
            ]
        )
    }

    @Test("leaves nothing behind if nothing is in it, and what is in it otherwise", arguments: [true, false])
    func removed(_ isEmpty: Bool) throws {
        let directory = try ResultDirectory.create("\(self.folder.path)/out")
        try FileManager.default.createDirectory(
            atPath: "\(directory.partial)/steps",
            withIntermediateDirectories: false
        )
        if !isEmpty { try self.folder.write("x", to: "out.partial/steps/run.json") }
        directory.removeIfEmpty("steps")
        #expect(try self.folder.entries() == (isEmpty ? [] : ["out.partial"]))
    }
}
