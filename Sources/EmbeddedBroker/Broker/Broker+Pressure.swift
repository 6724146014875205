import NIOCore

// Back-pressure: publishers to a slow consumer are not read for a while.
extension Broker {
    mutating func checkCongestion(_ connection: ConnectionID) {
        guard !self.connections[connection].isCongested else { return }
        // A writable client's output is written at the end of this turn.
        let output = self.connections[connection].isWritable ? 0 : self.connections[connection].out.readableBytes
        let waiting = output + self.connections[connection].deliveries.queuedBytes
        guard waiting > self.configuration.highWaterMark else { return }
        self.connections[connection].isCongested = true
        self.congested += 1
    }

    mutating func easeCongestion(_ connection: ConnectionID) {
        guard self.connections[connection].waitingBytes <= self.configuration.highWaterMark / 2 else { return }
        self.connections[connection].isCongested = false
        self.uncongest()
    }

    mutating func uncongest() {
        self.congested -= 1
        guard self.congested == 0 else { return }
        for publisher in self.paused where self.connections[publisher].isPaused {
            self.connections[publisher].isPaused = false
            if !self.connections[publisher].isChoked { self.actions.append(.resumeReading(publisher)) }
        }
        self.paused.removeAll(keepingCapacity: true)
    }

    /// Stops reading a publisher that feeds a slow consumer, unless other clients wait for its acknowledgements.
    mutating func pause(_ publisher: ConnectionID) {
        guard !self.connections[publisher].isPaused, !self.connections[publisher].isCongested,
            !self.connections[publisher].deliveries.hasQueue
        else { return }
        self.connections[publisher].isPaused = true
        self.paused.append(publisher)
        self.tally.publishersPaused += 1
        if !self.connections[publisher].isChoked { self.actions.append(.pauseReading(publisher)) }
    }

    /// Stops reading a client whose unread answers pile up.
    mutating func chokeIfNeeded(_ connection: ConnectionID) {
        guard self.connections[connection].out.readableBytes > self.configuration.highWaterMark,
            !self.connections[connection].isChoked, self.connections[connection].state != .closing
        else { return }
        self.connections[connection].isChoked = true
        self.tally.clientsChoked += 1
        if !self.connections[connection].isPaused { self.actions.append(.pauseReading(connection)) }
    }

    /// Reads the client again after it has read its answers.
    mutating func unchoke(_ connection: ConnectionID) {
        self.connections[connection].isChoked = false
        guard !self.connections[connection].isPaused, self.connections[connection].state != .closing else { return }
        self.actions.append(.resumeReading(connection))
    }
}
