package import HostFit
package import LoadEngine
import Report
package import Scenario
import Workloads

/// The costs of a scenario on its hosts, group by group.
extension ScenarioOptions {
    /// The clients of one part of the plan, and their share of its rates.
    package func work(of part: PlanSegment) -> [GroupWork] {
        let parted = self.with(part: part)
        return zip(parted.groups, parted.runGroups()).map { group, own in
            var work: GroupWork
            switch group.work {
            case .mqtt(let options):
                work = options.work(of: part) { stream in self.otherReceivers(of: stream, options, named: group.name) }
            case .xmpp(let options): work = options.work(of: part)
            }
            work.hasTLS = group.work.hasTLS
            work.clients = own.clients
            work.ownBytes = own.clientBytes
            work.connectRate = group.options.connectRate.map { $0 / Double(part.count) }
            return work
        }
    }

    /// Clients of other groups that hear each message of a stream, and the highest QoS that they asked for.
    private func otherReceivers(
        of stream: PublishStream,
        _ publisher: MQTTOptions,
        named name: String
    ) -> (count: Double, qos: UInt8?) {
        self.groups.reduce((0, nil)) { sum, group in
            guard group.name != name || publisher.kind != .pubsub, case .mqtt(let options) = group.work,
                self.bridged || options.targetNames == publisher.targetNames
            else { return sum }
            let count = options.receivers(of: stream, publishers: publisher.publishers)
            return count > 0 ? (sum.count + count, max(sum.qos ?? 0, options.highestQoS)) : sum
        }
    }
}

extension ScenarioOptions {
    /// One part of it.
    package func with(part: PlanSegment) -> ScenarioOptions {
        var scenario = self
        for index in scenario.groups.indices { scenario.groups[index].work.options.segment.part = part }
        return scenario
    }
}

extension MQTTOptions {
    /// `others`: the receivers of a stream in other groups.
    fileprivate func work(of part: PlanSegment, others: (PublishStream) -> (count: Double, qos: UInt8?)) -> GroupWork {
        var work = GroupWork(clients: 0)
        work.keepAlive = self.keepAlive > 0 ? Double(self.keepAlive) : nil
        guard self.operates else { return work }
        work.isClosedLoop = !self.isOpenLoop
        let streams =
            self.streams.isEmpty ? self.qualities.map { self.stream(qos: $0) } : self.streams
        let shares = self.streams.isEmpty ? Double(self.qualities.count) : 1
        work.flows = streams.compactMap { stream in
            let deliveries = self.kind == .pubsub ? self.deliveries : stream.p2p == nil ? 0 : 1
            let other = stream.p2p == nil ? others(stream) : (count: 0, qos: nil)
            var flow = self.with(stream).common.flow(
                qos: stream.qos,
                deliveries: deliveries + other.count,
                share: Double(part.count) * shares
            )
            if self.kind != .pubsub, let qos = other.qos { flow?.deliveredQoS = min(stream.qos, qos) }
            flow?.size = stream.payload.meanSize
            if stream.retain {
                let topics = self.template(stream.topic).variesPerClient ? self.publishers : 1
                flow?.retained = Double(topics) / Double(part.count)
            }
            return flow
        }
        return work
    }

    private func stream(qos: UInt8) -> PublishStream {
        var stream = PublishStream(name: "", of: self)
        stream.qos = qos
        return stream
    }

    /// Clients of this group that hear a message of another's stream.
    ///
    /// A filter with a placeholder is taken to be one client's; a shared one reaches one client.
    fileprivate func receivers(of stream: PublishStream, publishers: Int) -> Double {
        guard self.kind != .pubsub, !self.subscriptions.isEmpty else { return 0 }
        let topic = self.template(stream.topic).filterOfAllClients
        let clients = Double(self.clients)
        let heard = self.subscriptions.map { subscription -> Double in
            let filter = self.template(subscription.filter)
            guard MQTTLoad.overlap(filter.filterOfAllClients, topic) else { return 0 }
            if subscription.filter.hasPrefix("$share/") { return 1 }
            return filter.variesPerClient ? min(1, clients / Double(max(1, publishers))) : clients
        }
        return min(clients, heard.reduce(0, +))
    }
}

extension XMPPOptions {
    fileprivate func work(of part: PlanSegment) -> GroupWork {
        var work = GroupWork(clients: 0)
        work.speech = .xmpp
        guard self.operates else { return work }
        work.isClosedLoop = !self.isOpenLoop
        work.flows = [
            self.common.flow(qos: 0, deliveries: Double(self.deliveries), share: Double(part.count))
        ].compactMap { $0 }
        for place in work.flows.indices {
            work.flows[place].size = self.payload.meanSize
            work.flows[place].isPing = self.kind == .ping
        }
        return work
    }
}

extension LoadOptions {
    /// The messages of all clients, of which this is one share of so many; `nil` in closed loop.
    fileprivate func flow(qos: UInt8, deliveries: Double, share: Double) -> GroupWork.Flow? {
        guard let rate = self.messageRate else { return nil }
        let stretches = self.stretches(rate)
        let seconds = stretches.reduce(0) { $0 + $1.seconds }
        let messages = stretches.reduce(0) { $0 + $1.seconds * ($1.from + $1.to) / 2 }
        let peak = stretches.map { max($0.from, $0.to) }.max() ?? rate
        return GroupWork.Flow(
            peak: peak / share,
            mean: (seconds > 0 ? messages / seconds : rate) / share,
            qos: qos,
            deliveries: deliveries
        )
    }
}
