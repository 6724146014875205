package import NIOCore

/// The texts that go to one event stream: one at a time, with at most one event waiting.
///
/// A client that does not read holds no more than that: a newer event takes the place of the one that waits.
/// Nothing takes the place of a last event, or follows it.
package struct EventPipe {
    package enum Beat: Hashable {
        /// A comment is due.
        case write
        /// A text is being written, so no comment is needed.
        case wait
        /// The same text was being written two beats ago.
        case close
    }

    package private(set) var isBusy = false
    private var waiting: ByteBuffer?
    /// Whether the last event was offered.
    private var isOver = false
    private var beatsWithoutProgress = 0

    package init() {}

    /// The text to write now; nil if it has to wait, or came behind the last event.
    package mutating func offer(_ text: ByteBuffer, isLast: Bool = false) -> ByteBuffer? {
        guard !self.isOver else { return nil }
        self.isOver = isLast
        guard !self.isBusy else {
            self.waiting = text
            return nil
        }
        self.isBusy = true
        return text
    }

    /// Ends the writing of a text, which is with the kernel now.
    ///
    /// - Returns: the text to write next, if there is one.
    package mutating func written() -> ByteBuffer? {
        self.beatsWithoutProgress = 0
        let next = self.waiting
        self.waiting = nil
        self.isBusy = next != nil
        return next
    }

    package mutating func beat() -> Beat {
        guard self.isBusy else {
            self.isBusy = true
            return .write
        }
        self.beatsWithoutProgress += 1
        return self.beatsWithoutProgress < 2 ? .wait : .close
    }
}
