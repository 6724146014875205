import FaultInjection
import Foundation
import HostFit
import LoadEngine
import Measurement
import MQTTCodec
import NIOCore
import Transport
import Workloads

// Forms of single options.

extension OptionForm<Double> {
    /// A share, such as `40%`.
    static var percent: Self {
        Self("share", fact: { .number($0) }, parse: PercentText.parse).showing { Words.percent($0) }
    }

    /// How many times as long: 1 to 100.
    static var factor: Self {
        Self("n", fact: { .number($0) }) { (text: String, _: Bool) throws(QuantityError) in
            guard let factor = Double(text), (1...100).contains(factor) else {
                throw QuantityError("'\(text)' is no factor from 1 to 100; write it like 2 or 1.5")
            }
            return factor
        }
    }

    /// A rate; on the command line 0 is no limit, as in `emqtt_bench`.
    static var connectRate: Self {
        Self("n/s", schema: .rate, fact: { .number($0) }) { text, isFile throws(QuantityError) in
            !isFile && ["0", "0/s"].contains(text) ? 0 : try RateText.parse(text)
        }
    }

    static var bytesPerSecond: Self {
        Self("size/s", fact: { .number($0) }) { (text: String, _: Bool) throws(QuantityError) in
            let bytes = try? SizeText.parse(text.hasSuffix("/s") ? String(text.dropLast(2)) : text)
            guard let bytes, (1...1_000_000_000_000).contains(bytes) else {
                throw QuantityError("'\(text)' is no rate of bytes; write it like 64KiB/s or 1MB/s")
            }
            return Double(bytes)
        }
    }
}

extension OptionForm<SpreadOption> {
    /// A time, and the share by which it varies: `200ms`, `200ms±50%`, `200ms+-50%`.
    static var spread: Self {
        Self("time", fact: { .text($0.text) }) { (text: String, _: Bool) throws(QuantityError) in
            let parts = text.replacing("+-", with: "±").split(separator: "±", omittingEmptySubsequences: false)
                .map { String($0.trimmingPrefix(" ")).replacing(" ", with: "") }
            guard let time = parts.first, parts.count <= 2 else {
                throw QuantityError("'\(text)' is no time; write it like 200ms or 200ms±50%")
            }
            return SpreadOption(
                time: try DurationText.parse(time),
                share: parts.count == 2 ? try PercentText.parse(parts[1]) : 0
            )
        }.showing { $0.text }
    }
}

extension OptionForm<[String]> {
    /// Literal IP addresses.
    static var addresses: Self {
        Self("address,...", fact: { .list($0.map { .text($0) }) }) { texts, isFile throws(QuantityError) in
            let addresses = texts.flatMap {
                $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
            }
            for address in addresses where !Self.isLiteral(address) {
                throw QuantityError("'\(address)' is not an IP address; write it like 10.0.0.5,10.0.0.6")
            }
            return addresses
        }.with(shape: .list).showing { $0.joined(separator: ",") }
    }

    private static func isLiteral(_ address: String) -> Bool {
        var four = in_addr()
        var six = in6_addr()
        return inet_pton(AF_INET, address, &four) == 1 || inet_pton(AF_INET6, address, &six) == 1
    }

    /// Protocols of ALPN (RFC 7301 §3.1): 1 to 255 bytes each.
    static var protocols: Self {
        let list = Self.list("name,...")
        return Self("name,...", fact: list.fact) { texts, isFile throws(QuantityError) in
            let names = try list.read(texts, isFile)
            if names.allSatisfy({ (1...255).contains($0.utf8.count) }) { return names }
            let text = texts.joined(separator: ",")
            throw QuantityError("'\(text)' is not a list of protocols; write it like mqtt or mqtt,x-amzn-mqtt-ca")
        }.with(shape: .list)
    }
}

extension OptionForm<UInt8> {
    /// The protocol level on the wire of a version as people write it.
    static var protocolLevel: Self {
        Self(
            "version",
            schema: .choice(["3", "3.1", "4", "3.1.1", "5", "5.0"]),
            fact: { .integer(Int64($0)) }
        ) { (text: String) throws(QuantityError) in
            let levels: [String: UInt8] = ["3": 3, "3.1": 3, "4": 4, "3.1.1": 4, "5": 5, "5.0": 5]
            if let level = levels[text] { return level }
            throw QuantityError("'\(text)' is not an MQTT version; it is 3 (3.1), 4 (3.1.1) or 5")
        }.showing { "\($0)" }
    }
}

extension OptionForm<[UInt8]> {
    /// QoS levels, each once.
    static var qualities: Self {
        let shown: @Sendable ([UInt8]) -> String = { $0.map(String.init).joined(separator: ",") }
        return Self("qos,...", fact: { .text(shown($0)) }) { texts, _ throws(QuantityError) in
            let text = texts.joined(separator: ",")
            let levels = text.split(separator: ",", omittingEmptySubsequences: false).map { UInt8($0) ?? .max }
            guard levels.allSatisfy({ $0 <= 2 }), Set(levels).count == levels.count else {
                throw QuantityError("'\(text)' is not QoS 0, 1 or 2, nor a list of them such as 0,1,2 with each once")
            }
            return levels
        }.with(schema: .either(.number(least: 0, most: 2), .pattern("^[0-2](,[0-2]){0,2}$")), shape: .list).showing(
            shown
        )
    }
}

extension OptionForm<Subscription.RetainHandling> {
    /// The number on the wire (MQTT 5 §3.8.3.1).
    static var retainHandling: Self {
        let number = OptionForm<UInt8>.number(0...2)
        return Self("0|1|2", schema: number.schema, fact: { .integer(Int64($0.rawValue)) }) {
            text,
            isFile throws(QuantityError) in
            Subscription.RetainHandling(rawValue: try number.read([text], isFile)) ?? .send
        }.showing { "\($0.rawValue)" }
    }
}

extension OptionForm<MQTTLoad.TopicAlias> {
    static var topicAlias: Self {
        let text: @Sendable (MQTTLoad.TopicAlias) -> String = { alias in
            switch alias {
            case .automatic: "auto"
            case .fixed(let number): "\(number)"
            }
        }
        return Self("n|auto", fact: { .text(text($0)) }) { (text: String, _: Bool) throws(QuantityError) in
            if text == "auto" { return .automatic }
            if let number = UInt16(text), number > 0 { return .fixed(number) }
            throw QuantityError("'\(text)' is not a topic alias; it is 1 to 65535, or auto")
        }.with(schema: .either(.number(least: 1, most: 65_535), .choice(["auto"])), shape: .toggle(bare: "auto"))
            .showing(text)
    }
}

extension OptionForm<[UserProperty]> {
    static var userProperties: Self {
        Self("property", fact: { .list($0.map { .text("\($0.name): \($0.value)") }) }) {
            texts,
            _ throws(QuantityError) in
            var properties: [UserProperty] = []
            for text in texts {
                let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
                guard parts.count == 2, !parts[0].isEmpty else {
                    throw QuantityError("'\(text)' is not a user property; write it like 'name: value'")
                }
                properties.append(UserProperty(String(parts[0]), String(parts[1].drop { $0 == " " })))
            }
            return properties
        }.with(schema: .pattern("^[^:]+:"), shape: .repeated)
    }
}

extension OptionForm<[TransportOptions.Header]> {
    /// RFC 9110 §5.6.2, §5.5: a token, a colon, and no line break.
    static var headers: Self {
        Self("header", fact: { .list($0.map { .text($0.name) }) }) { texts, _ throws(QuantityError) in
            try texts.map(Self.header)
        }.with(schema: .pattern("^[^:]+:"), shape: .repeated)
    }

    private static let tokens = Set("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")

    /// The value is not echoed: it may be a secret.
    private static func header(_ text: String) throws(QuantityError) -> TransportOptions.Header {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, parts[0].allSatisfy(Self.tokens.contains) else {
            throw QuantityError("is not a header; write it like 'Authorization: Bearer abc'")
        }
        guard !parts[1].utf8.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) else {
            throw QuantityError("\(parts[0]) has a line break or another control character in it; take it out")
        }
        let own = ["host", "upgrade", "connection"]
        if own.contains(parts[0].lowercased()) || parts[0].lowercased().hasPrefix("sec-websocket-") {
            throw QuantityError("\(parts[0]) is part of the handshake itself; leave it out")
        }
        return TransportOptions.Header(String(parts[0]), parts[1].trimmingCharacters(in: .whitespaces))
    }
}

extension OptionForm<ClosedRange<TLSProtocolVersion>> {
    static var tlsVersions: Self {
        let versions = OptionSchema.choice(TLSProtocolVersion.allCases.map(\.rawValue))
        let version = "([Tt][Ll][Ss])?[Vv]?1(\\.[0-3])?"
        let ranges = OptionSchema.pattern("^\(version)(-\(version))?$")
        return Self(
            "version",
            schema: .either(versions, ranges),
            fact: { .list([.text($0.lowerBound.rawValue), .text($0.upperBound.rawValue)]) }
        ) { (text: String) throws(QuantityError) in
            let bounds = text.split(separator: "-", omittingEmptySubsequences: false).map {
                try? TLSProtocolVersion(String($0))
            }
            if (1...2).contains(bounds.count), let low = bounds[0], let high = bounds[bounds.count - 1], low <= high {
                return low...high
            }
            throw QuantityError("'\(text)' is not a version of TLS; write it like 1.2, 1.3 or 1.2-1.3")
        }
    }
}

// MARK: - Departures

extension OptionForm<DeparturePlan.Churn> {
    /// `100/s`, or `100/s:cut`.
    static var churn: Self {
        let manners = OptionSchema.pattern("^[0-9.]+(/s)?:(cut|disconnect)$")
        let schema = OptionSchema.either(.rate, manners)
        return Self("n/s", schema: schema, fact: { .number($0.perSecond) }) { (text: String) throws(QuantityError) in
            let (rate, cuts) = Departures.manner(text, cutsElse: false)
            return DeparturePlan.Churn(perSecond: try RateText.parse(rate), cuts: cuts)
        }
    }
}

extension OptionForm<[DeparturePlan.Storm]> {
    /// `30%@5s`, or `30%@5s:disconnect`; in the order of their times.
    static var storms: Self {
        Self("share@time", fact: { .list($0.map { .number($0.share) }) }) { texts, _ throws(QuantityError) in
            try texts.map(Departures.storm).sorted { $0.at < $1.at }
        }.with(schema: .pattern("^[0-9.]+%@[^:@]+(:(cut|disconnect))?$"), shape: .repeated)
    }
}

private enum Departures {
    /// Takes `:cut` or `:disconnect` off the end.
    static func manner(_ text: String, cutsElse: Bool) -> (String, Bool) {
        for (word, cuts) in [(":cut", true), (":disconnect", false)] where text.hasSuffix(word) {
            return (String(text.dropLast(word.count)), cuts)
        }
        return (text, cutsElse)
    }

    static func storm(_ text: String) throws(QuantityError) -> DeparturePlan.Storm {
        let (text, cuts) = self.manner(text, cutsElse: true)
        let parts = text.split(separator: "@", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2 else {
            throw QuantityError("'\(text)' is not a storm; write it like 30%@5s, or 30%@5s:disconnect")
        }
        let share = try PercentText.parse(parts[0])
        let time = try DurationText.parse(parts[1])
        guard share > 0 else { throw QuantityError("0% is no client; write it like 30%@5s, or leave it out") }
        return DeparturePlan.Storm(share: share, at: .nanoseconds(time), cuts: cuts)
    }
}

// MARK: - decode

extension OptionForm<[Int]> {
    private static var largestSize: Int { 16_777_216 }
    private static var mostSizes: Int { 16 }

    static var decodeSizes: Self {
        Self("bytes,...", fact: { .list($0.map { .integer(Int64($0)) }) }) { texts, _ throws(QuantityError) in
            var sizes: [Int] = []
            for text in texts.flatMap({ $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init) }) {
                let size = try SizeText.parse(text)
                guard size <= Self.largestSize else {
                    throw QuantityError(
                        "'\(size)' is too much for a stream in memory; \(Self.largestSize) bytes at most"
                    )
                }
                sizes.append(size)
            }
            guard sizes.count <= Self.mostSizes else {
                throw QuantityError("\(sizes.count) sizes are too many; \(Self.mostSizes) at most")
            }
            return sizes
        }.with(shape: .repeated)
    }
}

extension OptionForm {
    /// A list of words, each once, in the order in which they are measured.
    static func each<Word>(_ unit: String) -> Self
    where Value == [Word], Word: RawRepresentable<String> & CaseIterable & Hashable & Sendable {
        let all = Word.allCases.map(\.rawValue).joined(separator: ", ")
        return Self(unit, fact: { .list($0.map { .text($0.rawValue) }) }) { texts, _ throws(QuantityError) in
            var words: Set<Word> = []
            for part in texts.joined(separator: ",").split(separator: ",", omittingEmptySubsequences: false) {
                guard let word = Word(rawValue: String(part)) else {
                    throw QuantityError("'\(part)' is not one of \(all)")
                }
                words.insert(word)
            }
            return Word.allCases.filter(words.contains)
        }.with(shape: .list).showing { $0.map(\.rawValue).joined(separator: ",") }
    }
}

extension OptionForm<TurnoutOption> {
    /// `99.9%` of the clients, or a number of them.
    static var clients: Self { Self("share|n", fact: { .text("\($0)") }, parse: TurnoutOption.parse) }
}

extension OptionForm<FleetPlan.Node> {
    /// Cores and memory: `4c/8G`; 1 G is 2^30 bytes, as machines are sold.
    static var node: Self {
        Self("cores/memory", fact: { .text("\($0)") }) { (text: String) throws(QuantityError) in
            let parts = text.split(separator: "/", omittingEmptySubsequences: false)
            let units = ["M": 1_048_576.0, "G": 1_073_741_824, "T": 1_099_511_627_776]
            guard parts.count == 2, parts[0].hasSuffix("c"), let unit = parts[1].last.flatMap({ units[String($0)] }),
                let cores = Double(parts[0].dropLast()), let memory = Double(parts[1].dropLast()),
                (0.1...10_000).contains(cores), (0.001...100_000).contains(memory)
            else { throw QuantityError("'\(text)' is no node; write its cores and its memory like 4c/8G") }
            return FleetPlan.Node(cores: cores, memoryBytes: memory * unit)
        }
    }
}

// MARK: - Faults of the broker and the proxy

extension OptionForm {
    static func fault(_ form: FaultForm<Value>) -> Self {
        Self(form.unit, fact: { .text("\($0)") }) { (text: String, _: Bool) throws(QuantityError) in
            do throws(FaultTextError) {
                return try form.read(text)
            } catch {
                throw QuantityError(error.description)
            }
        }
    }
}
