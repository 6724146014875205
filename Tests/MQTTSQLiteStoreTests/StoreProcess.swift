import Foundation
import MQTTSQLiteStore
import TestSupport

/// The process that tests kill.
enum StoreProcess {
    /// Built beside the test bundle.
    static var path: String {
        URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
            .appending(path: "StoreVictim").path
    }

    static func start(_ arguments: [String]) throws -> RunningProgram { try RunningProgram(self.path, arguments) }

    /// Whether a process may have mounts of its own.
    ///
    /// Root may not in a container without CAP_SYS_ADMIN, and in a chroot.
    static let canMount = (try? RunningProgram.run("/usr/bin/env", ["unshare", "-m", "true"]))?.status == 0
}
