import DequeModule
import FaultInjection
import NIOCore

/// A message that `--delay` holds.
struct DelayedMessage {
    var due: NIODeadline
    var since: NIODeadline
    var subscription: Int32
    var serial: UInt64
    var publisher: UInt32
    var held: HeldMessage
}

/// The time when a message that `--reorder` holds stops waiting for a successor.
struct ReorderTimeout {
    var due: NIODeadline
    var subscription: Int32
    var serial: UInt64
    var publisher: UInt32
    var ticket: UInt64
}

// Drop, reorder, duplicate, delay: applied in this order to the messages of one subscription.
extension Broker {
    private static let billion: UInt64 = 1_000_000_000

    /// Each round needs the one before, and the result is kept, so no compiler leaves them out.
    @inline(never)
    mutating func spin(_ rounds: UInt64) {
        for _ in 0..<rounds { self.spun = (self.spun ^ self.spun >> 29) &* 0xBF58_476D_1CE4_E5B9 &+ 1 }
    }

    /// The initial state of a new subscription; `number` counts subscriptions from 1.
    func makeFaultState(number: UInt64) -> FaultState {
        // The golden ratio spreads the phases evenly over any number of subscriptions; the first phase is 0.
        let phase = ((number - 1) &* 0x9E37_79B9_7F4A_7C15).multipliedFullWidth(by: Self.billion).high
        return FaultState(dropShare: phase)
    }

    /// Applies the faults to one message for one live subscription.
    mutating func inject(
        _ message: MessageView,
        into index: Int32,
        of publisher: UInt32,
        identifiers: UnsafeRawBufferPointer,
        now: NIODeadline
    ) {
        let qos = message.qos
        guard var faults = self.subscriptions[Int(index)].faults else { return }
        self.subscriptions[Int(index)].faults = nil
        defer { self.subscriptions[Int(index)].faults = faults }

        faults.dropShare += self.faults.dropPerBillion ?? 0
        if faults.dropShare >= Self.billion {
            faults.dropShare -= Self.billion
            self.tally.dropped[qos] += 1
            return
        }
        guard self.faults.touchesOrder else {
            let isDuplicated = Self.isEveryNth(&faults.duplicates, self.faults.duplicateEvery)
            self.release(message, isDuplicated: isDuplicated, to: index, identifiers: identifiers)
            return
        }
        var stream = faults.streams[publisher] ?? FaultState.Stream()
        defer { faults.streams[publisher] = stream }
        let number = stream.next
        stream.next += 1
        let isChosen = Self.isEveryNth(&faults.reorders, self.faults.reorderEvery)
        if isChosen, stream.held == nil {
            self.tickets += 1
            stream.held = HeldMessage(
                message: KeptMessage(message, now: now),
                number: number,
                isDuplicated: false,
                ticket: self.tickets
            )
            self.reorderTimeouts.append(
                ReorderTimeout(
                    due: now + self.configuration.reorderHold,
                    subscription: index,
                    serial: self.subscriptions[Int(index)].serial,
                    publisher: publisher,
                    ticket: self.tickets
                )
            )
            self.tally.waiting[qos] += 1
            return
        }
        let held = stream.held
        stream.held = nil
        self.emit(message, number, &faults, &stream, into: index, of: publisher, now: now)
        if let held {
            self.tally.waiting[held.message.qos] -= 1
            self.emit(held, &faults, &stream, into: index, of: publisher, now: now)
        }
    }

    /// Sends a message that was held, unless it has expired.
    private mutating func emit(
        _ held: HeldMessage,
        _ faults: inout FaultState,
        _ stream: inout FaultState.Stream,
        into index: Int32,
        of publisher: UInt32,
        now: NIODeadline
    ) {
        guard let message = held.message.aged(to: now) else {
            self.tally.expired[held.message.qos] += 1
            return
        }
        message.withView { self.emit($0, held.number, &faults, &stream, into: index, of: publisher, now: now) }
    }

    /// After drop and reorder: sends the message, or holds it for the delay.
    private mutating func emit(
        _ message: MessageView,
        _ number: UInt64,
        _ faults: inout FaultState,
        _ stream: inout FaultState.Stream,
        into index: Int32,
        of publisher: UInt32,
        now: NIODeadline
    ) {
        let isDuplicated = Self.isEveryNth(&faults.duplicates, self.faults.duplicateEvery)
        if let delay = self.faults.delay, Self.isEveryNth(&faults.delays, self.faults.delayEvery) {
            let held = HeldMessage(
                message: KeptMessage(message, now: now),
                number: number,
                isDuplicated: isDuplicated,
                ticket: 0
            )
            self.delayed.append(
                DelayedMessage(
                    due: now + delay,
                    since: now,
                    subscription: index,
                    serial: self.subscriptions[Int(index)].serial,
                    publisher: publisher,
                    held: held
                )
            )
            self.tally.waiting[message.qos] += 1
            return
        }
        self.sendInOrder(message, number, &stream, isDuplicated: isDuplicated, to: index)
    }

    /// Sends a message, and records whether a later one of the same publisher was sent before.
    private mutating func sendInOrder(
        _ message: MessageView,
        _ number: UInt64,
        _ stream: inout FaultState.Stream,
        isDuplicated: Bool,
        to index: Int32
    ) {
        let identifiers = self.subscriptions[Int(index)].identifier
        // A message that is not sent neither overtakes others nor is overtaken.
        let isSent = identifiers.withUnsafeBytes {
            self.release(message, isDuplicated: isDuplicated, to: index, identifiers: $0)
        }
        guard isSent else { return }
        if number < stream.highest {
            self.tally.reordered[message.qos] += 1
        } else {
            stream.highest = number
        }
    }

    /// - Returns: whether a client was there to receive it.
    @discardableResult
    private mutating func release(
        _ message: MessageView,
        isDuplicated: Bool,
        to index: Int32,
        identifiers: UnsafeRawBufferPointer
    ) -> Bool {
        let session = self.subscriptions[Int(index)].session
        let connection = ConnectionID(self.sessions[Int(session)].connection)
        let qos = min(message.qos, self.subscriptions[Int(index)].qos)
        let isKept = self.sessions[Int(session)].kept != nil && qos > 0
        guard self.subscriptions[Int(index)].isLive, connection >= 0 || isKept else {
            self.tally.undelivered[message.qos] += 1
            return false
        }
        let retain = message.retain && self.subscriptions[Int(index)].retainAsPublished
        for kind in isDuplicated ? [Tally.Kind.copy, .duplicate] : [.copy] {
            let tally = Tally(kind: kind, qos: message.qos)
            if connection >= 0 {
                self.send(message, to: connection, qos: qos, retain: retain, identifiers: identifiers, tally: tally)
            } else {
                self.store(message, in: session, qos: qos, retain: retain, identifiers: identifiers, tally: tally)
            }
        }
        return true
    }

    private static func isEveryNth(_ count: inout UInt64, _ every: UInt64?) -> Bool {
        guard let every else { return false }
        count += 1
        guard count >= every else { return false }
        count = 0
        return true
    }

    // MARK: Held messages

    /// Sends messages whose delay has passed.
    mutating func releaseDelayed(now: NIODeadline) {
        while let first = self.delayed.first, first.due <= now {
            self.delayed.removeFirst()
            let qos = first.held.message.qos
            self.tally.waiting[qos] -= 1
            self.tally.delayed[qos] += 1
            self.holdTimes.record((now - first.since).nanoseconds)
            let index = Int(first.subscription)
            guard self.subscriptions[index].serial == first.serial,
                var stream = self.subscriptions[index].faults?.streams[first.publisher]
            else {
                self.tally.undelivered[qos] += 1
                continue
            }
            guard let message = first.held.message.aged(to: now) else {
                self.tally.expired[qos] += 1
                continue
            }
            message.withView {
                self.sendInOrder(
                    $0,
                    first.held.number,
                    &stream,
                    isDuplicated: first.held.isDuplicated,
                    to: first.subscription
                )
            }
            self.subscriptions[index].faults?.streams[first.publisher] = stream
        }
    }

    /// Releases messages that waited for a successor in vain.
    mutating func releaseReordered(now: NIODeadline) {
        while let first = self.reorderTimeouts.first, first.due <= now {
            self.reorderTimeouts.removeFirst()
            guard self.subscriptions[Int(first.subscription)].serial == first.serial,
                let held = self.subscriptions[Int(first.subscription)].faults?.streams[first.publisher]?.held,
                held.ticket == first.ticket
            else { continue }
            self.releaseUnswapped(first.publisher, on: first.subscription, now: now)
        }
    }

    /// Releases messages whose publisher has gone, so that no successor can come.
    mutating func releaseReordered(of publisher: UInt32, now: NIODeadline) {
        guard self.faults.reorderEvery != nil else { return }
        for timeout in self.reorderTimeouts where timeout.publisher == publisher {
            let index = Int(timeout.subscription)
            guard self.subscriptions[index].serial == timeout.serial,
                self.subscriptions[index].faults?.streams[publisher]?.held?.ticket == timeout.ticket
            else { continue }
            self.releaseUnswapped(publisher, on: timeout.subscription, now: now)
        }
    }

    private mutating func releaseUnswapped(_ publisher: UInt32, on index: Int32, now: NIODeadline) {
        guard var faults = self.subscriptions[Int(index)].faults, var stream = faults.streams[publisher],
            let held = stream.held
        else { return }
        stream.held = nil
        self.tally.waiting[held.message.qos] -= 1
        self.tally.reorderReleased[held.message.qos] += 1
        self.emit(held, &faults, &stream, into: index, of: publisher, now: now)
        faults.streams[publisher] = stream
        self.subscriptions[Int(index)].faults = faults
    }

    /// Counts a message held for a swap when its subscription ends; delayed messages are counted when due.
    mutating func loseHeld(of index: Int32) {
        guard let streams = self.subscriptions[Int(index)].faults?.streams else { return }
        for held in streams.values.compactMap(\.held) {
            self.tally.waiting[held.message.qos] -= 1
            self.tally.undelivered[held.message.qos] += 1
        }
    }
}
