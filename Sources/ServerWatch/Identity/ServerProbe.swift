package import MQTT
import MQTTCodec
package import Measurement
package import NIOCore
package import XMPP
import XMPPCodec

/// Asks a server which program it is, over a connection of its own.
///
/// A server that does not tell its name is no error: the answer is `nil`.
package enum ServerProbe {
    /// Reads the retained version of an MQTT broker.
    ///
    /// - Parameters:
    ///   - configuration: the broker and the user; the client identifier is replaced by a random one.
    ///   - patience: the time from the begin of the connect to the version.
    ///   - group: event loops without load.
    /// - Returns: `nil` if it is unknown.
    package static func mqtt(
        _ configuration: MQTTClientConfiguration,
        patience: Duration = .seconds(1),
        on group: any EventLoopGroup
    ) async -> ServerRecord? {
        let client = MQTTClient(Self.quiet(configuration), eventLoopGroup: group)
        return await Self.within(patience) {
            let record = await Self.record(client)
            // A cancelled task does not wait for the end of the connection.
            await client.shutDown()
            return record
        }
    }

    /// Asks the server of an account by XEP-0092.
    ///
    /// - Parameters:
    ///   - configuration: the account, which gets a resource of its own; a component is not asked, since its domain
    ///     has room for one stream.
    ///   - patience: the time from the begin of the connect to the answer.
    ///   - group: event loops without load.
    /// - Returns: `nil` if it is unknown.
    package static func xmpp(
        _ configuration: XMPPClientConfiguration,
        patience: Duration = .seconds(2),
        on group: any EventLoopGroup
    ) async -> ServerRecord? {
        guard !configuration.isComponent, let jid = try? JID(configuration.jid),
            let server = try? JID(domain: jid.domain)
        else { return nil }
        var own = configuration
        own.jid = "\(jid.bare)/clamor-watch-\(String(UInt32.random(in: .min ... .max), radix: 16))"
        own.resumes = false
        own.registers = false
        own.token = nil
        let module = XMPPSoftwareVersion()
        let client = XMPPClient(own, modules: [module], eventLoopGroup: group)
        let record: ServerRecord? = await Self.within(patience) {
            guard (try? await client.connect()) != nil else { return nil }
            let version = try? await module.version(of: server)
            await client.disconnect()
            return version.flatMap { ServerIdentity.record(xmppName: $0.name, version: $0.version) }
        }
        // A cancelled task does not close the stream.
        Task { await client.disconnect() }
        return record
    }

    /// The configuration of a client that the server and the load do not notice.
    static func quiet(_ configuration: MQTTClientConfiguration) -> MQTTClientConfiguration {
        var own = configuration
        own.clientID = MQTTClientConfiguration().clientID
        own.cleanStart = true
        own.sessionExpiry = nil
        own.will = nil
        return own
    }

    /// Cancels the work at the deadline; a record that cancelled work returns counts.
    private static func within(
        _ patience: Duration,
        _ work: @escaping @Sendable () async -> ServerRecord?
    ) async -> ServerRecord? {
        await withTaskGroup(of: ServerRecord?.self) { tasks in
            tasks.addTask { await work() }
            tasks.addTask {
                // Cancelled when the work ends first.
                try? await Task.sleep(for: patience)
                return nil
            }
            let first = await tasks.next() ?? nil
            tasks.cancelAll()
            let second = await tasks.next() ?? nil
            return first ?? second
        }
    }

    private static func record(_ client: MQTTClient) async -> ServerRecord? {
        guard (try? await client.connect()) != nil else { return nil }
        let subscriptions = [ServerIdentity.brokerTopic, ServerIdentity.nodeFilter].map {
            Subscription(filter: $0, qos: .atMostOnce)
        }
        guard let results = try? await client.subscribe(subscriptions),
            results.contains(where: { $0.reason.rawValue < 0x80 })
        else { return nil }
        for await message in client.messages {
            if let record = ServerIdentity.record(topic: message.topic, payload: message.payload) { return record }
        }
        return nil
    }
}

/// Reads a server's product and version from the texts in which servers tell them.
package enum ServerIdentity {
    /// The topic of mosquitto, and of brokers that copy it.
    package static let brokerTopic = "$SYS/broker/version"
    /// The topics of EMQX, one for each of its nodes.
    package static let nodeFilter = "$SYS/brokers/+/version"
    /// Longer names are cut: no server is known to have one.
    private static let longest = 80

    /// `nil` for another topic, and for a text without a name: it is no product for a comparison.
    package static func record(topic: String, payload: [UInt8]) -> ServerRecord? {
        guard let text = Self.plain(String(decoding: payload.prefix(Self.longest), as: UTF8.self)) else { return nil }
        if topic == Self.brokerTopic { return Self.broker(text) }
        let levels = topic.split(separator: "/", omittingEmptySubsequences: false)
        guard levels.count == 4, levels[0] == "$SYS", levels[1] == "brokers", levels[3] == "version" else { return nil }
        return ServerRecord(product: "emqx", version: text, source: Self.nodeFilter)
    }

    package static func record(xmppName name: String, version: String?) -> ServerRecord? {
        guard let product = Self.plain(name) else { return nil }
        return ServerRecord(product: product.lowercased(), version: version.flatMap(Self.plain), source: "XEP-0092")
    }

    /// `mosquitto version 2.0.11`, or a name with or without a number after it; `nil` for a number alone.
    private static func broker(_ text: String) -> ServerRecord? {
        var words = text.split(separator: " ").map(String.init)
        var version: String?
        if words.count > 1, let last = words.last, last.utf8.contains(where: { (0x30...0x39).contains($0) }) {
            version = last
            words.removeLast()
            if words.last?.lowercased() == "version" { words.removeLast() }
        }
        guard let first = words.first?.utf8.first, !(0x30...0x39).contains(first) else { return nil }
        let product = words.joined(separator: " ").lowercased()
        return ServerRecord(product: product, version: version, source: Self.brokerTopic)
    }

    /// The text in one line, without surrounding blanks; `nil` if nothing is left.
    private static func plain(_ text: String) -> String? {
        let words = LabelText.safe(String(text.prefix(Self.longest))).split(separator: " ")
        return words.isEmpty ? nil : words.joined(separator: " ")
    }
}
