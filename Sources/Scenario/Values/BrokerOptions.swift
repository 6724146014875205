package import EmbeddedBroker
package import SASL

package struct BrokerOptions: Hashable, Sendable, OptionsRoot {
    package static let usual = Self()
    /// The environment variable that passes a pre-shared key: command lines are readable by every user of the host.
    package static let keyVariable = "CLAMOR_BROKER_PSK"

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
    /// The certificates of the authorities that sign those which clients then have to show.
    package var authorityFile: String?
    /// IDENTITY:HEXKEY, in place of a certificate.
    package var preSharedKey: String?
    /// The one path at which the WebSocket listeners speak MQTT; `nil`: any.
    package var path: String?
    /// Every connection has to begin with a PROXY header.
    package var readsProxyHeader = false
    package var maximumPacketSize = BrokerConfiguration().maximumPacketSize
    package var access = BrokerAccessOptions()
    /// Topics of one level, under which `p2p/CLIENTID` reaches that client.
    package var p2pRoots: [String] = []
    package var faults = FaultPlan()
    /// Started by a run with `-h embedded`: ends with its parent.
    package var isChild = false
    package var quiet = false

    package init() {}
}

package struct BrokerAccessOptions: Hashable, Sendable {
    /// Passwords by user name; `nil`: all clients may connect.
    package var users: [String: [UInt8]]?
    package var allowsAnonymous = false
    /// The only accepted mechanism; `nil`: a password suffices.
    package var scram: SCRAMHash?

    package init() {}
}

package struct ReportOptions: Hashable, Sendable, HasResults {
    package var directory: String
    package var results = ResultOptions()
    /// Check the figures against each other.
    package var checks = false
}
