/// A remedy for a failed check; the remedies of a check are alternatives.
package enum HostRemedy: Hashable, Sendable {
    // The load.
    case fewerClients
    case lowerRate
    case slowerConnects
    case moreSourceAddresses
    case split(LoadSplit)
    case severalMachines
    case moreHosts

    // Event loops of this process.
    case moreThreads
    case fewerThreads(Int)

    // Limits of the kernel.
    /// The descriptors of a process; `most`: whether fs.nr_open must be raised first.
    case raiseDescriptors(to: Int, most: Bool)
    case raiseOpenFiles
    case widenPortRange
    /// Wait until ports in TIME_WAIT are free; `reuse`: the time with net.ipv4.tcp_tw_reuse=1.
    case waitForTimeWait(seconds: Int, reuse: Int?)
    case raiseBacklog
    case raiseTracking(to: UInt64)
    /// Pages of TCP buffers: net.ipv4.tcp_mem.
    case raiseBuffers(low: UInt64, pressure: UInt64, most: UInt64)
    case raiseQuota

    // The machine.
    case fastClock
    case quieterHost
    case noSwap
}

/// A way to divide the load.
package enum LoadSplit: Hashable, Sendable {
    /// Into this many processes on this host.
    case processes(Int)
    /// Into this many segments, which are started one by one.
    case segments(Int)
}
