/// Chooses one of the mechanisms that a server offers.
///
/// The order of preference: EXTERNAL if the client has a certificate; SCRAM with channel binding, then without, over
/// SHA-512, SHA-256 and SHA-1; DIGEST-MD5 if allowed; PLAIN, inside TLS or if allowed without. ANONYMOUS is used only
/// on request, and then no other.
///
/// Spec: RFC 6120 §6.3.3, RFC 5802 §6, XEP-0440.
package struct SASLMechanismChoice: Hashable, Sendable {
    /// The only mechanism to use, by its registered name in any case.
    package var forced: String?
    /// Whether the password may be sent in clear.
    package var allowsPlainWithoutTLS = false
    package var allowsDigestMD5 = false
    /// No user name, no password.
    package var isAnonymous = false
    /// Refuses mechanisms that are not bound to the TLS session.
    package var requiresChannelBinding = false
    /// Refuses bound mechanisms without types of channel binding, as SASL2 requires (XEP-0440 §3).
    package var requiresBindingTypes = false
    /// Rounds of the password's hash that a server may ask for.
    package var iterations = SCRAMClient.usualIterations

    package init() {}

    package struct Credentials: Sendable {
        package var user: String
        /// `nil` for a client that has a certificate only.
        package var password: String?
        /// The domain of the account, which DIGEST-MD5 signs.
        package var domain: String
        /// The identity to act as, if it is not the user.
        package var authorizationIdentity: String
        /// Whether TLS showed the server a certificate of the client.
        package var hasCertificate: Bool

        package init(
            user: String,
            password: String?,
            domain: String,
            authorizationIdentity: String = "",
            hasCertificate: Bool = false
        ) {
            self.user = user
            self.password = password
            self.domain = domain
            self.authorizationIdentity = authorizationIdentity
            self.hasCertificate = hasCertificate
        }
    }

    /// The server's offer on this stream.
    package struct Offer: Sendable {
        /// Names, in any order; unknown ones are passed over.
        package var mechanisms: [String]
        /// The server's types of channel binding, if it lists them (XEP-0440).
        package var bindings: [String]?
        package var isSecure: Bool
        /// The channel bindings of this TLS session, the preferred one first.
        package var available: [SASLChannelBinding]

        package init(
            _ mechanisms: [String],
            bindings: [String]? = nil,
            isSecure: Bool,
            available: [SASLChannelBinding] = []
        ) {
            self.mechanisms = mechanisms
            self.bindings = bindings
            self.isSecure = isSecure
            self.available = available
        }
    }

    /// Chooses, and makes the mechanism.
    ///
    /// - Parameters:
    ///   - offer: the server's.
    ///   - credentials: the client's.
    ///   - refused: mechanisms that have failed on this stream, and are not tried again.
    ///   - cache: of derived keys; best one for all clients of an event loop.
    ///   - nonce: SCRAM's, see ``SCRAMClient``.
    /// - Returns: a mechanism that has not begun.
    /// - Throws: the reason, if there is no mechanism, or none that the settings allow.
    package func choose(
        from offer: Offer,
        for credentials: Credentials,
        without refused: Set<String> = [],
        cache: SCRAMKeyCache,
        nonce: @escaping @Sendable () -> String = SCRAMNonce.random
    ) throws(SASLChoiceError) -> any SASLMechanism {
        let names = Set(offer.mechanisms.map { $0.uppercased() })
        guard !names.isEmpty else { throw .nothingOffered }
        if let types = offer.bindings, !types.isEmpty, offer.isSecure, !names.contains(where: Self.isBound) {
            // XEP-0440 §4: types without a mechanism for them are what is left of a list that was cut.
            throw .bindingStripped(types)
        }
        if self.requiresBindingTypes, offer.isSecure, !offer.available.isEmpty, (offer.bindings ?? []).isEmpty,
            names.contains(where: Self.isBound)
        {
            throw .bindingTypesStripped
        }
        if let forced = self.forced?.uppercased() {
            if refused.contains(forced) { throw .noneShared(offered: offer.mechanisms) }
            return try self.make(forced, names, offer, credentials, cache, nonce)
        }
        // A server that refuses a binding which it offered may be a man in the middle: no unbound login follows (RFC
        // 5802 §6).
        let bindingWasRefused = refused.contains(where: Self.isBound)
        for name in self.order(credentials) where names.contains(name) && !refused.contains(name) {
            if Self.isBound(name), Self.common(offer) == nil { continue }
            if bindingWasRefused, !Self.isBound(name) { continue }
            if name == "PLAIN", !offer.isSecure, !self.allowsPlainWithoutTLS { continue }
            return try self.make(name, names, offer, credentials, cache, nonce)
        }
        if bindingWasRefused { throw .noBinding(offered: offer.mechanisms) }
        if names.contains("PLAIN"), !offer.isSecure, !self.isAnonymous, credentials.password != nil,
            !self.allowsPlainWithoutTLS, !self.requiresChannelBinding, !refused.contains("PLAIN")
        {
            throw .plainWithoutTLS
        }
        if self.requiresChannelBinding { throw .noBinding(offered: offer.mechanisms) }
        throw .noneShared(offered: offer.mechanisms)
    }

    private func order(_ credentials: Credentials) -> [String] {
        if self.isAnonymous { return ["ANONYMOUS"] }
        let hashes = [SCRAMHash.sha512, .sha256, .sha1].map(\.mechanism)
        let bound = hashes.map { "\($0)-PLUS" }
        let certified = credentials.hasCertificate && !self.requiresChannelBinding ? ["EXTERNAL"] : []
        guard credentials.password != nil else { return certified }
        if self.requiresChannelBinding { return bound }
        return certified + bound + hashes + (self.allowsDigestMD5 ? ["DIGEST-MD5"] : []) + ["PLAIN"]
    }

    private static func isBound(_ name: String) -> Bool { name.hasPrefix("SCRAM-") && name.hasSuffix("-PLUS") }

    /// The common channel binding of both sides.
    ///
    /// If a server lists no types, none is used: the implicit one (`tls-unique`, RFC 5802 §6.1) is not implemented.
    private static func common(_ offer: Offer) -> SASLChannelBinding? {
        guard offer.isSecure, let types = offer.bindings else { return nil }
        return offer.available.first { types.contains($0.kind.rawValue) }
    }

    private func make(
        _ name: String,
        _ offered: Set<String>,
        _ offer: Offer,
        _ credentials: Credentials,
        _ cache: SCRAMKeyCache,
        _ nonce: @escaping @Sendable () -> String
    ) throws(SASLChoiceError) -> any SASLMechanism {
        guard offered.contains(name) else { throw .notOffered(name, offered: offer.mechanisms) }
        if self.requiresChannelBinding, !Self.isBound(name) { throw .noBinding(offered: offer.mechanisms) }
        do throws(SASLError) {
            switch name {
            case "ANONYMOUS": return try ANONYMOUSMechanism()
            case "EXTERNAL":
                return try EXTERNALMechanism(authorizationIdentity: credentials.authorizationIdentity)
            default: break
            }
        } catch {
            throw .credentials(error)
        }
        guard let password = credentials.password else { throw .noPassword(name) }
        if name == "PLAIN", !offer.isSecure, !self.allowsPlainWithoutTLS { throw .plainWithoutTLS }
        do throws(SASLError) {
            switch name {
            case "PLAIN":
                return try PLAINMechanism(
                    user: credentials.user,
                    password: password,
                    authorizationIdentity: credentials.authorizationIdentity
                )
            case "DIGEST-MD5":
                return try DigestMD5Mechanism(
                    user: credentials.user,
                    password: password,
                    host: credentials.domain,
                    authorizationIdentity: credentials.authorizationIdentity
                )
            default: break
            }
        } catch {
            throw .credentials(error)
        }
        return try self.scram(name, offered, offer, credentials, password, cache, nonce)
    }

    private func scram(
        _ name: String,
        _ offered: Set<String>,
        _ offer: Offer,
        _ credentials: Credentials,
        _ password: String,
        _ cache: SCRAMKeyCache,
        _ nonce: @escaping @Sendable () -> String
    ) throws(SASLChoiceError) -> any SASLMechanism {
        let isBound = Self.isBound(name)
        guard let hash = SCRAMHash(rawValue: isBound ? String(name.dropLast("-PLUS".count)) : name) else {
            throw .unknown(name)
        }
        let binding: SCRAMBinding
        if isBound {
            // Forced, without a list of the server's: the best there is.
            let best = offer.bindings == nil && offer.isSecure ? offer.available.first : nil
            guard let found = Self.common(offer) ?? best else { throw .noBinding(offered: offer.mechanisms) }
            binding = .bound(found)
        } else {
            // §6: `y` only where the server offers no -PLUS at all.
            let couldBind = offer.isSecure && !offer.available.isEmpty && !offered.contains(where: Self.isBound)
            binding = couldBind ? .notOffered : .unsupported
        }
        do throws(SASLError) {
            return try SCRAMClient(
                hash,
                user: credentials.user,
                password: password,
                authorizationIdentity: credentials.authorizationIdentity,
                binding: binding,
                iterations: self.iterations,
                cache: cache,
                nonce: nonce
            )
        } catch {
            throw .credentials(error)
        }
    }
}
