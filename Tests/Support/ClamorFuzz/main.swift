import CFuzzing
import Foundation
import Fuzzing
import TestSupport

// clamor-fuzz corpus TARGET FOLDER          writes the seeds, one file each
// clamor-fuzz run TARGET RUNS SEED          our own mutator
// clamor-fuzz reached TARGET RUNS SEED      the same, and prints only the states that inputs have reached, as JSON
// clamor-fuzz replay TARGET HEX|FILE...     runs inputs as they are
// clamor-fuzz libfuzzer TARGET ARGUMENTS... libFuzzer's, with its own arguments

func stop(_ words: String) -> Never {
    FileHandle.standardError.write(Data((words + "\n").utf8))
    exit(64)
}

let usage = "usage: clamor-fuzz corpus|run|reached|replay|libfuzzer decoder|session|broker|tokenizer|stream|results ..."
let arguments = Array(CommandLine.arguments.dropFirst())
guard arguments.count >= 2, let chosen = Seeds.Target(rawValue: arguments[1]) else {
    stop(usage)
}

func seconds(_ microseconds: UInt64) -> String { String(format: "%.1f", Double(microseconds) / 1e6) }

func report(_ target: any FuzzTarget, since begin: Date, corpus: Int?) {
    print(target.reached)
    print(
        "took \(String(format: "%.1f", -begin.timeIntervalSinceNow)) s, \(seconds(clamor_processor_time())) s of CPU,",
        "\(clamor_peak_memory()) KiB at most" + (corpus.map { ", corpus \($0)" } ?? "")
    )
}

switch arguments[0] {
case "corpus" where arguments.count == 3:
    let folder = URL(fileURLWithPath: arguments[2])
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    for (index, input) in Seeds.inputs(chosen).enumerated() {
        try Data(input).write(to: folder.appendingPathComponent("\(chosen.rawValue)-\(index)"))
    }
    print("\(Seeds.inputs(chosen).count) seeds in \(arguments[2])")
case "run" where arguments.count == 4:
    guard let runs = Int(arguments[2]), let seed = UInt64(arguments[3]) else { stop("RUNS and SEED are numbers") }
    clamor_report_input_on_crash()
    let begin = Date()
    var driver = Driver(chosen, seed: seed)
    print("\(chosen.rawValue): \(runs) mutated inputs from \(driver.corpus.count) seeds, seed \(seed)")
    do {
        try driver.runSeeds()
        var left = runs
        while left > 0 {
            let part = min(left, 500_000)
            try driver.run(part)
            left -= part
            print("\(runs - left) done, \(seconds(clamor_processor_time())) s of CPU, corpus \(driver.corpus.count)")
            fflush(nil)
        }
    } catch {
        print("FOUND: \(error)")
        report(driver.target, since: begin, corpus: driver.corpus.count)
        exit(1)
    }
    report(driver.target, since: begin, corpus: driver.corpus.count)
case "reached" where arguments.count == 4:
    guard let runs = Int(arguments[2]), let seed = UInt64(arguments[3]) else { stop("RUNS and SEED are numbers") }
    clamor_report_input_on_crash()
    var driver = Driver(chosen, seed: seed)
    do {
        try driver.runSeeds()
        try driver.run(runs)
    } catch {
        print("FOUND: \(error)")
        exit(1)
    }
    print(String(decoding: try JSONEncoder().encode(driver.target.reached), as: UTF8.self))
case "replay":
    clamor_report_input_on_crash()
    let target = chosen.make()
    var hasFound = false
    for argument in arguments.dropFirst(2) {
        let input = FileManager.default.contents(atPath: argument).map { Array($0) } ?? hex(argument)
        do throws(Finding) {
            input.withUnsafeBytes { clamor_input_begins($0.baseAddress, $0.count, 60) }
            try target.run(input)
        } catch {
            print("FOUND: \(error)\n  input: \(input.hexText)")
            hasFound = true
        }
    }
    print(target.reached)
    if hasFound { exit(1) }
case "libfuzzer":
    #if CLAMOR_LIBFUZZER
    runLibFuzzer(chosen, Array(arguments.dropFirst(2)))
    #else
    stop("built without libFuzzer's runtime")
    #endif
default:
    stop(usage)
}
