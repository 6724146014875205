extension Coordinator {
    mutating func join(_ hello: SegmentHello, _ address: Address, _ now: Now) -> [Action] {
        if let known = self.members[address.index], known.address == address {
            // A message at QoS 1 may come twice.
            return [.tell(.welcome(self.terms.welcome), address)]
        }
        let wrong = self.refusal(hello, address)
        if let reason = wrong ?? self.occupant(of: address) {
            let name = address.isWatch ? "a server watch" : "segment \(hello.segment)/\(hello.segments)"
            let line = "\(name) (\(hello.host)) is refused: \(reason)"
            let isNew = self.shows("\(line) \(address.instance)")
            // The process that is there may be lost without being missed yet.
            let order = wrong == nil ? SegmentOrder.taken(reason) : .refused(reason)
            return (isNew ? [.warn(line)] : []) + [.tell(order, address)]
        }
        var actions: [Action] = []
        let isAgain = self.members[address.index] != nil
        self.members[address.index] = Member(address: address, host: hello.host, heard: now.uptime)
        self.lost[address.index] = nil
        self.conductor.notReady(address.index)
        guard !address.isWatch else {
            let servers = (hello.watched ?? []).joined(separator: "; ")
            return [
                .say("a server watch (\(hello.host)) has joined: \(servers)"),
                .tell(.welcome(self.terms.welcome), address),
            ]
        }
        let processes = hello.processes > 1 ? ", \(hello.processes) processes" : ""
        let again = isAgain ? " again" : ""
        actions.append(
            .say(
                "segment \(hello.segment)/\(hello.segments) (\(hello.host)\(processes)) has joined\(again); "
                    + "\(self.members.count { !$0.value.address.isWatch }) of \(self.terms.segments) are there"
            )
        )
        return actions + [.tell(.welcome(self.terms.welcome), address)]
    }

    /// Another process that is that segment.
    private func occupant(of address: Address) -> String? {
        guard let known = self.members[address.index], !known.isLost else { return nil }
        return "segment \(address.index + 1) is there already, on \(known.host); give each host its own index"
    }

    /// Whether a line of a segment is shown: once, and no more than 1,000 of them in a run.
    mutating func shows(_ line: String) -> Bool { self.told.count < 1_000 && self.told.insert(line).inserted }

    /// The reason why a segment does not belong to the run.
    private func refusal(_ hello: SegmentHello, _ address: Address) -> String? {
        if !hello.run.isEmpty, !self.terms.run.isEmpty, hello.run != self.terms.run {
            return "it belongs to the run '\(hello.run)', and this is '\(self.terms.run)'; set CLAMOR_RUN alike"
        }
        if hello.version != self.terms.version {
            return "it is clamor \(hello.version), and the coordinator \(self.terms.version); install one version"
        }
        if self.stop != nil || self.failure != nil || self.isLeaving { return "the run is being ended" }
        // It may come and go at any time.
        if address.isWatch { return nil }
        if hello.segments != self.terms.segments {
            return "it is one of \(hello.segments) segments, and the run has \(self.terms.segments)"
        }
        guard (1...self.terms.segments).contains(hello.segment), address.index == hello.segment - 1 else {
            return "there is no segment \(hello.segment) of \(self.terms.segments)"
        }
        if hello.plan != self.terms.plan {
            return "its file has another plan; give all hosts the same FILE and the same options"
        }
        return self.hasBegun ? "the run has begun; a segment joins before the begin, and not after" : nil
    }
}
