import ArgumentParser
import EmbeddedBroker
import Foundation
import MQTT
import SASL

// Options of `broker`, which `--broker '...'` has too.
extension GivenOptions {
    mutating func broker() -> BrokerOptions {
        var options = BrokerOptions()
        self.store(into: &options)
        options.host = self[\.listenHost] ?? options.host
        options.quiet = self[\.quiet] ?? false
        options.isChild = self[\.isChild] ?? false
        if options.isChild {
            options.preSharedKey = options.preSharedKey ?? self.environment[BrokerOptions.keyVariable]
        }
        self.checkListeners(options)
        options.access = self.access()
        options.p2pRoots = self.p2pRoots()
        options.faults = self.faults().plan
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

    /// Options in `--broker '...'` besides the faults.
    private static var serviceOptions: [OptionSpec] {
        OptionTable.specs(\.brokerUsers, \.allowsAnonymous, \.brokerAuth, \.p2pRoots)
    }

    private static var faultOptions: [OptionSpec] {
        OptionTable.specs(
            \.drop,
            \.duplicate,
            \.reorder,
            \.delay,
            \.delayEvery,
            \.stall,
            \.disconnectEvery,
            \.brokerMaxRate,
            \.fragment,
            \.refuseCode
        )
    }

    /// Reads the text of `--broker '...'`: faults, who may connect, and P2P roots.
    ///
    /// - Returns: the same as arguments of `clamor broker`.
    mutating func brokerArguments() -> [String] {
        guard let text = self[\.broker] else { return [] }
        let words = text.split(whereSeparator: \.isWhitespace).map(String.init)
        let known = (Self.faultOptions + Self.serviceOptions).flatMap(\.allNames)
        for name in words.map({ String($0.prefix { $0 != "=" }) }) where name.hasPrefix("-") && !known.contains(name) {
            let near = NearestName.question(name, in: known)
            self.refuse(
                \.broker,
                "\(name) is no option of the embedded broker; \(near)see clamor broker --help"
            )
            return []
        }
        do {
            var given = try CommandOptions<BrokerCommand>.parse(words)
                .given(words, environment: self.environment, checks: self.checks)
            _ = given.access()
            _ = given.p2pRoots()
            let faults = given.faults().arguments
            for problem in given.problems { self.refuse(within: \.broker, problem) }
            return faults
                + Self.serviceOptions.flatMap { spec -> [String] in
                    guard let found = given.found[spec.id] else { return [] }
                    return spec.shape == .flag ? [spec.name] : [spec.name, found.texts.last ?? ""]
                }
        } catch {
            let message = CommandOptions<BrokerCommand>.message(for: error).split(separator: "\n").first
            self.refuse(\.broker, "\(message ?? "is not a list of flags"); see clamor broker --help")
            return []
        }
    }

    /// Reads the faults, and lists them as arguments.
    private mutating func faults() -> (plan: FaultPlan, arguments: [String]) {
        let given = Self.faultOptions.compactMap { spec in
            self.found[spec.id].map { (spec: spec, value: $0.texts.last ?? "") }
        }
        let (plan, errors) = FaultPlan.read(given.map { (Self.fault($0.spec), $0.value) })
        for error in errors {
            guard let spec = Self.faultOptions.first(where: { Self.fault($0) == error.name }) else { continue }
            self.refuse(spec, OptionWords(error.problem))
        }
        return (plan, given.flatMap { [$0.spec.name, $0.value] })
    }

    /// The name of a fault is that of its option without the dashes.
    private static func fault(_ spec: OptionSpec) -> String { String(spec.name.drop { $0 == "-" }) }

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
            if options.allowsAnonymous {
                self.refuse(
                    \.allowsAnonymous,
                    "\(\.brokerAuth) admits no client without a user; leave one of the two out"
                )
            }
        }
        if !self.isGiven(\.brokerUsers) {
            if options.allowsAnonymous {
                self.refuse(\.allowsAnonymous, "has no effect without \(\.brokerUsers); add that, or leave it out")
            }
            self.refuse(given: \.brokerAuth, because: "is about users, and there are none; add \(\.brokerUsers)")
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
                self.refuse(\.brokerUsers, "line \(number) of \(path) is not NAME:PASSWORD")
                return nil
            }
            let password = Array(line[(colon + 1)...])
            if areProven, !Self.isProvable(name, password) {
                self.refuse(
                    \.brokerUsers,
                    "line \(number) of \(path) has a name or a password that SCRAM cannot use; change it"
                )
                return nil
            }
            if users.updateValue(password, forKey: name) != nil {
                self.refuse(
                    \.brokerUsers,
                    "line \(number) of \(path) has the name '\(name)' again; leave one of the two out"
                )
                return nil
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
            self.refuse(\.brokerUsers, "\(path) is no regular file; write the users into one")
            return nil
        }
        return self.contents(of: path, for: \.brokerUsers)
    }
}
