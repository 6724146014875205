import Foundation
import MQTT
import Measurement
import NIOCore
import NIOPosix
import ServerWatch
import TestSupport
import Testing
import XMPP

@Suite("Product and version of a server")
struct ServerIdentityTests {
    @Test(
        "in the texts of $SYS topics",
        arguments: [
            ("$SYS/broker/version", "mosquitto version 2.0.11", "mosquitto", "2.0.11"),
            ("$SYS/broker/version", "  FlashMQ\t1.5 \n", "flashmq_1.5 _", nil),
            ("$SYS/broker/version", "NanoMQ 0.21.2", "nanomq", "0.21.2"),
            ("$SYS/broker/version", "broker", "broker", nil),
            ("$SYS/brokers/emqx@127.0.0.1/version", "5.8.6", "emqx", "5.8.6"),
        ] as [(String, String, String, String?)]
    )
    func texts(topic: String, text: String, product: String, version: String?) throws {
        let record = try #require(ServerIdentity.record(topic: topic, payload: Array(text.utf8)))
        #expect(record.product == product)
        #expect(record.version == version)
    }

    @Test(
        "is unknown for other topics, and for texts without a name",
        arguments: [
            ("$SYS/broker/uptime", "1"), ("$SYS/broker/version", ""), ("$SYS/broker/version", "   "),
            ("$SYS/broker/version", "2.4.0"), ("$SYS/broker/version", "2.4.0 build 7"),
            ("$SYS/broker/version", "version 3"), ("$SYS/brokers/a/b/version", "1"),
            ("$SYS/brokers/a/sysdescr", "EMQX"), ("a/brokers/b/version", "1"),
        ]
    )
    func unknown(topic: String, text: String) {
        #expect(ServerIdentity.record(topic: topic, payload: Array(text.utf8)) == nil)
    }

    @Test("of an XMPP server in lower case, so that it is one product for a comparison")
    func lowerCase() {
        let record = ServerIdentity.record(xmppName: " Prosody ", version: "0.12.3 Final")
        #expect(record == ServerRecord(product: "prosody", version: "0.12.3 Final", source: "XEP-0092"))
        #expect(ServerIdentity.record(xmppName: " ", version: "1") == nil)
    }

    @Test("of any bytes is one short line")
    func hostile() throws {
        var bytes = SplitMix64(seed: 28)
        for _ in 0..<500 {
            let payload = (0..<Int(bytes.next() % 300)).map { _ in UInt8(truncatingIfNeeded: bytes.next()) }
            guard let record = ServerIdentity.record(topic: "$SYS/broker/version", payload: payload) else { continue }
            for text in [record.product, record.version ?? ""] {
                #expect(text.count <= 80 && !text.utf8.contains { $0 < 0x20 })
            }
        }
    }

    @Test("has the keys of result files")
    func keys() throws {
        let record = ServerRecord(product: "mosquitto", version: nil, source: "$SYS/broker/version")
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let text = String(decoding: try encoder.encode(record), as: UTF8.self)
        #expect(text == #"{"product":"mosquitto","source":"$SYS/broker/version"}"#)
    }

    @Test("of mosquitto, by a connection of its own", .enabled(if: Mosquitto.isInstalled, "\(Mosquitto.missing)"))
    func mosquitto() async throws {
        let record = try await Mosquitto.with { broker in
            let configuration = MQTTClientConfiguration(host: "127.0.0.1", port: UInt16(broker.port))
            let group = MultiThreadedEventLoopGroup.singleton
            return await ServerProbe.mqtt(configuration, patience: .seconds(60), on: group)
        }
        #expect(record?.product == "mosquitto")
        #expect(record?.version?.hasPrefix("2.") == true)
        #expect(record?.source == "$SYS/broker/version")
    }

    @Test("of XMPP servers, by XEP-0092", arguments: XMPPServer.Kind.installed)
    func xmpp(_ kind: XMPPServer.Kind) async throws {
        let record = try await XMPPServer.with(kind) { server in
            let jid = "\(XMPPServer.user)@\(server.domain)/load"
            var configuration = XMPPClientConfiguration(jid: jid, password: XMPPServer.password)
            configuration.host = "127.0.0.1"
            configuration.port = UInt16(server.port)
            configuration.authorityFile = server.certificates.authority
            let group = MultiThreadedEventLoopGroup.singleton
            return await ServerProbe.xmpp(configuration, patience: .seconds(60), on: group)
        }
        #expect(record?.product == kind.rawValue)
        #expect(record?.source == "XEP-0092")
    }

    @Test("is unknown behind the deadline, also of a server that accepts and is silent")
    func silent() async throws {
        try await withScriptedPeer { peer in
            let group = MultiThreadedEventLoopGroup.singleton
            var mqtt = MQTTClientConfiguration(host: "127.0.0.1", port: UInt16(peer.port))
            // The limits of the client itself never end the probe.
            mqtt.timeouts.connect = .seconds(86_400)
            #expect(await ServerProbe.mqtt(mqtt, patience: .milliseconds(100), on: group) == nil)
            var xmpp = XMPPClientConfiguration(jid: "a@localhost", password: "b")
            xmpp.host = "127.0.0.1"
            xmpp.port = UInt16(peer.port)
            xmpp.connectTimeout = .seconds(86_400)
            xmpp.requestTimeout = .seconds(86_400)
            #expect(await ServerProbe.xmpp(xmpp, patience: .milliseconds(100), on: group) == nil)
        }
    }

    @Test("is unknown where no server answers")
    func noServer() async throws {
        let port = try ReservedPort()
        let group = MultiThreadedEventLoopGroup.singleton
        let mqtt = MQTTClientConfiguration(host: "127.0.0.1", port: UInt16(port.port))
        #expect(await ServerProbe.mqtt(mqtt, on: group) == nil)
        var xmpp = XMPPClientConfiguration(jid: "a@localhost", password: "b")
        xmpp.host = "127.0.0.1"
        xmpp.port = UInt16(port.port)
        #expect(await ServerProbe.xmpp(xmpp, on: group) == nil)
        xmpp.jid = "@"
        #expect(await ServerProbe.xmpp(xmpp, on: group) == nil)
    }
}
