import Foundation
import LoadEngine
import NIOCore
import SASL

extension OptionReader {
    /// Behind the credentials, which the methods work with.
    mutating func read(_ flags: AuthFlags, into options: inout MQTTOptions) {
        let isAliyun = flags.auth == "aliyun"
        if !isAliyun {
            for flag in ["--group-id", "--instance-id", "--token-file"] where self.isGiven([flag]) {
                self.report(flag, "is a matter of Alibaba Cloud; add --auth aliyun, or leave it out")
            }
        }
        switch flags.auth {
        case nil, "password": options.auth = .password
        case "aliyun": self.readAliyun(flags, into: &options)
        case let word?:
            guard let hash = SCRAMHash(word: word) else {
                return self.report("--auth", "'\(word)' is not one of aliyun, scram-sha-256, scram-sha-1")
            }
            options.auth = .scram(hash)
            if options.protocolLevel < 5 {
                self.report("--auth", "MQTT 3 has no \(word); leave it out, or use -V 5")
            }
            if options.username == nil || options.password == nil {
                self.report("--auth", "\(word) needs a user and a password; add -u and -P")
            }
            if case .embedded(let arguments) = options.target, !arguments.contains("--users") {
                self.report("--auth", "the embedded broker knows no users; add --broker '--users FILE'")
            }
        }
    }

    private mutating func readAliyun(_ flags: AuthFlags, into options: inout MQTTOptions) {
        guard let group = flags.groupID, !group.isEmpty else {
            return self.report("--auth", "aliyun needs the group that the clients are of; add --group-id GID_...")
        }
        var aliyun = AliyunOptions(groupID: group)
        aliyun.instanceID = flags.instanceID
        if options.username == nil { self.report("--auth", "aliyun needs the access key; add -u") }
        if let path = flags.tokenFile {
            if flags.instanceID == nil { self.report("--token-file", "tokens name their instance; add --instance-id") }
            aliyun.tokens = self.tokens(path)
        } else if options.password == nil {
            self.report("--auth", "aliyun needs the secret key; add -P, or --token-file")
        }
        // SPEC A14: the service closes a connection that says more.
        if self.isGiven(["-k", "--keepalive"]) {
            if !(1...120).contains(options.keepAlive) {
                self.report(self.typed(["-k", "--keepalive"]), "Alibaba Cloud takes 1 to 120 seconds")
            }
        } else {
            options.keepAlive = 60
        }
        options.publisherID = "\(group)@@@\(options.publisherID)"
        options.subscriberID = "\(group)@@@\(options.subscriberID)"
        // The service's own limit of a client id.
        for (id, count) in [(options.publisherID, options.publishers), (options.subscriberID, options.subscribers)]
        where count > 0 && id.replacing("%i", with: "\(options.startNumber + count)").utf8.count > 64 {
            return self.report("--group-id", "Alibaba Cloud takes client ids of 64 characters at most; add --shortids")
        }
        options.auth = .aliyun(aliyun)
    }

    private mutating func tokens(_ path: String) -> String? {
        guard let bytes = self.contents(of: path, flag: "--token-file") else { return nil }
        let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
        let parts = lines.map { $0.split(separator: "|", omittingEmptySubsequences: false) }
        let isWhole = parts.allSatisfy { part in
            part.count.isMultiple(of: 2) && !part.contains { $0.isEmpty }
                && stride(from: 0, to: part.count, by: 2).allSatisfy { ["R", "W", "RW"].contains(part[$0]) }
        }
        guard !parts.isEmpty, isWhole else {
            // Not echoed: it is a secret.
            self.report(
                "--token-file",
                "\(path) holds no tokens; write them like R|TOKEN, W|TOKEN or RW|TOKEN, one a line"
            )
            return nil
        }
        return lines.joined(separator: "|")
    }

    mutating func read(_ flags: DepartureFlags, into options: inout LoadOptions) {
        if let churn = flags.churn {
            let (text, cuts) = self.manner(churn, cutsElse: false)
            if let rate = self.value(text, "--churn", parse: RateText.parse) {
                options.churn = DeparturePlan.Churn(perSecond: rate, cuts: cuts)
            }
        }
        for storm in flags.storm {
            let (text, cuts) = self.manner(storm, cutsElse: true)
            if let storm = self.storm(text, cuts: cuts) { options.storms.append(storm) }
        }
        options.storms.sort { $0.at < $1.at }
    }

    static let churnFilter = "--subscription-churn-filter"

    mutating func read(_ flags: SubscriptionChurnFlags, into options: inout MQTTOptions) {
        guard let text = flags.subscriptionChurn else {
            if flags.subscriptionChurnFilter != nil {
                self.report(Self.churnFilter, "goes with --subscription-churn; add that, or leave it out")
            }
            return
        }
        guard let rate = self.value(text, "--subscription-churn", parse: RateText.parse) else { return }
        var churn = SubscriptionChurnOption(perSecond: rate)
        if let filter = flags.subscriptionChurnFilter {
            churn.filter = filter
            let problem = filter.isEmpty ? "a filter has at least one character" : self.checks.topicFilter(filter)
            if let problem { self.report(Self.churnFilter, "'\(filter)': \(problem)") }
        }
        options.subscriptionChurn = churn
    }

    /// Takes `:cut` or `:disconnect` off the end.
    private func manner(_ text: String, cutsElse: Bool) -> (String, Bool) {
        for (word, cuts) in [(":cut", true), (":disconnect", false)] where text.hasSuffix(word) {
            return (String(text.dropLast(word.count)), cuts)
        }
        return (text, cutsElse)
    }

    private mutating func storm(_ text: String, cuts: Bool) -> DeparturePlan.Storm? {
        let parts = text.split(separator: "@", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2 else {
            self.report("--storm", "'\(text)' is not a storm; write it like 30%@5s, or 30%@5s:disconnect")
            return nil
        }
        guard let share = self.value(parts[0], "--storm", parse: PercentText.parse),
            let at = self.value(
                parts[1],
                "--storm",
                parse: { text throws(QuantityError) in try DurationText.parse(text) }
            )
        else { return nil }
        if share == 0 { self.report("--storm", "0% is nobody; write it like 30%@5s, or leave it out") }
        return DeparturePlan.Storm(share: share, at: .nanoseconds(at), cuts: cuts)
    }

    /// Where clients keep their flows; behind the QoS.
    mutating func read(_ flag: StoreFlag, into options: inout MQTTOptions) {
        guard let text = flag.store, text != "memory" else { return }
        guard text.hasPrefix("sqlite:"), text != "sqlite:" else {
            return self.report("--store", "'\(text)' is not memory or sqlite:PATH")
        }
        options.store = String(text.dropFirst("sqlite:".count))
        if options.kind == .sub, options.highestQoS < 2 {
            self.report("--store", "a subscriber keeps what comes at QoS 2; add -q 2, or leave it out")
        } else if options.highestQoS == 0 {
            self.report("--store", "nothing is kept at QoS 0; add -q 1 or -q 2, or leave it out")
        }
    }

    /// Bytes that stand in the place of CONNECT.
    mutating func read(raw text: String?, into options: inout MQTTOptions) {
        guard let text else { return }
        if text.hasPrefix("@") {
            options.raw = self.contents(of: String(text.dropFirst()), flag: "--raw")
        } else {
            options.raw = HexText.parse(text)
            // Not echoed: a CONNECT holds a password.
            if options.raw == nil {
                self.report(
                    "--raw",
                    "is neither bytes in hexadecimal, such as 'c0 00', nor a file, such as @connect.bin"
                )
            }
        }
        if options.raw == [] { self.report("--raw", "is empty; give at least one byte") }
        self.refuseBesideRaw(options)
    }

    /// What would stand in the CONNECT that is not sent.
    private mutating func refuseBesideRaw(_ options: MQTTOptions) {
        let others =
            [["-u", "--username"], ["-P", "--password"], ["--password-file"], ["--auth"], ["--will-topic"]]
            + Self.willFlags.map { [$0] } + Self.connectPropertyFlags + [
                ["-x", "--session-expiry", "--session-expiry-interval"]
            ]
        for names in others where self.isGiven(names) {
            self.report(self.typed(names), "belongs to CONNECT, and --raw takes its place; leave one of the two out")
        }
        if options.subscriptionChurn != nil {
            self.report(
                "--subscription-churn",
                "clients of --raw have no session to subscribe in; leave one of the two out"
            )
        }
        if options.username != nil, !self.isGiven(["-u", "--username"]) {
            self.report("--url", "its user belongs to CONNECT, and --raw takes its place; leave one of the two out")
        }
    }
}
