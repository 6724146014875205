import Measurement
import ServerWatch
import Testing

extension ProcessWatchTests {
    @Test("a server has at most 64 thread labels over its life; its further threads are summed as other")
    func manyThreads() throws {
        typealias Thread = ScriptedProc.Thread
        let main = Thread(name: "other", nanoseconds: 1)
        let proc = ScriptedProc([70: ScriptedProc.Process(name: "java", threads: [70: main])])
        var watch = try ProcessWatch(["70"], at: 0, files: proc.files)
        var labels: Set<String> = []
        var last: [Metric] = []
        // In each second ten new threads run for 0.5 s each, and the main thread for 0.9 s.
        for second in 1...120 {
            proc.change(70) { process in
                process.threads = [70: Thread(name: "other", nanoseconds: 1 + Int64(second) * 900_000_000)]
                for number in 0..<10 {
                    let id = 1_000 + second * 10 + number
                    process.threads[id] = Thread(name: "request-\(id)", nanoseconds: 500_000_000)
                }
            }
            last = watch.look(at: Int64(second) * Self.second).metrics
            labels.formUnion(last.labels("thread", of: "server_thread_cpu"))
        }
        #expect(labels.count == 65)
        // A thread of the name "other" is not mistaken for the sum.
        #expect(last.labels("thread", of: "server_thread_cpu") == ["other 2", "other"])
        #expect(last.value("server_thread_cpu", ["thread": "other 2"]) == 0.9)
        #expect(last.value("server_thread_cpu", ["thread": "other"]) == 5)
    }

    @Test("names that become the same in a label are still two threads")
    func sameNames() throws {
        typealias Thread = ScriptedProc.Thread
        let names = [70: "a;b", 71: "a_b"]
        let proc = ScriptedProc([
            70: ScriptedProc.Process(name: "x", threads: names.mapValues { Thread(name: $0, nanoseconds: 1) })
        ])
        var watch = try ProcessWatch(["70"], at: 0, files: proc.files)
        proc.change(70) { process in
            process.threads[70]?.nanoseconds = 500_000_001
            process.threads[71]?.nanoseconds = 250_000_001
        }
        let metrics = watch.look(at: Self.second).metrics
        #expect(metrics.labels("thread", of: "server_thread_cpu") == ["a_b", "a_b 2"])
    }
}
