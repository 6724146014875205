import Dispatch
package import NIOCore

/// Runs `body` on a loop that has seen nothing of what `meantime` brought about: its thread was held until that was done.
package func onHeldLoop<Answer: Sendable>(
    _ loop: any EventLoop,
    meantime: () async throws -> Void,
    _ body: @escaping @Sendable () throws -> Answer
) async throws -> Answer {
    // Not the loop's own promise: who asks for that once the thread is held waits for the loop, and the loop for them.
    let (isHeld, hold) = AsyncStream<Void>.makeStream()
    let isOver = DispatchSemaphore(value: 0)
    let answer = loop.submit {
        hold.finish()
        isOver.wait()
        return try body()
    }
    do {
        defer { isOver.signal() }
        for await _ in isHeld {}
        try await meantime()
    }
    return try await answer.get()
}
