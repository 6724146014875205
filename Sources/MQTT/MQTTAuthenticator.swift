package import MQTTCodec
package import SASL

/// Enhanced authentication from the client's side: a SASL mechanism in CONNECT, CONNACK and AUTH.
///
/// Pure: packets go in, actions come out. One value serves one connection.
/// A re-authentication starts with a new mechanism.
///
/// Spec: MQTT 5.0 §4.12.
package struct MQTTAuthenticator {
    private enum State {
        case idle
        /// CONNECT went out, or AUTH with 0x19: challenges may come.
        case underWay
        case authenticated
    }

    private let make: @Sendable () -> any SASLMechanism
    private var mechanism: any SASLMechanism
    private var state = State.idle

    /// - Parameter make: returns a mechanism that has not begun; called again for each re-authentication.
    package init(_ make: @escaping @Sendable () -> any SASLMechanism) {
        self.make = make
        self.mechanism = make()
    }

    /// The method, which is the mechanism's registered name.
    package var method: String { self.mechanism.name }

    /// The properties that CONNECT carries.
    package mutating func begin() throws(SASLError) -> Properties {
        self.mechanism = self.make()
        let data = try self.mechanism.begin()
        self.state = .underWay
        return self.properties(data)
    }

    /// The AUTH that begins a re-authentication; `nil` while one is under way, or nothing has been authenticated.
    package mutating func reauthenticate() throws(SASLError) -> Auth? {
        guard self.state == .authenticated else { return nil }
        return Auth(reason: .reAuthenticate, properties: try self.begin())
    }

    package enum Action: Hashable {
        case send(Auth)
        /// A re-authentication has succeeded.
        case done
        /// The server broke a rule of §4.12.
        case violation(String)
        case failed(SASLError)
    }

    /// Answers the server's AUTH.
    ///
    /// - Parameters:
    ///   - auth: from the server.
    ///   - isConnecting: whether CONNACK is still to come.
    /// - Returns: what to do about it.
    package mutating func received(_ auth: Auth, isConnecting: Bool) -> Action {
        guard auth.properties.authenticationMethod == self.method else {
            return .violation("AUTH with another method than CONNECT ([MQTT-4.12.0-5])")
        }
        guard self.state == .underWay else { return .violation("AUTH outside an authentication (§4.12)") }
        let data = auth.properties.authenticationData
        do throws(SASLError) {
            if auth.reason == .continueAuthentication {
                let answer = try self.mechanism.respond(to: data ?? [])
                return .send(Auth(reason: .continueAuthentication, properties: self.properties(answer)))
            }
            // The decoder lets only 0x18 and success through. The first authentication succeeds with CONNACK, not with
            // AUTH.
            if isConnecting { return .violation("AUTH with success before CONNACK (§4.12)") }
            try self.mechanism.finish(data)
        } catch {
            return .failed(error)
        }
        self.state = .authenticated
        return .done
    }

    package mutating func received(_ connack: ConnAck) -> Action {
        guard connack.properties.authenticationMethod == self.method else {
            return .violation("CONNACK with another method than CONNECT ([MQTT-4.12.0-5])")
        }
        do throws(SASLError) {
            try self.mechanism.finish(connack.properties.authenticationData)
        } catch {
            return .failed(error)
        }
        self.state = .authenticated
        return .done
    }

    private func properties(_ data: [UInt8]?) -> Properties {
        var properties: Properties = [.authenticationMethod(self.method)]
        if let data { properties.append(.authenticationData(data)) }
        return properties
    }
}
