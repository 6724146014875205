import Workloads

extension OptionReader {
    mutating func read(_ flags: DecodeStreamFlags, into options: inout DecodeOptions) {
        if let name = flags.protocol, name != "mqtt" {
            self.report("--protocol", name == "xmpp" ? "xmpp is not in this build" : "'\(name)' is not mqtt")
        }
        options.protocolLevel = self.protocolLevel(flags.version) ?? options.protocolLevel
        options.isMix = flags.mix
        if options.isMix {
            options.sizes = DecodeOptions.mixSizes
            options.qualities = [0, 1, 2]
        }
        if !flags.size.isEmpty { options.sizes = self.sizes(flags.size) ?? options.sizes }
        options.topic = self.topic(flags.topic) ?? options.topic
        options.qualities = self.qualities(flags.qos) ?? options.qualities
        options.seed = self.number(flags.seed, "--seed", in: 0...UInt64.max)
    }

    mutating func read(_ flags: DecodeRunFlags, into options: inout DecodeOptions) {
        options.forms = self.words(flags.form, "--form") ?? options.forms
        options.paths = self.words(flags.path, "--path") ?? options.paths
        options.readSize = self.number(flags.readSize, "--read-size", in: 1...65_536) ?? options.readSize
        if let duration = self.duration(flags.duration, "--duration") {
            options.duration = duration
            if duration == 0 { self.report("--duration", "'0' leaves no time to measure; write it like 2s") }
        }
        switch flags.sink {
        case nil, "view": options.copies = false
        case "copy": options.copies = true
        case let word?: self.report("--sink", "'\(word)' is not one of view, copy")
        }
        options.isAllocationPass = flags.isAllocationPass
    }

    private static let largestSize = 16_777_216
    private static let mostSizes = 16

    private mutating func sizes(_ texts: [String]) -> [Int]? {
        let flag = self.typed(["-s", "--size", "--payload-size"])
        let parts = texts.flatMap { $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init) }
        let sizes = parts.compactMap { self.value($0, "-s", "--size", "--payload-size", parse: SizeText.parse) }
        guard sizes.count == parts.count else { return nil }
        if let size = sizes.first(where: { $0 > Self.largestSize }) {
            self.report(flag, "'\(size)' is too much for a stream in memory; \(Self.largestSize) bytes at most")
            return nil
        }
        if sizes.count > Self.mostSizes {
            self.report(flag, "\(sizes.count) sizes are too many; \(Self.mostSizes) at most")
            return nil
        }
        return sizes
    }

    /// A list of words, each once, in the order in which they are measured.
    private mutating func words<Word: RawRepresentable<String> & CaseIterable & Hashable>(
        _ text: String?,
        _ flag: String
    ) -> [Word]? {
        guard let text else { return nil }
        var words: Set<Word> = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let word = Word(rawValue: String(part)) else {
                let all = Word.allCases.map(\.rawValue).joined(separator: ", ")
                self.report(flag, "'\(part)' is not one of \(all)")
                return nil
            }
            words.insert(word)
        }
        return Word.allCases.filter(words.contains)
    }
}
