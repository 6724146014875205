package import Logging
import Synchronization

/// Keeps log lines: level, message, and the metadata in the order of their keys.
package final class CapturedLog: Sendable {
    private let captured = Mutex<[String]>([])

    package init() {}

    package var lines: [String] { self.captured.withLock { $0 } }

    package var logger: Logger { Logger(label: "test", factory: { _ in Handler(log: self) }) }

    private struct Handler: LogHandler {
        let log: CapturedLog
        var logLevel = Logger.Level.trace
        var metadata: Logger.Metadata = [:]

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { self.metadata[key] }
            set { self.metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let all = self.metadata.merging(event.metadata ?? [:]) { $1 }
            let metadata = all.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
            let line = (["\(event.level) \(event.message)"] + metadata).joined(separator: " ")
            self.log.captured.withLock { $0.append(line) }
        }
    }
}
