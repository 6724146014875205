import Crypto
import DataEncodings

/// An account of Alibaba Cloud's MQTT service (Micro Message Queue for MQTT).
///
/// The service requires client identifiers of the form `GroupID@@@DeviceID`, each used by one connection: a second
/// connection ends the first. Delivery to a client that is offline needs a persistent session, and QoS 1 on both sides.
/// Older installations of the service treat QoS 2 as QoS 1.
public struct MQTTAlibabaCloud: Hashable, Sendable {
    /// The way to compute the password.
    public enum Mode: Hashable, Sendable {
        /// The service's first form: the secret signs the group, and the user name is only the access key.
        case group(secret: String, groupID: String)
        /// The secret signs the client identifier.
        case signature(secret: String, instanceID: String)
        /// Tokens that the service issued to a holder of the secret.
        case token([Token], instanceID: String)
    }

    /// A token and its permission.
    public struct Token: Hashable, Sendable {
        /// The permission of a token, as encoded in the password.
        public enum Use: String, Hashable, Sendable {
            /// The right to subscribe.
            case read = "R"
            /// The right to publish.
            case write = "W"
            /// Both.
            case readAndWrite = "RW"
        }

        /// The permission.
        public var use: Use
        /// The token as issued by the service.
        public var value: String

        /// - Parameters:
        ///   - use: the permission.
        ///   - value: the token as issued by the service.
        public init(_ use: Use, _ value: String) {
            self.use = use
            self.value = value
        }
    }

    /// The account's public key.
    public var accessKey: String
    /// The way to compute the password.
    public var mode: Mode

    /// - Parameters:
    ///   - accessKey: the account's public key.
    ///   - mode: the way to compute the password.
    public init(accessKey: String, mode: Mode) {
        self.accessKey = accessKey
        self.mode = mode
    }

    /// The longest keep-alive in seconds; 0, which would disable it, is refused too.
    public static let maximumKeepAlive: UInt16 = 120

    /// The client identifier of a device.
    ///
    /// - Parameters:
    ///   - groupID: as configured in the service.
    ///   - deviceID: unique in the group.
    /// - Returns: `GroupID@@@DeviceID`.
    /// - Throws: an error if the service would refuse the identifier.
    public static func clientID(groupID: String, deviceID: String) throws(MQTTCredentialsError) -> String {
        let id = "\(groupID)@@@\(deviceID)"
        _ = try Self.group(of: id)
        return id
    }

    /// The topic that addresses one client, which needs no subscription for it.
    ///
    /// - Parameters:
    ///   - rootTopic: the parent topic, of one level.
    ///   - clientID: of the addressed client.
    /// - Returns: `root/p2p/GroupID@@@DeviceID`.
    /// - Throws: an error if the root is no topic of one level, or the client identifier is not of the service's form.
    public static func p2pTopic(rootTopic: String, clientID: String) throws(MQTTCredentialsError) -> String {
        try Self.check(rootTopic: rootTopic)
        _ = try Self.group(of: clientID)
        return "\(rootTopic)/p2p/\(clientID)"
    }

    /// Checks that a root is a topic of one level.
    package static func check(rootTopic: String) throws(MQTTCredentialsError) {
        let forbidden = "/+#\0".utf8
        guard !rootTopic.isEmpty, !rootTopic.utf8.contains(where: forbidden.contains) else {
            throw .rootTopic(rootTopic)
        }
    }

    /// Checks the values that the service would refuse.
    ///
    /// - Parameters:
    ///   - clientID: the client identifier of the CONNECT.
    ///   - keepAlive: the keep-alive of the CONNECT in seconds.
    /// - Throws: an error that names the wrong value.
    public func check(clientID: String, keepAlive: UInt16) throws(MQTTCredentialsError) {
        let group = try Self.group(of: clientID)
        if case .group(_, let groupID) = self.mode, Array(groupID.utf8) != group {
            throw .clientID(clientID, "is not of the group \(groupID)")
        }
        guard (1...Self.maximumKeepAlive).contains(keepAlive) else { throw .keepAlive(keepAlive) }
    }

    /// User name and password for a client.
    public func fields(clientID: String) -> MQTTCredentials.Fields {
        switch self.mode {
        case .group(let secret, let groupID):
            return MQTTCredentials.Fields(userName: self.accessKey, password: Self.sign(groupID, secret))
        case .signature(let secret, let instanceID):
            return MQTTCredentials.Fields(
                userName: "Signature|\(self.accessKey)|\(instanceID)",
                password: Self.sign(clientID, secret)
            )
        case .token(let tokens, let instanceID):
            return MQTTCredentials.Fields(
                userName: "Token|\(self.accessKey)|\(instanceID)",
                password: Array(tokens.map { "\($0.use.rawValue)|\($0.value)" }.joined(separator: "|").utf8)
            )
        }
    }

    private static func sign(_ text: String, _ secret: String) -> [UInt8] {
        let key = SymmetricKey(data: Array(secret.utf8))
        return Base64.digits(Array(HMAC<Insecure.SHA1>.authenticationCode(for: Array(text.utf8), using: key)))
    }

    /// The group of a client identifier; throws if the service would refuse the identifier.
    private static func group(of clientID: String) throws(MQTTCredentialsError) -> [UInt8] {
        let bytes = Array(clientID.utf8)
        guard bytes.count <= 64 else { throw .clientID(clientID, "has \(bytes.count) bytes, and 64 are allowed") }
        guard bytes.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw .clientID(clientID, "holds a character that is not visible ASCII")
        }
        let mark = Array("@@@".utf8)
        let start = bytes.indices.first { bytes[$0...].starts(with: mark) }
        guard let start, start > 0, bytes.count > start + mark.count else {
            throw .clientID(clientID, "is not GroupID@@@DeviceID")
        }
        return Array(bytes[..<start])
    }
}
