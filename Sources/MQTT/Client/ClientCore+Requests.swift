import LoopContext
import MQTTCodec
import NIOCore

typealias Waiter<Value: Sendable> = CallWaiter<Value, MQTTClientError>

/// A SUBSCRIBE or UNSUBSCRIBE that waits for its answer.
struct Request {
    /// The codes of the answer, one per filter in its order, and its properties.
    typealias Answer = (codes: [ReasonCode], properties: Properties)

    enum Caller {
        case subscribe(Waiter<[MQTTSubscribeResult]>)
        case unsubscribe(Waiter<[MQTTUnsubscribeResult]>)
    }

    let caller: Caller
    let filters: [String]
    let deadline: NIODeadline
    /// The call has timed out; the answer may still come, and then frees the identifier.
    private(set) var isOver = false

    init(_ caller: Caller, filters: [String], deadline: NIODeadline) {
        self.caller = caller
        self.filters = filters
        self.deadline = deadline
    }

    var awaited: MQTTAwaited {
        switch self.caller {
        case .subscribe: .suback
        case .unsubscribe: .unsuback
        }
    }

    mutating func end(_ outcome: Result<Answer, MQTTClientError>) {
        self.isOver = true
        switch self.caller {
        case .subscribe(let waiter):
            waiter.complete(
                outcome.map { answer in
                    zip(self.filters, answer.codes).map {
                        MQTTSubscribeResult(filter: $0, reason: $1, properties: answer.properties)
                    }
                }
            )
        case .unsubscribe(let waiter):
            waiter.complete(
                outcome.map { answer in
                    zip(self.filters, answer.codes).map {
                        MQTTUnsubscribeResult(filter: $0, reason: $1, properties: answer.properties)
                    }
                }
            )
        }
    }
}

extension ClientCore {
    func subscribe(_ subscriptions: [Subscription], _ properties: Properties, _ waiter: Waiter<[MQTTSubscribeResult]>) {
        guard !waiter.isDone else { return }
        let version = self.configuration.version
        if self.configuration.validates {
            if let problem = Subscribe(1, subscriptions, properties: properties).problem(as: version) {
                return waiter.fail(.forbidden(problem))
            }
        }
        guard self.state == .connected, let connection = self.connection else { return waiter.fail(.notConnected) }
        let hasIdentifier = properties.subscriptionIdentifier != nil
        if let reason = self.session.pointee.limits.refusal(of: subscriptions, hasIdentifier: hasIdentifier) {
            return waiter.fail(.notAllowed(reason))
        }
        guard let id = connection.subscribe(subscriptions, properties: properties) else {
            return waiter.fail(.notAllowed(.packetTooLarge))
        }
        self.begin(.subscribe(waiter), subscriptions.map(\.filter), id)
        self.updateReading()
    }

    func unsubscribe(_ filters: [String], _ properties: Properties, _ waiter: Waiter<[MQTTUnsubscribeResult]>) {
        guard !waiter.isDone else { return }
        if self.configuration.validates {
            let version = self.configuration.version
            if let problem = Unsubscribe(1, filters: filters, properties: properties).problem(as: version) {
                return waiter.fail(.forbidden(problem))
            }
        }
        guard self.state == .connected, let connection = self.connection else { return waiter.fail(.notConnected) }
        guard let id = connection.unsubscribe(filters, properties: properties) else {
            return waiter.fail(.notAllowed(.packetTooLarge))
        }
        self.begin(.unsubscribe(waiter), filters, id)
        self.updateReading()
    }

    private func begin(_ caller: Request.Caller, _ filters: [String], _ id: PacketID) {
        let deadline = self.context.now + TimeAmount(self.configuration.timeouts.acknowledgement)
        self.requests[id] = Request(caller, filters: filters, deadline: deadline)
        self.updateTimer()
    }

    /// The answer; an empty list of codes means success for all filters (UNSUBACK before 5.0).
    func answered(_ type: PacketType, _ id: PacketID, codes: [UInt8]) {
        let properties = self.takeProperties(of: type, id)
        guard var request = self.requests.removeValue(forKey: id) else { return }
        let codes = codes.isEmpty ? Array(repeating: 0, count: request.filters.count) : codes
        request.end(.success((codes.map { ReasonCode(rawValue: $0) ?? .unspecifiedError }, properties)))
        self.updateTimer()
    }

    func ping(_ waiter: Waiter<Duration>) {
        guard !waiter.isDone else { return }
        guard self.state == .connected, let connection = self.connection else { return waiter.fail(.notConnected) }
        self.pings.append(waiter)
        connection.ping()
        self.updateReading()
    }

    func failRequests(_ error: MQTTClientError) {
        let (requests, pings, writing) = (self.requests.values, self.pings, self.writing)
        self.requests = [:]
        self.pings = []
        self.writing = []
        for var request in requests { request.end(.failure(error)) }
        for waiter in pings { waiter.fail(error) }
        for waiter in writing { waiter.fail(error) }
        self.reauthentication.end(.failure(error))
        self.failRaw(error)
    }
}
