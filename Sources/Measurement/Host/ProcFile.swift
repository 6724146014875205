import Glibc

/// Returns the text of a file of /proc or /sys; `nil` if it does not exist.
package typealias FileReader = (String) -> String?

/// Small files of /proc and /sys.
package enum ProcFile {
    /// The whole text, up to `limit` bytes; `nil` if the file cannot be read.
    package static func read(_ path: String, limit: Int = 65536) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { _ = close(descriptor) }
        var bytes: [UInt8] = []
        // A read of /proc returns a page or so, whatever the size of the buffer.
        var chunk = [UInt8](repeating: 0, count: limit > 65536 ? 65536 : 4096)
        while bytes.count < limit {
            let count = chunk.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { return count == 0 || !bytes.isEmpty ? String(decoding: bytes, as: UTF8.self) : nil }
            bytes.append(contentsOf: chunk[..<count])
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The names in a directory, without "." and ".."; `nil` if it cannot be read.
    package static func list(_ path: String) -> [String]? {
        guard let directory = opendir(path) else { return nil }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    /// The number of open descriptors of a process, which may be `self`; `nil` if it cannot be read.
    ///
    /// A kernel older than 6.2 has to be asked for each of them, which costs 0.6 µs.
    package static func descriptors(of process: String) -> Int? {
        let path = "/proc/\(process)/fd"
        if let count = Self.size(path), count > 0 { return count }
        guard let directory = opendir(path) else { return nil }
        defer { closedir(directory) }
        var names = 0
        while readdir(directory) != nil { names += 1 }
        // Minus ".", ".." and the descriptor of the directory itself.
        return max(0, names - (process == "self" ? 3 : 2))
    }

    /// Whether the kernel keeps the number of descriptors: since Linux 6.2 it is the size of the directory.
    package static let countsDescriptors = Self.size("/proc/self/fd") ?? 0 > 0

    private static func size(_ path: String) -> Int? {
        var facts = stat()
        return stat(path, &facts) == 0 ? Int(facts.st_size) : nil
    }

    /// The first line without surrounding blanks; `nil` if there is none.
    static func line(_ path: String) -> String? { Self.read(path).flatMap(Self.firstLine) }

    static func firstLine(_ text: String) -> String? {
        guard let first = text.split(separator: "\n").first else { return nil }
        let text = first.trimmed
        return text.isEmpty ? nil : String(text)
    }

    /// The text after `key` and the separator, in the first line that begins with the key.
    package static func value(of key: String, separator: Character, in text: String) -> String? {
        for line in text.split(separator: "\n") where line.hasPrefix(key) {
            guard let index = line.firstIndex(of: separator), line[..<index].trimmed == key else { continue }
            return String(line[line.index(after: index)...].trimmed)
        }
        return nil
    }

    /// The numbers of a text like `32768\t60999`.
    package static func numbers(_ text: some StringProtocol) -> [UInt64] {
        text.split { $0 == " " || $0 == "\t" || $0 == "\n" }.compactMap { UInt64($0) }
    }
}

extension StringProtocol {
    /// The text without white space at its ends.
    var trimmed: SubSequence {
        guard let start = self.firstIndex(where: { !$0.isWhitespace }),
            let end = self.lastIndex(where: { !$0.isWhitespace })
        else { return self[self.startIndex..<self.startIndex] }
        return self[start...end]
    }
}
