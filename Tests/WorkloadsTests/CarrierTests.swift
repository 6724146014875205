import Foundation
import Ledger
import LoadEngine
import MQTTCodec
import Measurement
import NIOCore
import RunResult
import TestSupport
import Testing
import VirtualServers
import Workloads

/// A server that drops, doubles and swaps deliveries to its one subscriber, and keeps a list of what came.
private final class Disturber {
    private var dice: SeededDice
    private var sent: [[UInt8]: Int] = [:]
    private var held: (packet: [UInt8], message: Message)?
    /// The messages that came, in order.
    private(set) var arrivals: [Message] = []
    /// Payloads that are no JSON.
    private(set) var notJSON: [String] = []
    private let isJSON: Bool
    /// Whether it leaves out the properties of what it delivers.
    private let strips: Bool

    struct Message: Hashable {
        var topic: [UInt8]
        /// The number of the message among those of its topic.
        var number: Int
    }

    init(_ seed: UInt64, isJSON: Bool, strips: Bool = false) {
        self.dice = SeededDice(seed: seed)
        self.isJSON = isJSON
        self.strips = strips
    }

    func pass(_ bytes: [UInt8]) -> [UInt8] {
        UnansweredTests.replacing(bytes) { packet in
            guard packet[0] >> 4 == 3 else { return packet }
            let start = 1 + (packet[1...].firstIndex { $0 < 0x80 } ?? 1)
            let topic = Array(packet[(start + 2)..<(start + 2 + Int(packet[start]) << 8 + Int(packet[start + 1]))])
            let message = Message(topic: topic, number: self.sent[topic, default: 0])
            self.sent[topic, default: 0] += 1
            var packet = packet
            if self.isJSON { self.parse(packet) }
            if self.strips { packet = Self.stripped(packet, at: start + 2 + topic.count) }
            // Half of the plans are faultless.
            switch Int.random(in: 0..<20, using: &self.dice) {
            case 0: return []
            case 1:
                self.arrivals += [message, message]
                return packet + packet
            case 2 where self.held == nil:
                self.held = (packet, message)
                return []
            default: break
            }
            self.arrivals.append(message)
            guard let held = self.held else { return packet }
            self.held = nil
            self.arrivals.append(held.message)
            return packet + held.packet
        }
    }

    private func parse(_ packet: [UInt8]) {
        guard let begin = packet.firstIndex(of: UInt8(ascii: "{")),
            (try? JSONSerialization.jsonObject(with: Data(packet[begin...]))) != nil
        else { return self.notJSON.append(String(decoding: packet, as: UTF8.self)) }
    }

    /// QoS 0 and properties below 128 bytes.
    private static func stripped(_ packet: [UInt8], at place: Int) -> [UInt8] {
        let rest = packet[..<place] + [0] + packet[(place + 1 + Int(packet[place]))...]
        return [packet[0], UInt8(rest.count - 2)] + rest[2...]
    }

    /// By the list: what arrived, what arrived again, and what arrived below the highest of its topic.
    var figures: (received: Int, duplicated: Int, reordered: Int) {
        var (seen, highest) = (Set<Message>(), [[UInt8]: Int]())
        var (duplicated, reordered) = (0, 0)
        for message in self.arrivals {
            guard seen.insert(message).inserted else {
                duplicated += 1
                continue
            }
            let top = highest[message.topic, default: -1]
            if message.number < top { reordered += 1 } else { highest[message.topic] = message.number }
        }
        return (seen.count, duplicated, reordered)
    }
}

@Suite("Where messages carry the ledger's header")
struct CarrierTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let carrier: LedgerCarrier
        /// Two streams of each publisher.
        let isAddressed: Bool
        var sizes = 32...200
    }

    static let cases = [
        Case(testDescription: "32 bytes", carrier: .front, isAddressed: false),
        Case(testDescription: "16 bytes", carrier: .short, isAddressed: false, sizes: 16...40),
        Case(testDescription: "20 bytes", carrier: .short, isAddressed: true, sizes: 20...40),
        Case(testDescription: "JSON", carrier: .text, isAddressed: false),
        Case(testDescription: "JSON of two streams", carrier: .text, isAddressed: true),
        Case(testDescription: "user property", carrier: .property, isAddressed: false, sizes: 0...9),
        Case(testDescription: "user property of two streams", carrier: .property, isAddressed: true, sizes: 0...9),
    ]

    static let json = """
        {"n":%s,"at":"%{time iso}","v":%{float -9.5..9.5 2},"id":"%{uuid}","l":"%{ledger}","k":"%{choice a,b}"}
        """

    private func run(_ own: Case, _ qos: QoS, _ seed: UInt64) throws -> MQTTVirtualRun {
        let parts = MessageParts(ledgerSize: ShortHeader.textSize(isAddressed: own.isAddressed))
        let streams = (0..<(own.isAddressed ? 2 : 1)).map { number in
            let payload: LoadPayload =
                own.carrier == .text
                ? .message(Template(parsing: Array(Self.json.utf8), message: parts)) : .generated(sizes: own.sizes)
            var stream = MQTTLoad.Stream(
                topic: Template(parsing: number == 0 ? "t/%i" : "t/s%i"),
                payload: payload,
                qualities: [qos]
            )
            stream.name = own.isAddressed ? "s\(number)" : ""
            stream.carrier = own.carrier
            return (stream: stream, rate: 30.0)
        }
        return try MQTTVirtualRun(
            .init(
                publishers: 2,
                subscribers: 1,
                topology: .fanIn,
                qualities: [qos],
                rate: 60,
                duration: .seconds(1),
                streams: streams,
                seed: seed
            )
        )
    }

    /// 72 seeds for each of seven carriers and two levels are over a thousand plans.
    @Test("the ledger is equal to the list of what came", arguments: Self.cases, [QoS.atMostOnce, .atLeastOnce])
    func equal(_ own: Case, _ qos: QoS) throws {
        for seed: UInt64 in 1...72 {
            let disturber = Disturber(seed, isJSON: own.carrier == .text)
            let run = try self.run(own, qos, seed)
            run.network.rewrite = { disturber.pass($0) }
            run.perform()
            let (result, came) = (run.reconciliation, disturber.figures)
            func sum(_ figure: (Reconciliation.Row) -> UInt64?) -> Int {
                Int(result.rows.reduce(0) { $0 + (figure($1) ?? 0) })
            }
            #expect(result.problems.isEmpty, "seed \(seed)")
            #expect(sum(\.received) == came.received && came.received > 0, "seed \(seed)")
            #expect(sum(\.duplicated) == came.duplicated, "seed \(seed)")
            #expect(sum(\.reordered) == came.reordered, "seed \(seed)")
            #expect(sum(\.expected) == (own.isAddressed ? 60 : 30), "seed \(seed)")
            #expect(sum(\.received) + sum(\.lost) + sum(\.outstanding) == sum(\.expected), "seed \(seed)")
            #expect(disturber.notJSON == [], "seed \(seed)")
        }
    }

    @Test("a server that leaves properties out makes a stream unfollowed, and no loss")
    func stripped() throws {
        let disturber = Disturber(1, isJSON: false, strips: true)
        let run = try self.run(Self.cases[5], .atMostOnce, 1)
        run.network.rewrite = { disturber.pass($0) }
        run.perform()
        #expect(!disturber.arrivals.isEmpty)
        #expect(run.reconciliation.rows.isEmpty && run.reconciliation.problems.isEmpty)
        let ledger = run.workload.account([run.result], delivery: run.delivery, record: run.record).ledger
        #expect(!ledger.on && ledger.reason == "messages arrived without their user property 'clamor'")
    }
}
