import Workloads

extension OptionReader {
    mutating func read(_ flags: DecodeStreamFlags, into options: inout DecodeOptions) {
        switch flags.protocol {
        case nil, "mqtt": break
        case "xmpp":
            options.isXMPP = true
            self.refuseMQTT(flags)
        case let name?: self.report("--protocol", "'\(name)' is not one of mqtt, xmpp")
        }
        options.isMix = flags.mix
        if options.isMix {
            options.sizes = options.isXMPP ? DecodeOptions.chatSizes : DecodeOptions.mixSizes
            options.qualities = [0, 1, 2]
        }
        if !flags.size.isEmpty { options.sizes = self.sizes(flags.size) ?? options.sizes }
        options.seed = self.number(flags.seed, "--seed", in: 0...UInt64.max)
        if options.isXMPP { return }
        options.protocolLevel = self.protocolLevel(flags.version.version) ?? options.protocolLevel
        options.topic = self.topic(flags.topic) ?? options.topic
        options.qualities = self.qualities(flags.qos) ?? options.qualities
    }

    /// Stanzas have neither versions nor topics nor QoS.
    private mutating func refuseMQTT(_ flags: DecodeStreamFlags) {
        let given: [(names: [String], isGiven: Bool)] = [
            (["-V", "--mqtt-version"], flags.version.version != nil), (["-t", "--topic"], flags.topic != nil),
            (["-q", "--qos"], flags.qos != nil),
        ]
        for (names, isGiven) in given where isGiven {
            self.report(self.typed(names), "is a matter of MQTT; leave it out, or leave --protocol xmpp out")
        }
    }

    mutating func read(_ flags: DecodeRunFlags, into options: inout DecodeOptions) {
        options.forms = self.words(flags.form, "--form") ?? options.forms
        options.paths = self.words(flags.path, "--path") ?? options.paths
        options.readSize = self.number(flags.readSize, "--read-size", in: 1...65_536) ?? options.readSize
        if let duration = self.duration(flags.duration, "--duration", "-d") {
            options.duration = duration
            if duration == 0 {
                self.report(self.typed(["--duration", "-d"]), "'0' leaves no time to measure; write it like 2s")
            }
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
