package import EmbeddedBroker
package import SASL

/// What `clamor broker` is told.
package struct BrokerOptions: Hashable, Sendable {
    package var host = "127.0.0.1"
    /// 0: any free port, printed as the first line.
    package var port = 1883
    /// `nil`: no such listener; 0: any free port, printed in the first line too.
    package var tlsPort: Int?
    package var webSocketPort: Int?
    package var secureWebSocketPort: Int?
    /// PEM files.
    package var certificateFile: String?
    package var keyFile: String?
    /// Of the authorities that sign the certificates which clients then have to show.
    package var authorityFile: String?
    /// IDENTITY:HEXKEY, in place of a certificate.
    package var preSharedKey: String?
    /// Where a run hands its child the key: everybody on the host may read a command line.
    static let keyVariable = "CLAMOR_BROKER_PSK"
    /// The one path at which the WebSocket listeners speak MQTT; `nil`: any.
    package var path: String?
    /// Every connection has to begin with a PROXY header.
    package var readsProxyHeader = false
    package var access = BrokerAccessOptions()
    /// The fault flags with their values, one element each, checked: `["--drop", "0.1%"]`.
    package var faults = FaultPlan()
    /// Started by a run with `-h embedded`: ends with its parent.
    package var isChild = false
    package var quiet = false

    package init() {}
}

/// Who may connect to the embedded broker.
package struct BrokerAccessOptions: Hashable, Sendable {
    /// Passwords by user name; `nil`: whoever comes may stay.
    package var users: [String: [UInt8]]?
    package var allowsAnonymous = false
    /// The only mechanism that is taken; `nil`: a password will do.
    package var scram: SCRAMHash?

    package init() {}
}

/// What `clamor report` is told.
package struct ReportOptions: Hashable, Sendable {
    package var directory: String
    /// Only `run.json`'s text on stdout.
    package var json = false

    package init(directory: String) {
        self.directory = directory
    }
}
