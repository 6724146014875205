#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// The credentials that a client sends in its CONNECT.
///
/// They are computed for each connect, because a file may have a new token by then.
///
/// Spec: MQTT 5.0 §3.1.3.5 and §3.1.3.6.
public enum MQTTCredentials: Hashable, Sendable {
    /// No user name and no password.
    case none
    /// A user name, a password, or both. A password without a user name is for MQTT 5 only (§3.1.2.9).
    case password(user: String?, [UInt8]?)
    /// The password is the content of a file; see ``MQTTTokenFile``.
    case tokenFile(user: String?, MQTTTokenFile)
    /// Credentials of Alibaba Cloud's MQTT service, computed from keys and the client identifier.
    case alibabaCloud(MQTTAlibabaCloud)

    /// A user name and a text password.
    public static func password(user: String, _ password: String) -> MQTTCredentials {
        .password(user: user, Array(password.utf8))
    }

    /// User name and password of one CONNECT.
    public struct Fields: Hashable, Sendable {
        /// `nil` for a CONNECT without one.
        public var userName: String?
        /// Any bytes; `nil` for a CONNECT without one.
        public var password: [UInt8]?

        /// - Parameters:
        ///   - userName: up to 65,535 bytes of UTF-8.
        ///   - password: up to 65,535 bytes.
        public init(userName: String? = nil, password: [UInt8]? = nil) {
            self.userName = userName
            self.password = password
        }
    }

    /// Computes the fields for one connect; reads the token file, if there is one.
    ///
    /// - Parameters:
    ///   - clientID: the client identifier of the CONNECT.
    ///   - keepAlive: the keep-alive of the CONNECT in seconds.
    /// - Returns: user name and password.
    /// - Throws: an error in the file, the client identifier or the keep-alive.
    public func fields(clientID: String, keepAlive: UInt16) throws(MQTTCredentialsError) -> Fields {
        let fields: Fields
        switch self {
        case .none: return Fields()
        case .password(let user, let password): fields = Fields(userName: user, password: password)
        case .tokenFile(let user, let file): fields = Fields(userName: user, password: try file.token())
        case .alibabaCloud(let account):
            try account.check(clientID: clientID, keepAlive: keepAlive)
            fields = account.fields(clientID: clientID)
        }
        if let size = fields.userName?.utf8.count, size > 65_535 { throw .tooLong(.userName, bytes: size) }
        if let size = fields.password?.count, size > 65_535 { throw .tooLong(.password, bytes: size) }
        return fields
    }
}

/// The reason why there are no credentials for a CONNECT.
public enum MQTTCredentialsError: Error, Hashable, Sendable {
    /// The field of CONNECT that is too long.
    public enum Field: String, Hashable, Sendable {
        /// The user name.
        case userName = "user name"
        /// The password.
        case password = "password"
    }

    /// More bytes than the field's 65,535 (§1.5.6).
    case tooLong(Field, bytes: Int)
    /// The file cannot be read: the path and the system's error number.
    case unreadable(path: String, errno: Int32)
    /// The file contains no token.
    case empty(path: String)
    /// The file is larger than allowed.
    case tooLarge(path: String, limit: Int)
    /// The client identifier is not of the form `GroupID@@@DeviceID`, or of another group.
    case clientID(String, String)
    /// Alibaba Cloud requires 1 to 120 seconds.
    case keepAlive(UInt16)
    /// The topic is not of one level, which Alibaba Cloud requires.
    case rootTopic(String)
}

extension MQTTCredentialsError {
    /// Whether a retry may succeed: the file may be missing only while it is replaced.
    package var mayHeal: Bool {
        switch self {
        case .unreadable, .empty: true
        case .tooLong, .tooLarge, .clientID, .keepAlive, .rootTopic: false
        }
    }
}

extension MQTTCredentialsError: CustomStringConvertible {
    /// One line, without secrets.
    public var description: String {
        switch self {
        case .tooLong(let field, let bytes): "the \(field.rawValue) has \(bytes) bytes, and MQTT has room for 65535"
        case .unreadable(let path, let code): "cannot read the token in \(path): \(String(cString: strerror(code)))"
        case .empty(let path): "there is no token in \(path)"
        case .tooLarge(let path, let limit): "\(path) is larger than the \(limit) bytes of a token"
        case .clientID(let id, let what): "the client identifier \"\(id)\" \(what)"
        case .keepAlive(let seconds): "Alibaba Cloud wants a keep-alive of 1 to 120 seconds, and it is \(seconds)"
        case .rootTopic(let topic): "\"\(topic)\" is not a topic of one level"
        }
    }
}
