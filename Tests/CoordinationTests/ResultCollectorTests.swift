import Coordination
import TestSupport
import Testing

@Suite("Result files of a segment")
struct ResultCollectorTests {
    private static let sizes = [0, 1, ResultCollector.part, ResultCollector.part + 1, 3 * ResultCollector.part]

    private static let names = ["clients.csv", "latency.hlog", "ledger.csv", "metrics.csv", "run.json"]

    private static func folder() throws -> ScratchFolder {
        let folder = try ScratchFolder()
        for (name, size) in zip(self.names, self.sizes) {
            try folder.write(String(repeating: "x", count: size), to: name)
        }
        return folder
    }

    /// Fetches all files; returns the parts that were asked for.
    private func fetch(_ collector: ResultCollector, from source: ScratchFolder) throws -> [ResultCollector.Step] {
        var steps = [collector.begin()]
        while case .want(let file, let offset)? = steps.last {
            let bytes = try #require(ResultFile.part(of: file, in: source.path, at: offset))
            // A part that comes twice changes nothing.
            let next = try #require(collector.add(bytes, of: file, at: offset))
            #expect(collector.add(bytes, of: file, at: offset) == nil)
            steps.append(next)
        }
        return steps
    }

    @Test("files arrive whole, part by part, and an existing file is not fetched again")
    func whole() throws {
        let (source, target) = (try Self.folder(), try ScratchFolder())
        let files = ResultFile.all(in: source.path)
        #expect(files.map(\.length) == Self.sizes.map(Int64.init))
        let steps = try self.fetch(ResultCollector(files, into: target.path("one")), from: source)
        #expect(steps.count == 1 + 0 + 1 + 1 + 2 + 3 && steps.last == .done)
        #expect(ResultFile.all(in: target.path("one")) == files)
        #expect(ResultCollector(files, into: target.path("one")).begin() == .done)
    }

    @Test("a file that was cut or changed is fetched again")
    func changed() throws {
        let (source, target) = (try Self.folder(), try ScratchFolder())
        let files = ResultFile.all(in: source.path)
        _ = try self.fetch(ResultCollector(files, into: target.path), from: source)
        try target.write("y", to: "latency.hlog")
        try target.write("", to: "run.json")
        let steps = try self.fetch(ResultCollector(files, into: target.path), from: source)
        #expect(steps.first == .want(file: "latency.hlog", offset: 0))
        #expect(ResultFile.all(in: target.path) == files)
    }

    @Test("a wrong digest is noticed, and does not go on for ever")
    func digest() throws {
        let target = try ScratchFolder()
        let file = ResultFile(name: "run.json", length: 3, sha256: "00")
        let collector = ResultCollector([file], into: target.path)
        #expect(collector.begin() == .want(file: "run.json", offset: 0))
        #expect(collector.add([1, 2, 3], of: "run.json", at: 0) == .want(file: "run.json", offset: 0))
        #expect(
            collector.add([1, 2, 3], of: "run.json", at: 0)
                == .failed("run.json came twice with another digest than it has")
        )
    }

    @Test(
        "nothing but the files that a merge reads is taken",
        arguments: [
            "../run.json", "/etc/passwd", ".hidden", "a/b.csv", "", "a b", "ü.csv", "evil.sh", "report.html",
            "latency-connect_duration.hgrm", String(repeating: "a", count: 101),
        ]
    )
    func names(_ name: String) throws {
        let target = try ScratchFolder()
        let collector = ResultCollector([ResultFile(name: name, length: 1, sha256: "")], into: target.path("in"))
        guard case .failed(let words) = collector.begin() else { return #expect(Bool(false), "\(name)") }
        #expect(words.contains("which no result has"))
        #expect(target.entries().isEmpty)
    }

    @Test("more bytes than a file was announced with are refused")
    func bounds() throws {
        let target = try ScratchFolder()
        let collector = ResultCollector([ResultFile(name: "clients.csv", length: 2, sha256: "")], into: target.path)
        #expect(collector.begin() == .want(file: "clients.csv", offset: 0))
        #expect(collector.add([1, 2, 3], of: "clients.csv", at: 0) == nil)
        let large = ResultFile(name: "clients.csv", length: ResultCollector.most + 1, sha256: "")
        guard case .failed = ResultCollector([large], into: target.path).begin() else {
            return #expect(Bool(false), "a file beyond the limit was accepted")
        }
    }
}
