import Logging

/// The log lines of an ``XMPPClient``: addresses and kinds of ends, without secrets.
struct XMPPClientLog: Sendable {
    private let logger: Logger

    /// `nil` logs nothing.
    init(_ logger: Logger?, tag: String? = nil) {
        var logger = logger ?? Logger(label: "xmpp", factory: { _ in SwiftLogNoOpLogHandler() })
        if let tag { logger[metadataKey: "tag"] = "\(tag)" }
        self.logger = logger
    }

    func tell(_ state: XMPPClientState, domain: String) {
        switch state {
        case .created: break
        case .connecting: self.logger.debug("Connecting", metadata: ["domain": "\(domain)"])
        case .connected(let session):
            self.logger.info(
                "Connected",
                metadata: ["jid": "\(session.jid)", "resumed": "\(session.isResumed)", "lost": "\(session.lost)"]
            )
        case .disconnecting: self.logger.debug("Disconnecting")
        case .closed(let end):
            self.logger.log(
                level: end.isWanted ? .info : .warning,
                "Disconnected",
                metadata: ["kind": "\(end.kind)", "error": "\(end.words)"]
            )
        }
    }

    func redirected(to host: String) { self.logger.info("Redirected by the server", metadata: ["host": "\(host)"]) }
}
