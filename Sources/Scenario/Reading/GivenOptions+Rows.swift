import Crypto
import DataEncodings
import Foundation
import Measurement
import Report
import Workloads

// A table with a row for each client, whose cells stand where texts name their columns.
extension GivenOptions {
    /// CSV with the columns' names in its first line (RFC 4180 §2; a cell stays on its line).
    mutating func readRows(into options: inout MQTTOptions) {
        guard let path = self[\.rows], let bytes = self.contents(of: path, for: \.rows) else { return }
        guard bytes.count <= RowTable.mostBytes else {
            return self.refuse(\.rows, "\(path) is over 4 GiB; use a part of it")
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            return self.refuse(\.rows, "\(path) is not text in UTF-8; save it as that")
        }
        var columns: [String] = []
        var cells: [[UInt8]] = []
        for (index, line) in text.utf8.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
            var line = Substring(line.last == 0x0D ? line.dropLast() : line)
            // A byte order mark.
            if index == 0, line.unicodeScalars.first == "\u{FEFF}" { line.unicodeScalars.removeFirst() }
            if line.isEmpty, index > 0 { continue }
            guard let row = CSV.cells(of: line) else {
                return self.refuse(\.rows, "\(path):\(index + 1): a quote is left open; a cell ends on its line")
            }
            if index == 0 {
                if let problem = Self.problem(ofColumns: row) { return self.refuse(\.rows, "\(path): \(problem)") }
                columns = row
            } else if row.count != columns.count {
                return self.refuse(
                    \.rows,
                    "\(path):\(index + 1): \(Words.count(row.count, "cell")) for \(Words.count(columns.count, "column")); write each row like the first line"
                )
            } else {
                cells += row.map { Array($0.utf8) }
            }
        }
        guard !cells.isEmpty else {
            return self.refuse(\.rows, "\(path) has no rows; its first line names the columns, one row a line follows")
        }
        options.rows = RowTable(columns: columns, cells: cells, digest: SHA256.hash(data: bytes).hex)
    }

    private static func problem(ofColumns names: [String]) -> String? {
        if names.contains("") { return "a column has no name; its first line names all of them, such as id,site" }
        if let wrong = names.first(where: { $0.contains("}") || $0.contains("{") }) {
            return "the column '\(wrong)' has a { or } in its name, which %{column} has too; call it something else"
        }
        if names.contains("ledger") {
            return "a column is called ledger, and %{ledger} is the ledger's header; call it something else"
        }
        let double = names.indices.first { names[..<$0].contains(names[$0]) }
        return double.map { "two columns are called '\(names[$0])'; call one of them something else" }
    }

    /// Behind all texts that may name a column.
    mutating func checkRows(_ options: MQTTOptions) {
        guard let rows = options.rows else { return }
        var texts: [(spec: OptionSpec, text: String, index: Int?)] = [
            (OptionTable[\.topic], options.topic, nil),
            (OptionTable[\.responseTopic], options.responseTopic ?? "", nil),
            (OptionTable[\.willTopic], options.will?.topic ?? "", nil),
            (OptionTable[\.willMessage], String(decoding: options.will?.message ?? [], as: UTF8.self), nil),
            (OptionTable[\.username], options.username ?? "", nil),
            (OptionTable[\.password], options.password ?? "", nil),
            (self.isGiven(\.clientID) ? OptionTable[\.clientID] : OptionTable[\.prefix], options.publisherID, nil),
            (OptionTable[\.subscriptionChurnFilter], options.subscriptionChurn?.filter ?? "", nil),
            (OptionTable[\.message], options.payload.text, nil),
        ]
        for (index, subscription) in options.subscriptions.enumerated() {
            texts.append((OptionTable[\.filters], subscription.filter, index))
        }
        for (index, stream) in options.streams.enumerated() {
            texts.append((OptionTable[\.topic], stream.topic, index))
            texts.append((OptionTable[\.responseTopic], stream.responseTopic ?? "", index))
            texts.append((OptionTable[\.message], stream.payload.text, index))
        }
        var isNamed = false
        let before = self.problems.count
        for (spec, text, index) in texts {
            for name in Template.names(in: text) {
                let isMessage = spec.id == OptionTable[\.message].id
                if isMessage, !rows.columns.contains(name), Template.isVariable(name) { continue }
                isNamed = true
                if !rows.columns.contains(name) {
                    let near = NearestName.of(name, in: rows.columns).map { "did you mean %{\($0)}? " } ?? ""
                    let known = rows.columns.joined(separator: ", ")
                    self.refuse(spec, "%{\(name)} is no column of \(\.rows); \(near)here are \(known)", at: index)
                }
            }
        }
        guard isNamed else {
            return self.refuse(
                \.rows,
                "nothing names a column of it; write %{\(rows.columns[0])} where its cells belong"
            )
        }
        guard self.problems.count == before else { return }
        self.checkEachRow(rows, options)
        if self.problems.count == before { self.checkWhoHears(options) }
    }

    /// A ledger knows who hears whom by the topology alone: no cell may make it otherwise.
    private mutating func checkWhoHears(_ options: MQTTOptions) {
        guard options.kind == .pubsub, options.streams.isEmpty else { return }
        let load = options.load(run: 0, seed: 0)
        let isPair = load.topology.readsOnePublisher
        let all = load.topic.filterOfAllClients
        var random = SplitMix64(seed: 0)
        var filters: [String] = []
        for number in 0..<options.publishers {
            let values = load.values(of: number)
            let filter = isPair ? load.topic.filter(ofClient: values) : all
            if isPair { filters.append(filter) }
            let topic = load.topic.rendered(values, random: &random)
            // [MQTT-4.7.1-3] a + is one level; [MQTT-4.7.2-1] and none that begins with $.
            let isHidden = filter.utf8.first == ASCII.plus && topic.first == ASCII.dollar
            let levels = topic.count { $0 == ASCII.slash }
            guard !isHidden, levels == filter.utf8.count(where: { $0 == ASCII.slash }) else {
                let row = load.rows?.row(ofClient: load.firstNumber + number) ?? 0
                let made = String(decoding: topic, as: UTF8.self)
                return self.refuse(
                    \.topic,
                    "row \(row + 1) of \(\.rows) makes '\(made)' of it, which '\(filter)' does not hear; a cell in it has no / and does not begin with $"
                )
            }
        }
        if isPair { self.checkWriters(of: filters, first: load.firstNumber) }
    }

    private enum ASCII {
        static let slash = UInt8(ascii: "/")
        static let plus = UInt8(ascii: "+")
        static let dollar = UInt8(ascii: "$")
    }

    /// In pairs either every publisher has a topic of its own, or all have one.
    private mutating func checkWriters(of topics: [String], first: Int) {
        // By their bytes, as a server tells them apart.
        var writers: [[UInt8]: Int] = [:]
        var shared: (topic: String, one: Int, other: Int)?
        for (index, topic) in topics.enumerated() {
            let bytes = Array(topic.utf8)
            if let one = writers[bytes] { shared = shared ?? (topic, one, index) }
            writers[bytes] = writers[bytes] ?? index
        }
        guard let shared, writers.count > 1 else { return }
        self.refuse(
            \.topic,
            "clients \(first + shared.one) and \(first + shared.other) would write to '\(shared.topic)', and the subscribers of both would hear both; put %i into it"
        )
    }

    /// Checks the texts with the values of each row that a client has.
    private mutating func checkEachRow(_ rows: RowTable, _ options: MQTTOptions) {
        let first = options.startNumber + 1
        let clients = max(options.publishers, options.subscribers)
        let numbers = first..<first + min(clients, rows.count)
        let streams = options.streams.flatMap { stream in
            [(OptionTable[\.topic], stream.topic), (OptionTable[\.responseTopic], stream.responseTopic)]
        }
        for (spec, text) in [
            (OptionTable[\.topic], options.topic), (OptionTable[\.responseTopic], options.responseTopic),
            (OptionTable[\.willTopic], options.will?.topic),
        ] + streams {
            self.check(spec, text, options, numbers) { topic in
                if topic.isEmpty { return "a topic has at least one character" }
                if topic.contains(where: { $0 == "+" || $0 == "#" }) { return "a topic to publish to has no wildcard" }
                return TextCheck.topicName(topic)
            }
        }
        let filters = options.subscriptions.map { (OptionTable[\.filters], $0.filter) }
        let churn = [(OptionTable[\.subscriptionChurnFilter], options.subscriptionChurn?.filter ?? "")]
        for (spec, filter) in filters + churn {
            self.check(spec, filter, options, numbers, problem: TextCheck.topicFilter)
        }
        // [MQTT-1.5.4]: the length of a string has two bytes.
        let longest = 65_535
        for (spec, text) in [(OptionTable[\.username], options.username), (OptionTable[\.password], options.password)] {
            self.check(spec, text, options, numbers, isShown: false) { text in
                text.utf8.count > longest ? "MQTT takes \(longest) bytes at most" : nil
            }
        }
        var ids: Set<[UInt8]> = []
        self.check(OptionTable[\.clientID], options.publisherID, options, first..<first + clients) { id in
            if id.utf8.count > longest { return "MQTT takes \(longest) bytes at most" }
            let isNew = ids.insert(Array(id.utf8)).inserted
            return isNew ? nil : "another client has that id too; put %i into it, or another column"
        }
    }

    /// Reports the first row that makes something wrong of a text.
    private mutating func check(
        _ spec: OptionSpec,
        _ text: String?,
        _ options: MQTTOptions,
        _ numbers: Range<Int>,
        isShown: Bool = true,
        problem: (String) -> String?
    ) {
        guard let text, let rows = options.rows else { return }
        let template = options.template(text)
        guard !template.columns.isEmpty else { return }
        var random = SplitMix64(seed: 0)
        for number in numbers {
            let values = PlaceholderValues(clientNumber: number, rows: rows)
            let made = String(decoding: template.rendered(values, random: &random), as: UTF8.self)
            if let problem = problem(made) {
                let shown = isShown ? "'\(made)'" : "something"
                return self.refuse(
                    spec,
                    "row \(rows.row(ofClient: number) + 1) of \(\.rows) makes \(shown) of it: \(problem)"
                )
            }
        }
    }
}
