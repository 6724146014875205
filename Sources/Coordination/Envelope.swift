import Foundation
import LoadEngine
import Measurement

/// A message as JSON: the sender or the receiver by its instance, a type, and the fields of that type.
struct Envelope: Codable {
    /// A process of a segment, drawn at random: it distinguishes two with the same index.
    var instance: String
    var type: String
    /// The place among all orders, since an order at QoS 1 may come twice; absent where that does not matter.
    var number: UInt64?
    var hello: SegmentHello?
    var welcome: SegmentWelcome?
    var ending: SegmentEnding?
    var interval: TimelineInterval?
    var group: Int?
    var expected: Int64?
    var received: Int64?
    var uncertain: Int64?
    var sent: Int64?
    var answered: Int64?
    var at: Int64?
    var text: String?
    var offset: Int64?

    private init(_ type: String, _ instance: String) {
        self.type = type
        self.instance = instance
    }

    init(_ report: SegmentReport, from instance: String) {
        switch report {
        case .hello(let hello):
            self.init("hello", instance)
            self.hello = hello
        case .ready: self.init("ready", instance)
        case .settled: self.init("settled", instance)
        case .interval(let interval):
            self.init("interval", instance)
            self.interval = interval
        case .balance(let balance, let group):
            self.init("balance", instance)
            self.group = group
            (self.expected, self.received, self.uncertain) = (balance.expected, balance.received, balance.uncertain)
        case .line(let text):
            self.init("line", instance)
            self.text = text
        case .echo(let sent):
            self.init("echo", instance)
            self.sent = sent
        case .ended(let ending):
            self.init("ended", instance)
            self.ending = ending
        case .lost: self.init("lost", instance)
        }
    }

    init(_ order: SegmentOrder, to instance: String) {
        switch order {
        case .welcome(let welcome):
            self.init("welcome", instance)
            self.welcome = welcome
        case .refused(let words):
            self.init("refused", instance)
            self.text = words
        case .taken(let words):
            self.init("taken", instance)
            self.text = words
        case .start(let time):
            self.init("start", instance)
            self.at = time
        case .load(let time):
            self.init("load", instance)
            self.at = time
        case .complete(let group):
            self.init("complete", instance)
            self.group = group
        case .stop(.ordered): self.init("stop", instance)
        case .stop(.lost): self.init("stop-lost", instance)
        case .stop(.threshold(let expression)):
            self.init("stop", instance)
            self.text = expression
        case .echo(let sent, let received, let answered):
            self.init("echo", instance)
            (self.sent, self.received, self.answered) = (sent, received, answered)
        case .want(let file, let offset):
            self.init("want", instance)
            (self.text, self.offset) = (file, offset)
        case .done: self.init("done", instance)
        }
    }

    /// `nil` for another type, or without its fields.
    var report: SegmentReport? {
        switch self.type {
        case "hello": self.hello.map { .hello($0) }
        case "ready": .ready
        case "settled": .settled
        case "interval": self.interval.map { .interval($0) }
        case "balance":
            if let group, let expected, let received, let uncertain {
                .balance(
                    DeliveryBalance(expected: expected, received: received, uncertain: uncertain),
                    group: group
                )
            } else {
                nil
            }
        case "line": self.text.map { .line($0) }
        case "echo": self.sent.map { .echo(sent: $0) }
        case "ended": self.ending.map { .ended($0) }
        case "lost": .lost
        default: nil
        }
    }

    var order: SegmentOrder? {
        switch self.type {
        case "welcome": self.welcome.map { .welcome($0) }
        case "refused": self.text.map { .refused($0) }
        case "taken": self.text.map { .taken($0) }
        case "start": self.at.map { .start(at: $0) }
        case "load": self.at.map { .load(at: $0) }
        case "complete": self.group.map { .complete(group: $0) }
        case "stop-lost": .stop(.lost)
        case "stop": .stop(self.text.map { .threshold($0) } ?? .ordered)
        case "echo":
            if let sent, let received, let answered {
                .echo(sent: sent, received: received, answered: answered)
            } else {
                nil
            }
        case "want":
            if let text, let offset { .want(file: text, offset: offset) } else { nil }
        case "done": .done
        default: nil
        }
    }

    var bytes: [UInt8] { (try? JSONEncoder().encode(self)).map { Array($0) } ?? [] }

    init?(_ bytes: [UInt8]) {
        guard let envelope = try? JSONDecoder().decode(Envelope.self, from: Data(bytes)) else { return nil }
        self = envelope
    }
}
