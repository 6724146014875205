import Glibc

/// Files that the user named: written whole, or added to.
package enum ReportFile {
    /// Replaces the file with the text.
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
