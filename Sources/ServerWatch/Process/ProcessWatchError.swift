/// The reason why a process cannot be watched.
package enum ProcessWatchError: Error, Hashable, CustomStringConvertible {
    case noSuchProcess(String)
    case notPermitted(String)
    case ownProcess(String)
    case alreadyWatched(String)
    case noProcFiles

    package var description: String {
        switch self {
        case .noSuchProcess(let text):
            Int(text) == nil
                ? "no process has the name \(text): start the server first, or give its process id"
                : "there is no process \(text): give the id or the name of a running server"
        case .notPermitted(let text): "process \(text) may not be read: run as its user or as root"
        case .ownProcess(let text): "\(text) is this program: give the id or the name of a server"
        case .alreadyWatched(let text): "the process of \(text) is named twice: give each server once"
        case .noProcFiles: "this system has no /proc"
        }
    }
}
