import Crypto
import DataEncodings
import Foundation

/// Receives the files of one segment into a directory, a part at a time.
///
/// The coordinator asks for each part, so that one of a segment is under way at most. A file that is there with the
/// right length and digest is not asked for again.
package final class ResultCollector {
    /// Bytes of a part.
    package static let part = 262_144
    /// Bytes of all files of a segment; more is refused.
    package static let most: Int64 = 16 << 30

    package enum Step: Hashable, Sendable {
        case want(file: String, offset: Int64)
        case done
        /// The files cannot be received; the reason.
        case failed(String)
    }

    private let directory: String
    private var files: [ResultFile]
    private var handle: FileHandle?
    private var offset: Int64 = 0
    private var digest = SHA256()
    /// Files whose digest was wrong once already.
    private var repeated: Set<String> = []

    package init(_ files: [ResultFile], into directory: String) {
        self.directory = directory
        self.files = files
    }

    deinit { try? self.handle?.close() }

    package func begin() -> Step {
        if let file = self.files.first(where: { !$0.isSafe }) {
            return .failed("it offers a file with the name '\(OneLine.of(file.name, most: 100))', which no result has")
        }
        guard Set(self.files.map(\.name)).count == self.files.count,
            self.files.allSatisfy({ $0.length <= Self.most }), self.files.reduce(0, { $0 + $1.length }) <= Self.most
        else { return .failed("it offers files twice, or more than \(Self.most >> 30) GiB") }
        do {
            try FileManager.default.createDirectory(atPath: self.directory, withIntermediateDirectories: true)
        } catch {
            return .failed("\(self.directory): \(error.localizedDescription)")
        }
        return self.next()
    }

    /// Takes a part that was asked for; one that comes twice is ignored.
    package func add(_ bytes: [UInt8], of file: String, at offset: Int64) -> Step? {
        guard let current = self.files.first, current.name == file, offset == self.offset, !bytes.isEmpty,
            self.offset + Int64(bytes.count) <= current.length
        else { return nil }
        do {
            try self.handle?.write(contentsOf: bytes)
        } catch {
            return .failed("\(self.path(current)): \(error.localizedDescription)")
        }
        self.digest.update(data: bytes)
        self.offset += Int64(bytes.count)
        return self.offset < current.length ? .want(file: file, offset: self.offset) : self.close(current)
    }

    private func close(_ file: ResultFile) -> Step {
        try? self.handle?.close()
        self.handle = nil
        if self.digest.finalize().hex == file.sha256 {
            self.files.removeFirst()
            return self.next()
        }
        guard self.repeated.insert(file.name).inserted else {
            return .failed("\(file.name) came twice with another digest than it has")
        }
        return self.next()
    }

    private func next() -> Step {
        while let file = self.files.first {
            guard ResultFile(path: self.path(file)) != file else {
                self.files.removeFirst()
                continue
            }
            let path = self.path(file)
            guard FileManager.default.createFile(atPath: path, contents: nil),
                let handle = FileHandle(forWritingAtPath: path)
            else { return .failed("\(path): cannot be written") }
            (self.handle, self.offset, self.digest) = (handle, 0, SHA256())
            guard file.length > 0 else { return self.close(file) }
            return .want(file: file.name, offset: 0)
        }
        return .done
    }

    private func path(_ file: ResultFile) -> String { "\(self.directory)/\(file.name)" }
}

extension ResultFile {
    /// The file at a path; `nil` if it cannot be read.
    package init?(path: String) {
        guard let handle = FileHandle(forReadingAtPath: path) else { return nil }
        defer { try? handle.close() }
        var (digest, length) = (SHA256(), Int64(0))
        do {
            while let bytes = try handle.read(upToCount: ResultCollector.part), !bytes.isEmpty {
                digest.update(data: bytes)
                length += Int64(bytes.count)
            }
        } catch {
            return nil
        }
        self.init(name: String(path.split(separator: "/").last ?? ""), length: length, sha256: digest.finalize().hex)
    }

    /// The files of a segment's results that a merge reads.
    package static func all(in directory: String) -> [ResultFile] {
        self.names.sorted().compactMap { ResultFile(path: "\(directory)/\($0)") }
    }

    /// A part of the file in a directory; `nil` after its end, or if it cannot be read.
    package static func part(of name: String, in directory: String, at offset: Int64) -> [UInt8]? {
        guard offset >= 0, ResultFile(name: name, length: 0, sha256: "").isSafe,
            let handle = FileHandle(forReadingAtPath: "\(directory)/\(name)")
        else { return nil }
        defer { try? handle.close() }
        guard (try? handle.seek(toOffset: UInt64(offset))) != nil,
            let bytes = try? handle.read(upToCount: ResultCollector.part), !bytes.isEmpty
        else { return nil }
        return Array(bytes)
    }
}
