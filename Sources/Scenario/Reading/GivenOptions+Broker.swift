import Foundation
import MQTT
import SASL

// Options of `broker`, which `--broker '...'` has too.
extension GivenOptions {
    package mutating func broker() -> BrokerOptions {
        var options = BrokerOptions()
        self.store(into: &options)
        options.quiet = self[\.quiet] ?? false
        options.isChild = self[\.isChild] ?? false
        if options.isChild {
            options.preSharedKey = options.preSharedKey ?? self.environment[BrokerOptions.keyVariable]
        }
        self.checkListeners(options)
        options.access = self.access()
        options.p2pRoots = self.p2pRoots()
        return options
    }

    private mutating func checkListeners(_ options: BrokerOptions) {
        if let path = options.path, !path.hasPrefix("/") {
            self.refuse(\.brokerPath, "'\(path)' does not begin with /")
        }
        let isSecure = self.isGiven(\.tlsPort) || self.isGiven(\.secureWebSocketPort)
        if isSecure, options.certificateFile == nil, options.preSharedKey == nil {
            let words: OptionWords = "needs \(\.brokerCertificate) and \(\.brokerKey), or \(\.brokerPSK)"
            self.refuse(first: \.tlsPort, \.secureWebSocketPort, because: words)
        }
        if !isSecure {
            self.refuse(with: .tls, because: "is of use with \(\.tlsPort) or \(\.secureWebSocketPort) only")
        }
        if self.isGiven(\.brokerPath), !self.isGiven(\.webSocketPort), !self.isGiven(\.secureWebSocketPort) {
            self.refuse(\.brokerPath, "is of use with \(\.webSocketPort) or \(\.secureWebSocketPort) only")
        }
    }

    /// Options that `--broker '...'` takes: faults, who may connect, and P2P roots.
    private static var embeddedOptions: [OptionSpec] {
        let titles = ["Faults", "Access", "Routing"]
        return titles.flatMap { title in
            OptionTable.sections(of: .broker).first { $0.title == title }?.specs ?? []
        }
    }

    /// Reads the text of `--broker '...'`.
    ///
    /// - Returns: the same as arguments of `clamor broker`.
    mutating func brokerArguments() -> [String] {
        guard let text = self[\.broker] else { return [] }
        let words = text.split(whereSeparator: \.isWhitespace).map(String.init)
        let known = Self.embeddedOptions.flatMap(\.allNames)
        for name in words.map({ String($0.prefix { $0 != "=" }) }) where name.hasPrefix("-") && !known.contains(name) {
            let near = NearestName.question(name, in: known)
            self.refuse(\.broker, "\(name) is no option of the embedded broker; \(near)see clamor broker --help")
            return []
        }
        let line = CommandLineWords(words, Self.embeddedOptions)
        if let problem = Self.problem(of: line, words) {
            self.refuse(\.broker, "\(problem); see clamor broker --help")
            return []
        }
        let texts = Dictionary(grouping: line.options, by: \.spec.id).mapValues { words in
            let all = words.map { $0.value ?? "true" }
            return words[0].spec.shape == .repeated ? all : all.suffix(1)
        }
        var given = GivenOptions(.broker, texts, arguments: words, environment: self.environment)
        _ = given.access()
        _ = given.p2pRoots()
        for problem in given.problems { self.refuse(within: \.broker, problem) }
        return Self.embeddedOptions.flatMap { spec -> [String] in
            guard let found = given.found[spec.id] else { return [] }
            return spec.shape == .flag ? [spec.name] : found.texts.flatMap { [spec.name, $0] }
        }
    }

    /// The message of the argument parser for such a line; `nil` if its grammar is right.
    private static func problem(of line: CommandLineWords, _ words: [String]) -> String? {
        for word in line.options {
            if word.spec.shape == .flag, let value = word.value {
                return "The option '\(word.name)' does not take any value, but '\(value)' was specified."
            }
            if word.spec.shape != .flag, word.value == nil {
                return "Missing value for '\(word.name) <\(word.spec.unit)>'"
            }
        }
        let strays = words.indices.filter { index in !line.options.contains { $0.range.contains(index) } }
        let names = strays.map { "'\(words[$0])'" }.joined(separator: ", ")
        if strays.isEmpty { return nil }
        return strays.count == 1 ? "Unexpected argument \(names)" : "\(strays.count) unexpected arguments: \(names)"
    }

    private mutating func p2pRoots() -> [String] {
        let roots = self[\.p2pRoots] ?? []
        for root in roots where (try? MQTTAlibabaCloud.check(rootTopic: root)) == nil {
            self.refuse(\.p2pRoots, "'\(root)' is not a topic of one level; write it like \(\.p2pRoots, "door")")
        }
        return roots
    }

    // MARK: - Access

    mutating func access() -> BrokerAccessOptions {
        var options = BrokerAccessOptions()
        options.users = self[\.brokerUsers].flatMap { self.brokerUsers($0, areProven: self.isGiven(\.brokerAuth)) }
        options.allowsAnonymous = self[\.allowsAnonymous] ?? false
        if let word = self[\.brokerAuth] {
            options.scram = SCRAMHash(word: word)
            if options.scram == nil { self.refuse(\.brokerAuth, "'\(word)' is not one of scram-sha-256, scram-sha-1") }
        }
        return options
    }

    // `areProven`: by SCRAM, which takes what SASLprep takes (RFC 5802 §5.1).
    private mutating func brokerUsers(_ path: String, areProven: Bool) -> [String: [UInt8]]? {
        guard let bytes = self.regularFile(path) else { return nil }
        var users: [String: [UInt8]] = [:]
        for (number, line) in Self.lines(of: bytes) {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex,
                let name = String(validating: line[..<colon], as: UTF8.self)
            else {
                // Not echoed: it may be a password.
                return self.refused(\.brokerUsers, "line \(number) of \(path) is not NAME:PASSWORD")
            }
            let password = Array(line[(colon + 1)...])
            if areProven, !Self.isProvable(name, password) {
                return self.refused(
                    \.brokerUsers,
                    "line \(number) of \(path) has a name or a password that SCRAM cannot use; change it"
                )
            }
            if users.updateValue(password, forKey: name) != nil {
                return self.refused(
                    \.brokerUsers,
                    "line \(number) of \(path) has the name '\(name)' again; leave one of the two out"
                )
            }
        }
        if users.isEmpty {
            self.refuse(\.brokerUsers, "\(path) holds no users; write them like NAME:PASSWORD, one a line")
        }
        return users
    }

    /// The name goes over the wire as it was prepared, and has to be found again.
    private static func isProvable(_ name: String, _ password: [UInt8]) -> Bool {
        guard let prepared = try? SASLPrep.prepare(name, as: .name), prepared == Array(name.utf8),
            let text = String(validating: password, as: UTF8.self),
            let secret = try? SASLPrep.prepare(text, as: .password)
        else { return false }
        return !secret.isEmpty
    }

    /// A pipe could be read once, and the embedded broker, a process of its own, reads the file again.
    private mutating func regularFile(_ path: String) -> [UInt8]? {
        var isDirectory = ObjCBool(false)
        let attributes = try? FileManager.default.attributesOfItem(
            atPath: URL(filePath: path).resolvingSymlinksInPath().path
        )
        if FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory),
            attributes?[.type] as? FileAttributeType != .typeRegular
        {
            return self.refused(\.brokerUsers, "\(path) is no regular file; write the users into one")
        }
        return self.contents(of: path, for: \.brokerUsers)
    }
}
