#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Queries of the operating system.
package enum StoreSystem {
    /// Seconds since 1970: the only clock that goes on between two processes.
    package static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec)
    }

    /// Makes a file that no other user can read, since messages may be secret; one that is there keeps its rights.
    ///
    /// A file that exists is not opened: closing it would release the locks that this process has on it.
    static func make(_ path: String) {
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        if descriptor >= 0 { close(descriptor) }
    }

    /// Whether there is a file that this process may not write.
    static func isReadOnly(_ path: String) -> Bool { access(path, F_OK) == 0 && access(path, W_OK) != 0 }
}
