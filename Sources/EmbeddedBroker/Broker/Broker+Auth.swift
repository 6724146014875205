import DequeModule
import MQTTCodec
import NIOCore
import SASL
import Synchronization

// Enhanced authentication.
//
// Spec: MQTT 5.0 §4.12.
extension Broker {
    /// Begins the exchange that the Authentication Method of a CONNECT requests.
    mutating func beginAuthentication(_ connect: Connect, on connection: ConnectionID, now: NIODeadline) {
        guard let method = connect.properties.authenticationMethod, let hash = SCRAMHash(rawValue: method),
            !self.configuration.access.users.isEmpty, hash == self.configuration.access.scram ?? hash
        else { return self.refuse(connection, code: ReasonCode.badAuthenticationMethod.rawValue) }
        self.connections[connection].state = .authenticating
        let authentication = Authentication(hash, connect: connect)
        authentication.begin(self.makeSCRAM(hash))
        self.extras(of: connection).authentication = authentication
        self.authenticate(connect.properties.authenticationData, authentication, on: connection, now: now)
    }

    private func makeSCRAM(_ hash: SCRAMHash) -> SCRAMServer {
        let users = self.configuration.access.users
        let iterations = self.configuration.access.iterations
        let keys = self.scramKeys
        return SCRAMServer(hash) { name in users[name].flatMap { keys.credentials(name, $0, hash, iterations) } }
    }

    /// Handles a packet between CONNECT and CONNACK [MQTT-3.1.2-30].
    mutating func control(_ packet: Packet, beforeConnAckOn connection: ConnectionID, now: NIODeadline) {
        switch packet {
        case .auth(let auth): self.authenticate(auth, on: connection, now: now)
        case .disconnect:
            self.connections[connection].state = .closing
            self.actions.append(.close(connection))
        default: self.fail(connection, .protocolError, now: now)
        }
    }

    mutating func authenticate(_ auth: Auth, on connection: ConnectionID, now: NIODeadline) {
        // [MQTT-4.12.0-5], [MQTT-4.12.0-6]: the method of the CONNECT, and none without one.
        guard let authentication = self.connections[connection].extras?.authentication,
            auth.properties.authenticationMethod == authentication.hash.mechanism
        else { return self.fail(connection, .protocolError, now: now) }
        if auth.reason == .reAuthenticate {
            // [MQTT-4.12.1-1]: only after CONNACK, and one at a time.
            guard self.connections[connection].state == .open, !authentication.isUnderWay else {
                return self.fail(connection, .protocolError, now: now)
            }
            authentication.begin(self.makeSCRAM(authentication.hash))
        } else if !authentication.isUnderWay {
            return self.fail(connection, .protocolError, now: now)
        }
        self.authenticate(auth.properties.authenticationData, authentication, on: connection, now: now)
    }

    private mutating func authenticate(
        _ data: [UInt8]?,
        _ authentication: Authentication,
        on connection: ConnectionID,
        now: NIODeadline
    ) {
        var properties: Properties = [.authenticationMethod(authentication.hash.mechanism)]
        guard let data else {
            // The client must send first, so the broker asks it to.
            return self.send(.auth(Auth(reason: .continueAuthentication, properties: properties)), to: connection)
        }
        let isLogin = self.connections[connection].state == .authenticating
        let id = authentication.connect?.clientID ?? ""
        if isLogin, self.isGuessing(connection, as: id) { return self.fail(connection, .serverBusy, now: now) }
        switch authentication.received(data) {
        case .challenge(let challenge):
            properties.authenticationData = challenge
            self.send(.auth(Auth(reason: .continueAuthentication, properties: properties)), to: connection)
        case .accepted(let user, let proof):
            properties.authenticationData = proof
            if let connect = authentication.connect {
                authentication.connect = nil
                self.accept(connect, user: user, on: connection, ConnAck(properties: properties), now: now)
            } else {
                self.send(.auth(Auth(reason: .success, properties: properties)), to: connection)
            }
        case .refused where isLogin: self.refuseLogin(connection, code: ReasonCode.notAuthorized.rawValue, now: now)
        // [MQTT-4.12.1-2]
        case .refused: self.fail(connection, .notAuthorized, now: now)
        }
    }
}

// Wrong credentials.
extension Broker {
    /// Answers that are due at most; beyond them the oldest one is sent early.
    private static let mostRefusals = 1_024

    /// Refuses wrong credentials, late if the configuration says so.
    mutating func refuseLogin(_ connection: ConnectionID, code: UInt8, now: NIODeadline) {
        guard let delay = self.configuration.access.refusalDelay else { return self.refuse(connection, code: code) }
        let peer = self.connections[connection].extras?.peer ?? "unknown"
        self.guesses.add(address: peer)
        self.connections[connection].state = .closing
        self.refusals.append((connection: connection, peer: peer, code: code, due: now + delay))
        self.sendRefusals(now: now)
    }

    /// Whether the connection's address has guessed so often that its credentials are not checked now.
    ///
    /// A client that comes back to its session is checked all the same: others of its address cannot keep it out.
    mutating func isGuessing(_ connection: ConnectionID, as clientID: String) -> Bool {
        guard !self.refusals.isEmpty, let peer = self.connections[connection].extras?.peer,
            self.sessionsByKey[Array(clientID.utf8)] == nil
        else { return false }
        return self.refusals.count { $0.peer == peer } >= BrokerAccess.mostGuesses
    }

    mutating func sendRefusals(now: NIODeadline) {
        while let first = self.refusals.first, first.due <= now || self.refusals.count > Self.mostRefusals {
            self.refusals.removeFirst()
            if let connection = first.connection { self.refuse(connection, code: first.code) }
        }
    }

    /// Wrong credentials by the client's address since the last call.
    package mutating func takeGuesses() -> [String: UInt64] {
        defer { self.guesses = [:] }
        return self.guesses
    }
}

/// The authentication exchange of one connection: for its CONNACK, and again whenever the client requests it.
final class Authentication {
    let hash: SCRAMHash
    /// Set until the CONNACK.
    var connect: Connect?
    private var server: SCRAMServer?

    init(_ hash: SCRAMHash, connect: Connect) {
        self.hash = hash
        self.connect = connect
    }

    var isUnderWay: Bool { self.server != nil }
    func begin(_ server: SCRAMServer) { self.server = server }

    func received(_ message: [UInt8]) -> SCRAMServer.Step {
        guard let step = self.server?.received(message) else { return .refused(.otherError) }
        if case .challenge = step { return step }
        self.server = nil
        return step
    }
}

/// The users' keys.
///
/// Each costs thousands of hashes and is made at its first use.
final class BrokerKeys: Sendable {
    private struct Key: Hashable {
        let user: String
        let hash: SCRAMHash
    }

    // Only one event loop uses it. The lock satisfies the compiler and is not on the path of messages.
    private let known = Mutex<[Key: SCRAMCredentials]>([:])

    func credentials(
        _ user: String,
        _ rules: BrokerAccess.User,
        _ hash: SCRAMHash,
        _ iterations: Int
    ) -> SCRAMCredentials? {
        self.known.withLock { known in
            let key = Key(user: user, hash: hash)
            if let credentials = known[key] { return credentials }
            // Each user has a different salt, which is the same in every run.
            let made = try? SCRAMCredentials(
                hash,
                password: String(decoding: rules.password, as: UTF8.self),
                salt: Array("clamor \(user)".utf8),
                iterations: iterations
            )
            known[key] = made
            return made
        }
    }
}
