import Logging
import MQTTCodec

/// The log messages of an ``MQTTClient``: names, codes and errors, without secrets.
struct MQTTClientLog: Sendable {
    private let logger: Logger

    /// `nil` logs nothing.
    init(_ logger: Logger?) {
        self.logger = logger ?? Logger(label: "mqtt", factory: { _ in SwiftLogNoOpLogHandler() })
    }

    func connecting(to host: String, port: Int, clientID: String) {
        self.logger.debug("Connecting", metadata: ["host": "\(host)", "port": "\(port)", "client_id": "\(clientID)"])
    }

    func tell(_ event: MQTTClientEvent) {
        switch event {
        case .connected(let result):
            self.logger.info(
                "Connected",
                metadata: ["client_id": "\(result.clientID)", "session_present": "\(result.sessionPresent)"]
            )
        case .refused(let refusal): self.logger.warning("Connection refused", metadata: ["reason": "\(refusal)"])
        case .closed: self.logger.info("Disconnected")
        case .failed(let error): self.logger.warning("Connection failed", metadata: Self.words(error))
        case .protocolError(let error): self.logger.warning("Protocol error of the server", metadata: Self.words(error))
        case .closedByServer(let error): self.logger.warning("Closed by the server", metadata: Self.words(error))
        case .storeFailed(let words): self.logger.error("Message store failed", metadata: ["error": "\(words)"])
        }
    }

    func refused(_ type: PacketType, _ reason: ReasonCode) {
        self.logger.debug(
            "Packet refused by the server",
            metadata: ["answer": "\(type.name)", "reason": "\(reason.name)"]
        )
    }

    func waits(_ delay: Duration) { self.logger.info("Connecting again later", metadata: ["delay": "\(delay)"]) }

    private static func words(_ error: MQTTClientError) -> Logger.Metadata {
        // An error of the caller's provider may contain secrets.
        if case .noCredentials = error { return ["error": "no credentials"] }
        return ["error": "\(error)"]
    }
}
