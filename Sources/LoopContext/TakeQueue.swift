import NIOCore
import Synchronization

/// A queue between an event loop and the tasks that take elements from it.
///
/// Each element goes to one task, in order.
///
/// The queue has no bound of its own: its owner enforces one in ``put(_:size:added:)``.
package final class TakeQueue<Element: Sendable, Notes: Sendable>: Sendable {
    package struct State: Sendable {
        fileprivate var elements = CircularBuffer<(element: Element, size: Int)>()
        /// Sum of the sizes of the elements that wait.
        package private(set) var size = 0
        /// The owner's state under the same lock.
        package var notes: Notes
        fileprivate var readers = CircularBuffer<(number: UInt64, continuation: CheckedContinuation<Element?, Never>)>()
        /// Readers that were cancelled before they waited.
        fileprivate var cancelled: Set<UInt64> = []
        fileprivate var nextReader: UInt64 = 0
        fileprivate var isFinished = false

        package var count: Int { self.elements.count }

        fileprivate mutating func append(_ element: Element, size: Int) {
            self.elements.append((element, size))
            self.size += size
        }

        @discardableResult
        package mutating func removeFirst() -> Element? {
            guard let first = self.elements.popFirst() else { return nil }
            self.size -= first.size
            return first.element
        }

        package mutating func removeAll(where isGone: (Element) -> Bool) {
            self.elements.removeAll { isGone($0.element) }
            self.size = self.elements.reduce(0) { $0 + $1.size }
        }
    }

    /// Called after the lock is released.
    package typealias Call = @Sendable () -> Void

    private let state: Mutex<State>
    private let taken: @Sendable (Element, inout State) -> Call?

    /// - Parameters:
    ///   - notes: the owner's state under the same lock.
    ///   - taken: called under the lock when a task takes an element.
    package init(_ notes: Notes, taken: @escaping @Sendable (Element, inout State) -> Call? = { _, _ in nil }) {
        self.state = Mutex(State(notes: notes))
        self.taken = taken
    }

    package func withState<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
        self.state.withLock { body(&$0) }
    }

    // MARK: The event loop's side

    /// Hands an element to a task that waits, or queues it.
    ///
    /// - Parameters:
    ///   - element: what came.
    ///   - size: its share of ``State/size``.
    ///   - added: called under the lock if no task waits for the element.
    /// - Returns: the result of `added`.
    package func put<Result: Sendable>(_ element: Element, size: Int, added: (inout State) -> Result) -> Result? {
        var reader: CheckedContinuation<Element?, Never>?
        var call: Call?
        let result = self.state.withLock { state -> Result? in
            if state.isFinished { return nil }
            reader = state.readers.popFirst()?.continuation
            guard reader == nil else {
                call = self.taken(element, &state)
                return nil
            }
            state.append(element, size: size)
            return added(&state)
        }
        reader?.resume(returning: element)
        call?()
        return result
    }

    /// Ends the waits of tasks.
    ///
    /// Queued elements can still be taken.
    package func finish() {
        let readers = self.state.withLock { state in
            state.isFinished = true
            defer { state.readers = [] }
            return state.readers
        }
        for reader in readers { reader.continuation.resume(returning: nil) }
    }

    // MARK: The tasks' side

    /// The next element; `nil` when there is none any more, or the task is cancelled.
    package func next() async -> Element? {
        let number = self.state.withLock { state in
            state.nextReader += 1
            return state.nextReader
        }
        let element = await withTaskCancellationHandler {
            await withCheckedContinuation { self.take(number, $0) }
        } onCancel: {
            self.cancel(number)
        }
        // An element may have come before the cancellation.
        if Task.isCancelled { self.state.withLock { _ = $0.cancelled.remove(number) } }
        return element
    }

    private func take(_ number: UInt64, _ continuation: CheckedContinuation<Element?, Never>) {
        var call: Call?
        let answer = self.state.withLock { state -> Element?? in
            if state.cancelled.remove(number) != nil { return .some(nil) }
            if let element = state.removeFirst() {
                call = self.taken(element, &state)
                return .some(element)
            }
            if state.isFinished { return .some(nil) }
            state.readers.append((number, continuation))
            return nil
        }
        if let answer { continuation.resume(returning: answer) }
        call?()
    }

    private func cancel(_ number: UInt64) {
        let reader = self.state.withLock { state -> CheckedContinuation<Element?, Never>? in
            if let index = state.readers.firstIndex(where: { $0.number == number }) {
                return state.readers.remove(at: index).continuation
            }
            state.cancelled.insert(number)
            return nil
        }
        reader?.resume(returning: nil)
    }
}
