import DataEncodings
import SASL
import TestSupport
import Testing

/// Each mechanism against those of the real servers that offer it, over a connection without TLS.
@Suite("SASL with real servers", .timeLimit(.minutes(10)))
struct SASLServerTests {
    private struct Exchange {
        let isContent: Bool
        /// The server's condition, where it is not content.
        var condition = ""
    }

    @Test("[RFC 6120 §6.4] logs in by every mechanism, as itself and for itself", arguments: XMPPServer.Kind.installed)
    func mechanisms(_ kind: XMPPServer.Kind) async throws {
        try await XMPPServer.with(kind, users: 1) { server in
            let offered = try await Self.offered(server, server.domain)
            let wanted = kind == .ejabberd ? ["SCRAM-SHA-512", "DIGEST-MD5"] : []
            for name in wanted + ["SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"] {
                #expect(offered.contains(name))
                let result = try await Self.login(server, offered, forced: name)
                #expect(result.isContent, "\(name): \(result.condition)")
                let wrong = try await Self.login(server, offered, forced: name, password: "wrong")
                #expect(wrong.condition == "not-authorized", "\(name)")
            }
            // The best of them, for the user itself: the proof covers the identity.
            let best = try await Self.login(server, offered, identity: "user1@\(server.domain)")
            #expect(best.isContent, "\(best.condition)")
        }
    }

    @Test("[RFC 4505 §2] every client is accepted by an anonymous domain", arguments: XMPPServer.Kind.installed)
    func anonymous(_ kind: XMPPServer.Kind) async throws {
        try await XMPPServer.with(kind) { server in
            let offered = try await Self.offered(server, XMPPServer.anonymousDomain)
            let domain = XMPPServer.anonymousDomain
            let result = try await Self.login(server, offered, to: domain) { $0.isAnonymous = true }
            #expect(result.isContent, "\(result.condition)")
        }
    }

    private static func offered(_ server: XMPPServer, _ domain: String) async throws -> [String] {
        try await TextConnection.with(port: server.port) { connection in
            try await connection.send(XMPPServer.header(to: domain))
            let text = try await connection.until { $0.contains("</stream:features>") }
            return text.split(separator: "<mechanism>").dropFirst().map { part in String(part.prefix { $0 != "<" }) }
        }
    }

    /// Carries the messages of one authentication, as XMPP does (RFC 6120 §6.4).
    private static func login(
        _ server: XMPPServer,
        _ offered: [String],
        to other: String? = nil,
        forced: String? = nil,
        password: String = XMPPServer.password,
        identity: String = "",
        _ change: (inout SASLMechanismChoice) -> Void = { _ in }
    ) async throws -> Exchange {
        let domain = other ?? server.domain
        var choice = SASLMechanismChoice()
        choice.forced = forced
        choice.allowsPlainWithoutTLS = true
        change(&choice)
        let made = try choice.choose(
            from: .init(offered, isSecure: false),
            for: .init(user: "user1", password: password, domain: domain, authorizationIdentity: identity),
            cache: SCRAMKeyCache(capacity: 4)
        )
        return try await TextConnection.with(port: server.port) { connection in
            var mechanism = made
            try await connection.send(XMPPServer.header(to: domain))
            var seen = try await connection.until { $0.contains("</stream:features>") }.utf8.count
            let first = try mechanism.begin().map { $0.isEmpty ? "=" : Base64.encode($0) } ?? ""
            let namespace = "xmlns='urn:ietf:params:xml:ns:xmpp-sasl'"
            try await connection.send("<auth \(namespace) mechanism='\(mechanism.name)'>\(first)</auth>")
            while true {
                let known = seen
                let text = try await connection.until { $0.utf8.count > known && Self.isWhole($0, from: known) }
                let answer = String(decoding: text.utf8.dropFirst(known), as: UTF8.self)
                seen = text.utf8.count
                let data = Self.content(answer).flatMap { Base64.decode(Array($0.utf8)) }
                if answer.contains("<success") {
                    try mechanism.finish(data)
                    return Exchange(isContent: true)
                }
                guard answer.contains("<challenge") else {
                    let condition = answer.split(separator: "<").dropFirst().first ?? ""
                    return Exchange(isContent: false, condition: String(condition.prefix { $0.isLetter || $0 == "-" }))
                }
                let response = Base64.encode(try mechanism.respond(to: data ?? []))
                try await connection.send("<response \(namespace)>\(response)</response>")
            }
        }
    }

    private static func isWhole(_ text: String, from start: Int) -> Bool {
        let rest = String(decoding: text.utf8.dropFirst(start), as: UTF8.self)
        if rest.contains("</challenge>") || rest.contains("</success>") || rest.contains("</failure>") { return true }
        return rest.hasSuffix("/>") && !rest.contains("<failure")
    }

    /// The content of the single element.
    private static func content(_ element: String) -> String? {
        guard let start = element.firstIndex(of: ">") else { return nil }
        let rest = element[element.index(after: start)...]
        let text = String(rest.prefix { $0 != "<" })
        return text.isEmpty ? nil : text
    }
}
