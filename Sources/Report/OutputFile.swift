import Glibc

/// A file that is written in whole pieces by write(2), without buffering in the process.
///
/// Written data survives a SIGKILL of this process. It is not forced to the disk, so it may not survive a power cut.
struct OutputFile: ~Copyable {
    let path: String
    private let descriptor: CInt

    /// Creates the file, or empties it.
    init(path: String) throws(ResultError) {
        self.path = path
        self.descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard self.descriptor >= 0 else { throw ResultError(path: path, doing: "cannot create it") }
    }

    /// Opens the file at its end, or creates it.
    init(appendingTo path: String) throws(ResultError) {
        self.path = path
        self.descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
        guard self.descriptor >= 0 else { throw ResultError(path: path, doing: "cannot open it") }
    }

    deinit { close(self.descriptor) }

    func write(_ text: String) throws(ResultError) {
        var text = text
        let failed = text.withUTF8 { bytes -> Bool in
            var rest = UnsafeRawBufferPointer(bytes)
            while !rest.isEmpty {
                let count = Glibc.write(self.descriptor, rest.baseAddress, rest.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return true }
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            }
            return false
        }
        if failed { throw ResultError(path: self.path, doing: "cannot write to it") }
    }

    /// Bytes of a file; `nil` if it does not exist.
    static func size(_ path: String) -> Int? {
        var facts = stat()
        return stat(path, &facts) == 0 ? Int(facts.st_size) : nil
    }

    /// Replaces the file at `path` with `text`; a reader sees the old file or the new one, never a part.
    static func replace(_ path: String, with text: String) throws(ResultError) {
        let draft = path + ".new"
        do {
            let file = try OutputFile(path: draft)
            try file.write(text)
        }
        guard rename(draft, path) == 0 else { throw ResultError(path: path, doing: "cannot replace it") }
    }
}

/// Files that the user named: written whole, or added to.
package enum ReportFile {
    package static func write(_ text: String, to path: String) throws(ResultError) {
        let file = try OutputFile(path: path)
        try file.write(text)
    }

    /// Adds the text, as several steps of a job do to one summary.
    package static func append(_ text: String, to path: String) throws(ResultError) {
        let file = try OutputFile(appendingTo: path)
        try file.write(text)
    }

    /// Why nothing could be written there; leaves no trace.
    package static func problem(_ path: String) -> String? {
        var facts = stat()
        if stat(path, &facts) == 0 {
            if facts.st_mode & S_IFMT == S_IFDIR { return "is a directory; name a file" }
            return access(path, W_OK) == 0 ? nil : String(cString: strerror(errno))
        }
        let slash = path.lastIndex(of: "/")
        let parent = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        return access(parent, W_OK) == 0 ? nil : String(cString: strerror(errno))
    }
}
