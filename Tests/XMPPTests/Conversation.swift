import Foundation
import NIOCore
import SASL
import XMPP

/// A conversation out of Tests/Vectors/xmpp-streams, one a file; see the README there.
struct Conversation: Sendable, CustomStringConvertible {
    enum Step: Sendable, Equatable {
        case client(String)
        case server([UInt8])
        case handshake
        case passes(TimeAmount)
        case finish
        case close
        case ready(String)
        case registered
        case token(String)
        case offers(String)
        case end(String)
    }

    let name: String
    let title: String
    let settings: [String: String]
    let steps: [Step]

    var description: String { "\(self.name): \(self.title)" }

    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Vectors/xmpp-streams")

    /// Those whose server may be cut anywhere: messages of a WebSocket come whole.
    static let streams = Self.all.filter { $0.settings["framing"] == nil }
    static let all: [Conversation] = {
        // Arguments of tests are made where nothing can be thrown; without any the tests would pass.
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: Self.folder.path), !names.isEmpty else {
            fatalError("no conversations in \(Self.folder.path)")
        }
        return names.filter { $0.hasSuffix(".txt") }.sorted().map { name in
            do {
                return try Conversation(
                    name,
                    try String(contentsOf: Self.folder.appendingPathComponent(name), encoding: .utf8)
                )
            } catch {
                fatalError("\(name): \(error)")
            }
        }
    }()

    struct Broken: Error {
        let line: String
    }

    init(_ name: String, _ text: String) throws {
        var title = ""
        var settings: [String: String] = [:]
        var steps: [Step] = []
        for line in text.split(separator: "\n").map(String.init) {
            let rest = String(line.dropFirst(2)).trimmingCharacters(in: .whitespaces)
            switch line.prefix(2) {
            case "# ": title += title.isEmpty ? rest : " \(rest)"
            case "C:":
                let rest = rest.replacing("\\s", with: " ")
                if case .client(let before)? = steps.last {
                    steps[steps.count - 1] = .client(before + rest)
                } else {
                    steps.append(.client(rest))
                }
            case "S:":
                let bytes = Array(rest.replacing("\\n", with: "\n").replacing("\\s", with: " ").utf8)
                // Of a WebSocket each line is a message.
                if case .server(let before)? = steps.last, settings["framing"] == nil {
                    steps[steps.count - 1] = .server(before + bytes)
                } else {
                    steps.append(.server(bytes))
                }
            case "! ":
                switch rest {
                case "handshake": steps.append(.handshake)
                case "finish": steps.append(.finish)
                case "FIN": steps.append(.close)
                default:
                    guard let seconds = Int64(rest.dropLast(1)), rest.hasSuffix("s") else { throw Broken(line: line) }
                    steps.append(.passes(.seconds(seconds)))
                }
            case "= ":
                if rest.hasPrefix("ready ") {
                    steps.append(.ready(String(rest.dropFirst(6))))
                } else if rest == "registered" {
                    steps.append(.registered)
                } else if rest.hasPrefix("token ") {
                    steps.append(.token(String(rest.dropFirst(6))))
                } else if rest == "offers" || rest.hasPrefix("offers ") {
                    steps.append(.offers(String(rest.dropFirst(7))))
                } else if rest.hasPrefix("end ") {
                    steps.append(.end(String(rest.dropFirst(4))))
                } else {
                    throw Broken(line: line)
                }
            default:
                let parts = line.split(separator: ":", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
                guard parts.count == 2 else { throw Broken(line: line) }
                settings[parts[0]] = parts[1]
            }
        }
        self.name = name
        self.title = title
        self.settings = settings
        self.steps = steps
    }

    func options() throws -> XMPPStreamOptions {
        var options = ConnectionRig.options()
        options.tlsPolicy = .required
        options.allowsPlainWithoutTLS = false
        options.mechanisms = nil
        options.keepAlive = .zero
        options.wallClock = { Self.now }
        var login = XMPPSASL2Options()
        for (key, value) in self.settings {
            switch key {
            case "tls":
                guard let policy = XMPPTLSPolicy(rawValue: value) else { throw Broken(line: value) }
                options.tlsPolicy = policy
            case "mechanisms": options.mechanisms = value.split(separator: " ").map(String.init)
            case "clear": options.allowsPlainWithoutTLS = value == "yes"
            case "legacy": options.allowsLegacyAuthentication = value == "yes"
            case "register":
                options.registration = value == "only" ? .only : value == "if missing" ? .createIfMissing : .create
            case "management": options.management = value == "resume" ? .resume : .acknowledge
            case "framing": options.framing = value == "websocket" ? .webSocket : .stream
            case "keep-alive": options.keepAlive = .seconds(Int64(value) ?? 0)
            case "certificate": options.hasClientCertificate = value == "yes"
            case "agent":
                let parts = value.split(separator: " ", maxSplits: 2).map(String.init)
                login.userAgent = XMPPUserAgent(
                    id: parts.first,
                    software: parts.dropFirst().first,
                    device: parts.dropFirst(2).first
                )
            case "tag": login.tag = value
            case "carbons": login.enablesCarbonsInline = value == "yes"
            case "inactive": login.beginsInactive = value == "yes"
            case "tokens": login.usesTokens = value == "yes"
            case "jid", "password", "secure", "login", "token", "invalidate": break
            default: throw Broken(line: "\(key): \(value)")
            }
        }
        if self.settings["login"] == "sasl2" { options.login = .sasl2(login) }
        return options
    }

    /// 2026-07-01T12:00:00Z, in seconds since 1970.
    private static let now: Int64 = 1_782_907_200

    /// What the owner has kept from the last login: mechanism, token, count, and expiry.
    private func prepare(_ stream: UnsafeMutablePointer<XMPPStream>) throws {
        if let text = self.settings["token"] {
            let parts = text.split(separator: " ").map(String.init)
            guard parts.count >= 3, let count = Int(parts[2]) else { throw Broken(line: text) }
            stream.pointee.token = XMPPFastToken(
                mechanism: parts[0],
                token: parts[1],
                expiry: parts.dropFirst(3).first,
                count: count
            )
        }
        stream.pointee.invalidatesToken = self.settings["invalidate"] == "yes"
    }

    private static func words(_ token: XMPPFastToken?) -> String {
        guard let token else { return "none" }
        return ["\(token.mechanism) \(token.token) \(token.count)", token.expiry].compactMap(\.self)
            .joined(separator: " ")
    }

    private static func words(_ offers: XMPPStreamOffers, _ enabled: XMPPInlineFeatures) -> String {
        var words: [String] = []
        if offers.contains(.rosterVersioning) { words.append("rosterver") }
        if offers.contains(.preApproval) { words.append("pre-approval") }
        if offers.contains(.clientState) { words.append("csi") }
        if enabled.contains(.carbons) { words.append("carbons-on") }
        if enabled.contains(.inactive) { words.append("inactive-on") }
        return words.joined(separator: " ")
    }

    var account: XMPPAccount {
        get throws {
            XMPPAccount(
                try JID(self.settings["jid"] ?? "juliet@im.example.com/balcony"),
                password: self.settings["password"] ?? "r0m30myr0m30"
            )
        }
    }

    /// Bytes of the server's side.
    var size: Int {
        self.steps.reduce(0) { sum, step in
            if case .server(let bytes) = step { sum + bytes.count } else { sum }
        }
    }

    /// The length of the longest common prefix with the server's side of an earlier conversation.
    ///
    /// The shared bytes have the same effect in both.
    var sharedSize: Int {
        var most = 0
        for other in Self.all.prefix(while: { $0.name != self.name }) where other.settings == self.settings {
            var size = 0
            for (step, same) in zip(self.steps, other.steps) {
                guard step == same else { break }
                if case .server(let bytes) = step { size += bytes.count }
            }
            most = max(most, size)
        }
        return most
    }

    /// Runs it, the server's bytes cut at `cut` of them all, or into pieces of `piece` bytes.
    ///
    /// - Returns: what went otherwise, one line each.
    func run(cut: Int? = nil, piece: Int? = nil) throws -> [String] {
        let rig = try ConnectionRig(try self.options(), account: try self.account)
        try self.prepare(rig.stream)
        rig.start(within: .seconds(30), isSecure: self.settings["secure"] == "yes")
        var problems: [String] = []
        var offset = 0
        for (index, step) in self.steps.enumerated() {
            switch step {
            case .client(let expected):
                let sent = try rig.sent()
                if sent != expected { problems.append("step \(index): sent\n\(sent)\nin place of\n\(expected)") }
            case .server(let bytes):
                try Self.deliver(bytes, to: rig, cut: cut.map { $0 - offset }, piece: piece)
                offset += bytes.count
            case .handshake:
                guard let done = rig.observer.tls else {
                    problems.append("step \(index): no TLS was asked for")
                    continue
                }
                rig.observer.tls = nil
                done(.success(()))
            case .passes(let time): rig.advance(time)
            case .finish: rig.connection.finish()
            case .close: rig.channel.close(promise: nil)
            case .ready(let jid):
                let ready = rig.observer.calls.contains { call in
                    if case .ready(jid, _, _, _) = call { true } else { false }
                }
                if !ready { problems.append("step \(index): not ready as \(jid) but \(rig.observer.calls)") }
            case .registered:
                if !rig.observer.calls.contains(.registered) { problems.append("step \(index): not registered") }
            case .token(let words):
                let token = Self.words(rig.stream.pointee.token)
                if token != words { problems.append("step \(index): the token is '\(token)', not '\(words)'") }
            case .offers(let words):
                let found = rig.observer.readiness.map { Self.words($0.offers, $0.enabled) } ?? "not ready"
                if found != words { problems.append("step \(index): offers '\(found)', not '\(words)'") }
            case .end(let words):
                let said = rig.end?.description ?? "nothing"
                if said != words { problems.append("step \(index): ended with '\(said)' in place of '\(words)'") }
            }
        }
        let rest = try rig.sent()
        if !rest.isEmpty { problems.append("at the end: sent \(rest)") }
        return problems
    }

    private static func deliver(_ bytes: [UInt8], to rig: ConnectionRig, cut: Int?, piece: Int?) throws {
        if let piece {
            var rest = bytes[...]
            while !rest.isEmpty {
                try rig.receive(Array(rest.prefix(piece)))
                rest = rest.dropFirst(piece)
            }
        } else if let cut, cut > 0, cut < bytes.count {
            try rig.receive(Array(bytes[..<cut]))
            try rig.receive(Array(bytes[cut...]))
        } else {
            try rig.receive(bytes)
        }
    }
}
