#if CLAMOR_LIBFUZZER
import CFuzzing
import Foundation
import Fuzzing

// libFuzzer calls plain functions, on one thread; what they need stands here.
nonisolated(unsafe) private var target: (any FuzzTarget)?
nonisolated(unsafe) private var mutator: Mutator?

/// Hands the process over to libFuzzer.
func runLibFuzzer(_ chosen: Seeds.Target, _ arguments: [String]) {
    target = chosen.make()
    mutator = Mutator(seed: 1, layout: chosen.layout, packets: chosen.packets)
    atexit {
        guard let target else { return }
        print(target.reached)
        print("\(clamor_processor_time() / 1_000) ms of CPU, \(clamor_peak_memory()) KiB at most")
    }
    // It may put others in their place, so they are never freed.
    var list: [UnsafeMutablePointer<CChar>?] = (["clamor-fuzz"] + arguments).map { strdup($0) } + [nil]
    var count = Int32(list.count - 1)
    list.withUnsafeMutableBufferPointer { list in
        var start = list.baseAddress
        _ = LLVMFuzzerRunDriver(&count, &start) { bytes, count in
            do throws(Finding) {
                try target?.run(UnsafeRawBufferPointer(start: bytes, count: count))
            } catch {
                fatalError("FOUND: \(error)")
            }
            return 0
        }
    }
}

/// Half of the mutations know what a packet is; the rest are libFuzzer's own, which know what was compared.
@_cdecl("LLVMFuzzerCustomMutator")
func mutate(_ bytes: UnsafeMutablePointer<UInt8>, _ count: Int, _ capacity: Int, _ seed: UInt32) -> Int {
    guard seed & 1 == 0, var own = mutator else { return LLVMFuzzerMutate(bytes, count, capacity) }
    own.dice = Dice(seed: UInt64(seed))
    let input = Array(UnsafeBufferPointer(start: bytes, count: count))
    let changed = own.mutate(input, with: input).prefix(capacity)
    for (index, byte) in changed.enumerated() { bytes[index] = byte }
    return changed.count
}
#endif
