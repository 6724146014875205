import Glibc
import Measurement

/// The directory of one run: `DIR.partial` while it runs, `DIR` once it is finished.
///
/// Creating it checks that results can be written, before the first socket opens. While it lives it holds a lock on
/// `DIR.partial`. The lock distinguishes a running run with the same `--out` from a stale directory.
package final class ResultDirectory {
    /// The directory of the results after `finish()`.
    package let path: String
    /// Where they are written until then.
    package var partial: String { self.path + ".partial" }

    private let lock: CInt

    private static let creation = "cannot create it"
    private static let remedy = "check the directory and its permissions"

    private init(path: String, lock: CInt) {
        self.path = path
        self.lock = lock
    }

    deinit { close(self.lock) }

    /// Creates `path.partial` for results in `path`, with the directories above it.
    ///
    /// A `path.partial` of a killed run is moved to the first free name of `path.partial.1`, `.2`, ...
    ///
    /// - Parameter path: as the user gave it.
    /// - Returns: the directory, with its partial one made.
    /// - Throws: when `path` exists and is not an empty directory, when another run writes to it, or when it cannot
    ///   be created.
    package static func create(_ path: String) throws(ResultError) -> ResultDirectory {
        let path = self.withoutTrailingSlashes(path)
        try self.refuseOccupied(path)
        try self.createParents(of: path)
        let partial = path + ".partial"
        // rmdir removes an empty leftover; it fails harmlessly if there is none, or if it contains results.
        if rmdir(partial) != 0, errno != ENOENT { try self.moveAside(partial) }
        guard mkdir(partial, 0o755) == 0 else { throw ResultError(path: partial, doing: Self.creation, Self.remedy) }
        return ResultDirectory(path: path, lock: try self.takeLock(on: partial))
    }

    /// Creates the directory of a run that was given no `--out`.
    ///
    /// Its name is `<folder>/<yyyymmdd-hhmmss>-<name>`, in UTC, with the suffix `-2`, `-3`, ... if that is taken.
    ///
    /// - Parameters:
    ///   - folder: made when it is not there.
    ///   - name: what the run is called: `pub`, `demo`.
    ///   - startedAt: CLOCK_REALTIME nanoseconds.
    /// - Returns: the directory, with its partial one made.
    /// - Throws: when it cannot be created.
    package static func createDefault(
        under folder: String = "results/runs",
        name: String,
        startedAt: Int64
    ) throws(ResultError) -> ResultDirectory {
        // 2026-11-21T01:37:09 without its marks.
        let time = WallClock.rfc3339(startedAt).prefix(19).filter { $0.isNumber }
        let base = "\(folder)/\(time.prefix(8))-\(time.dropFirst(8))-\(name)"
        try self.createParents(of: base)
        var number = 1
        while true {
            let path = number == 1 ? base : "\(base)-\(number)"
            number += 1
            if access(path, F_OK) == 0 { continue }
            // mkdir decides between two runs of the same second: one makes it, the other sees EEXIST.
            guard mkdir(path + ".partial", 0o755) == 0 else {
                if errno == EEXIST { continue }
                throw ResultError(path: path + ".partial", doing: Self.creation, Self.remedy)
            }
            return ResultDirectory(path: path, lock: try self.takeLock(on: path + ".partial"))
        }
    }

    package func finish() throws(ResultError) {
        guard rename(self.partial, self.path) == 0 else {
            throw ResultError(path: self.path, doing: "cannot rename \(self.partial) to it")
        }
    }

    /// Removes the partial directory, and a folder in it, where they are empty.
    package func removeIfEmpty(_ folder: String) {
        // rmdir keeps a directory that has something in it.
        _ = rmdir(self.file(folder))
        _ = rmdir(self.partial)
    }

    /// Whether a run is writing to `partial` now.
    static func isLive(_ partial: String) -> Bool {
        let descriptor = open(partial, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK
    }

    func file(_ name: String) -> String { "\(self.partial)/\(name)" }

    private static func withoutTrailingSlashes(_ path: String) -> String {
        var path = Substring(path)
        while path.count > 1, path.hasSuffix("/") { path.removeLast() }
        return String(path)
    }

    private static func refuseOccupied(_ path: String) throws(ResultError) {
        guard let entries = opendir(path) else {
            if errno == ENOENT { return }
            throw ResultError(path: path, doing: "cannot be used for results", Self.remedy)
        }
        defer { closedir(entries) }
        while let entry = readdir(entries) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." {
                throw ResultError(
                    path: path,
                    reason:
                        "exists and is not empty; results are never overwritten; name another directory, or leave --out out"
                )
            }
        }
    }

    private static func createParents(of path: String) throws(ResultError) {
        var slash = path.startIndex
        while let next = path[slash...].dropFirst().firstIndex(of: "/") {
            slash = next
            let parent = String(path[..<slash])
            if mkdir(parent, 0o755) != 0, errno != EEXIST {
                throw ResultError(path: parent, doing: Self.creation, Self.remedy)
            }
        }
    }

    private static func moveAside(_ partial: String) throws(ResultError) {
        // A live run holds the lock; an unlocked directory is stale.
        close(try self.takeLock(on: partial))
        var number = 1
        while access("\(partial).\(number)", F_OK) == 0 { number += 1 }
        guard rename(partial, "\(partial).\(number)") == 0 else {
            throw ResultError(path: partial, doing: "cannot move it aside", Self.remedy)
        }
    }

    private static func takeLock(on directory: String) throws(ResultError) -> CInt {
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw ResultError(path: directory, doing: "cannot open it", Self.remedy) }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let busy = errno == EWOULDBLOCK
            close(descriptor)
            // A file system without locks (some network mounts) is no reason to refuse a run.
            guard busy else { return -1 }
            throw ResultError(
                path: directory,
                reason: "another run is writing there; name another directory, or wait for that run"
            )
        }
        return descriptor
    }
}
