import RunControl
import Testing

@Suite("The file of a run at its end", .timeLimit(.minutes(10)))
struct RunStoreTests {
    @Test("a file that does not close is waited for as long as is said, and no longer")
    func hangs() async {
        let (never, end) = AsyncStream<Void>.makeStream()
        let words = await RunStore.close(within: .milliseconds(20)) { for await _ in never {} }
        #expect(words == "the file did not close within 0.02 seconds; the last changes may be missing in it")
        end.finish()
    }

    @Test("a file that closes in time is no news, and one that fails says why")
    func closes() async {
        #expect(await RunStore.close(within: .seconds(600)) {} == nil)
        struct Full: Error, CustomStringConvertible { let description = "the disk is full" }
        #expect(await RunStore.close(within: .seconds(600)) { throw Full() } == "the disk is full")
    }
}
