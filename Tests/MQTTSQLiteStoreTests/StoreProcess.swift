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
    static let canMount = geteuid() == 0
}
