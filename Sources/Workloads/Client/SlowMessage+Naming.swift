package import Measurement
package import NIOCore

extension SlowMessage {
    /// A group of a run: its name, and what its numbers mean.
    package struct Group: Sendable {
        package var name: String?
        package var load: any Workload

        package init(_ name: String?, _ load: any Workload) {
            self.name = name
            self.load = load
        }
    }

    /// A message, whichever end recorded it.
    private struct Key: Hashable {
        var group: String?
        var client: String?
        var sender: UInt32
        var audience: UInt32
        var sequence: UInt64

        init(_ entry: SlowEntry, _ message: SlowMessage) {
            self.group = message.group
            self.client = message.client
            self.sender = entry.sender
            self.audience = entry.audience
            self.sequence = entry.sequence
        }
    }

    /// The slowest messages of a run, with their names.
    ///
    /// Answer and arrival of a message are one entry if both are known here; the slower one gives metric and duration.
    ///
    /// - Parameters:
    ///   - findings: of all event loops.
    ///   - groups: those of the run, by their places.
    ///   - began: the time that seconds count from.
    /// - Returns: the slowest first; `nil` if there are none.
    package static func slowest(
        _ findings: [SlowFinding],
        of groups: [Group],
        since began: NIODeadline
    ) -> [SlowMessage]? {
        var answers: [SlowMessage] = []
        var places: [Key: Int] = [:]
        var arrivals: [(key: Key, message: SlowMessage)] = []
        for finding in findings {
            let message = SlowMessage(finding, groups[finding.group], since: Int64(began.uptimeNanoseconds))
            let key = Key(finding.entry, message)
            switch finding.entry.kind {
            case .answer:
                places[key] = answers.count
                answers.append(message)
            case .arrival: arrivals.append((key, message))
            }
        }
        arrivals.sort { $0.message.isBefore($1.message) }
        var messages: [SlowMessage] = []
        // Of several receivers the slowest one takes the answer along; the others only show its times.
        var joined: Set<Int> = []
        for (key, arrival) in arrivals {
            var message = arrival
            if let place = places[key] {
                let answer = answers[place]
                message.written = message.written ?? answer.written
                message.acknowledged = answer.acknowledged
                if joined.insert(place).inserted, answer.seconds > message.seconds {
                    message.metric = answer.metric
                    message.seconds = answer.seconds
                    message.loopLag = answer.loopLag
                }
            }
            messages.append(message)
        }
        messages += answers.enumerated().filter { !joined.contains($0.offset) }.map(\.element)
        return messages.isEmpty ? nil : messages.slowest
    }

    private init(_ finding: SlowFinding, _ group: Group, since began: Int64) {
        let entry = finding.entry
        func seconds(_ time: Int64) -> Double { Double(time - began) / 1e9 }
        let sender = group.load.sender(entry.sender)
        self.init(
            metric: finding.metric,
            seconds: Double(entry.duration) / 1e9,
            due: seconds(entry.due),
            client: sender?.client
        )
        self.written = entry.written.map(seconds)
        let end = seconds(entry.due + entry.duration)
        switch entry.kind {
        case .answer: self.acknowledged = end
        case .arrival: self.received = end
        }
        self.receiver = entry.receiver.map { group.load.clientID(Int($0)) }
        self.group = sender?.group ?? group.name
        self.stream = finding.labels[Labels.stream]
        self.qos = finding.labels["qos"].flatMap { Int($0) }
        self.loopLag = entry.loopLag.map { Double($0) / 1e9 }
    }
}
