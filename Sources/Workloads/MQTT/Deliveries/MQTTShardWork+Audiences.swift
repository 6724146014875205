import Ledger
package import LoadEngine
import LoopContext
import MQTT
import MQTTCodec
import NIOCore

/// The members of a share group, as far as the servers know.
struct ShareLife {
    var members = 0
    /// Times that the group had its first member.
    var lives: UInt64 = 0
}

/// A message of a write, for publishers with several audiences.
struct WrittenMessage {
    var row: Int
    var sequence: UInt64
    var stream: Int
    var qos: QoS
}

// The loop's clients as the ledger's publishers.
extension MQTTShardWork {
    /// Enters the clients that publish, and finds the audience of each fixed topic.
    func addPublishers() {
        guard self.load.publishes else { return }
        // Their rows number the messages of each stream, with a ledger or without.
        if self.hasManyAudiences {
            for _ in 0..<self.places.operators * self.load.streams.count { _ = self.published.pointee.addPublisher() }
        } else if self.load.hasLedger, self.deliveries.hasLedger {
            for place in 0..<self.places.operators {
                let client = self.number(place)
                _ = self.writer.pointee.begin(client, qos: self.clients[place].own.qos, message: 0, now: 0)
                let topic = self.writer.pointee.topic
                let members = self.members(client, topic, byProperty: self.load.stream.carrier == .property)
                self.clients[place].own.audience = self.audiences.pointee.number(of: members)
            }
        }
    }

    /// The audience of a topic that may differ from the publisher's last one; none for messages without a header.
    func audience(_ place: Int, of writer: UnsafePointer<MessageWriter>) -> UInt32 {
        guard writer.pointee.hasHeader, self.deliveries.hasLedger else { return 0 }
        let topic = writer.pointee.topic
        let client = self.number(place)
        let byProperty = writer.pointee.carrier == .property
        let cache = self.load.server(of: client) * 2 + (byProperty ? 1 : 0)
        if let known = self.topics[cache][topic] { return known }
        let audience = self.audiences.pointee.number(of: self.members(client, topic, byProperty: byProperty))
        if self.topics[cache].count < Self.mostTopics { self.topics[cache][topic] = audience }
        return audience
    }

    private func members(_ client: Int, _ topic: [UInt8], byProperty: Bool) -> [AudienceMember] {
        self.deliveries.members(group: self.group, client: client, topic: topic[...], byProperty: byProperty)
    }

    /// Topics whose audience is remembered, in each cache; further ones are looked up for each message.
    private static var mostTopics: Int { 65_536 }

    /// The receivers of one message, by its audience's number: one for each that a copy is due to.
    func copies(_ place: Int, _ audience: UInt32) -> Int64 {
        let members = self.audiences.pointee[audience]
        guard self.deliveries.hasNoLocal else { return Int64(members.count) }
        let own = self.deliveries.receiver(group: self.group, client: self.number(place))
        return Int64(members.count { $0.copies(from: own) > 0 })
    }

    // MARK: - Fates

    /// A message in flight, as the ledger knows it.
    struct Flight {
        var stream: Int
        /// The publisher's number of the message, by which it can be made again.
        var number: UInt64
        /// The row and the sequence number in it; the row of a publisher with one audience is its place.
        var row: Int
        var sequence: UInt64
    }

    func flight(_ place: Int, _ publish: InFlightPublish) -> Flight {
        guard self.hasManyAudiences else {
            return Flight(stream: 0, number: publish.sequence, row: place, sequence: publish.sequence)
        }
        let parts = self.published.pointee.parts(ofFlight: publish.sequence)
        let stream = self.published.pointee.publisher(ofRow: parts.row) % self.load.streams.count
        return Flight(stream: stream, number: parts.number, row: parts.row, sequence: parts.sequence)
    }

    func noteUnknown(_ place: Int, _ flight: Flight) {
        guard self.hasManyAudiences else { return self.clients[place].unknown.insert(flight.sequence) }
        self.published.pointee.noteUnknown(flight.row, flight.sequence)
        self.uncertain += self.copies(place, self.published.pointee.audience(ofRow: flight.row))
    }

    package func noteNeverSent(_ place: Int, stream: Int, _ batch: OperationBatch) {
        guard self.load.hasLedger, self.deliveries.hasLedger else { return }
        guard self.hasManyAudiences else { return self.noteNeverSent(place, batch) }
        let (writer, qos, now) = (self.writers + stream, self.qos(place, stream: stream), self.context.now)
        guard writer.pointee.hasHeader else { return }
        batch.forEachOperation { index, due, _, number in
            let next = self.load.hasStreams ? number : self.clients[place].sequence + UInt64(index)
            _ = self.begin(place, stream: stream, qos: qos, number: next, now: now)
            let publisher = place * self.load.streams.count + stream
            let row = self.published.pointee.row(publisher: publisher, audience: writer.pointee.audience)
            let (lane, last) = (batch.lane(due), Int64(due.uptimeNanoseconds))
            self.exceptions[row, default: PublishExceptions()].neverSent.add(lane: lane, last: last)
        }
    }

    func noteKnown(_ place: Int, _ flight: Flight) {
        self.clients[place].own.known += 1
        guard self.hasManyAudiences else { return }
        self.received.expected += self.copies(place, self.published.pointee.audience(ofRow: flight.row))
    }

    // MARK: - Presence of receivers

    /// News of a receiver: marks where each publisher of this loop is that feeds it.
    package func note(_ news: PresenceNews) {
        var events = [(news.visit, news.event)]
        if news.isMember { events = self.memberEvents(news) }
        // Before the load, every publisher is at its first message.
        guard self.context.now >= self.shard.loadBegan else { return }
        let audiences = Set(self.audiences.pointee.audiences(with: news.receiver))
        guard !audiences.isEmpty else { return }
        for (visit, event) in events { self.mark(news.receiver, audiences, visit: visit, event) }
        guard self.load.targets > 1, self.load.servers == 1, news.event == .began else { return }
        // A cluster spreads its routes for some time after SUBACK.
        let bound = NIOLoopBound(self, eventLoop: self.context.eventLoop)
        self.context.eventLoop.scheduleTask(in: .seconds(1)) {
            bound.value.mark(news.receiver, audiences, visit: news.visit, .settled)
        }
    }

    /// A share group lives from its first member to its last one.
    private func memberEvents(_ news: PresenceNews) -> [(UInt64, PresenceMark.Event)] {
        var life = self.alive[news.receiver] ?? ShareLife()
        defer { self.alive[news.receiver] = life }
        if news.event == .closed {
            life.members -= 1
            return [(news.visit, .closed)] + (life.members == 0 ? [(life.lives - 1, .left)] : [])
        }
        life.members += 1
        guard life.members == 1 else { return [] }
        life.lives += 1
        return [(life.lives - 1, .began)]
    }

    private func mark(_ receiver: UInt32, _ audiences: Set<UInt32>, visit: UInt64, _ event: PresenceMark.Event) {
        for row in 0..<(self.hasManyAudiences ? self.published.pointee.count : self.places.operators) {
            let audience = self.audience(ofRow: row)
            guard audiences.contains(audience) else { continue }
            let next = self.hasManyAudiences ? self.published.pointee.next(row) : self.clients[row].sequence
            guard next > 0 else { continue }
            let publisher = self.ledgerNumber(ofRow: row)
            let named = self.namedAudience(ofRow: row)
            let key = StreamKey(subscription: receiver, publisher: publisher, audience: named)
            self.marks.append(PresenceMark(key, visit: visit, event, at: next))
        }
    }

    func audience(ofRow row: Int) -> UInt32 {
        self.hasManyAudiences ? self.published.pointee.audience(ofRow: row) : self.clients[row].own.audience
    }

    /// The audience in the headers of a row.
    func namedAudience(ofRow row: Int) -> UInt32 { self.isAlone ? 0 : self.audience(ofRow: row) }

    /// Whether headers do not name the one audience of a publisher.
    var isAlone: Bool { !self.load.isAddressed && self.load.stream.carrier != .front }

    func ledgerNumber(ofRow row: Int) -> UInt32 {
        let publisher = self.hasManyAudiences ? self.published.pointee.publisher(ofRow: row) : row
        let (place, stream) = publisher.quotientAndRemainder(dividingBy: self.load.streams.count)
        return self.deliveries.publisher(group: self.group, stream: stream, client: self.number(place))
    }
}
