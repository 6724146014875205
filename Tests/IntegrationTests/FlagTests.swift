import Foundation
import Measurement
import Report
import TestSupport
import Testing

extension Integration {
    @Suite("Flags do what they say")
    struct FlagTests {
        @Test("--json leaves stdout to the text of run.json")
        func json() async throws {
            let run = try await ClamorRun.of("pub -h embedded -c 2 -L 10 --json")
            #expect(run.status == 0)
            let file = try String(contentsOfFile: "\(run.directory)/run.json", encoding: .utf8)
            #expect(run.ending.output == file)
            #expect(run.ending.errors.isEmpty)
        }

        @Test("--quiet leaves nothing but results")
        func quiet() async throws {
            let run = try await ClamorRun.of("pub -h embedded -c 2 -L 10 --quiet")
            #expect(run.status == 0)
            #expect(run.ending.output.isEmpty)
            #expect(run.ending.errors.isEmpty)
            #expect(run.record.count("publish_sent") == 10)
        }

        @Test("-F keeps no more in flight, which is what remains when nothing is acknowledged", arguments: [1, 5])
        func window(_ window: Int) async throws {
            // The broker takes one message in ten seconds at most, so nearly all windows stay full.
            let (run, broker) = try await BrokerProgram.with("--max-rate 0.1/s") { broker in
                try await ClamorRun.of("pub -p \(broker.port) -c 3 -q 1 -F \(window) --duration 3s --drain 0s")
            }
            #expect(run.status == 69 && run.record.reasonCodes.contains("server-silent"))
            let books = try #require(run.record.books.first)
            let acked = try #require(books.acked)
            #expect(books.sent == UInt64(3 * window) + acked)
            #expect(acked <= 3)
            #expect(broker.received.qos1 <= 3)
        }

        @Test("--read-size changes the reads, not the counts")
        func readSize() async throws {
            let line = "pubsub -h embedded -c 4 -q 0,1,2 -s 64 -L 200"
            for size in [1, 7] {
                let run = try await ClamorRun.of("\(line) --read-size \(size)")
                #expect(run.status == 0)
                #expect(run.record.isSound, "\(run.record.reasonCodes)")
                #expect(run.record.count("delivery_expected") == 200)
                #expect(run.record.count("received") == 200)
                #expect(run.record.count("reads") * size >= run.record.count("bytes_received"))
            }
        }

        @Test("secrets appear nowhere")
        func secrets() async throws {
            let run = try await ClamorRun.of("conn -h embedded -c 1 --duration 10ms -u me -P", "hush hush")
            #expect(run.status == 0)
            #expect(!run.ending.output.contains("hush"))
            let files = run.folder.entries("out")
            #expect(files.contains("run.json"))
            for file in files {
                let text = try String(contentsOfFile: "\(run.directory)/\(file)", encoding: .utf8)
                #expect(!text.contains("hush"), "\(file)")
            }
        }
    }
}
